"""Starting a worker whose server may be away."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from typing import Any

from groupmq.client.connection.faults import may_pass
from groupmq.core.errors import ConfigurationError, GroupMQError
from groupmq.worker.outage import START, Pauses
from groupmq.worker.reachability import Reachability


async def start_when_reachable(
    start: Callable[[float], Awaitable[Any]],
    reachability: Reachability,
    changed: asyncio.Event,
    wanted: Callable[[], bool],
    longest_pause: float | None,
) -> None:
    """Call `start` until it succeeds, is no longer `wanted`, or the worker gives up.

    Raises errors that another try would not fix. `changed` is set when one of the last two may have happened.
    """
    pauses = Pauses()
    while wanted() and reachability.gave_up is None:
        try:
            await start(0.0)
            return
        except GroupMQError as error:
            if not may_pass(error):
                raise
            reachability.unreached(error, START)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pauses.next(longest_pause or math.inf)):
                while wanted() and reachability.gave_up is None:
                    changed.clear()
                    await changed.wait()


def not_a_queue(got: object) -> ConfigurationError:
    """The error for a Worker that was given something other than a Queue."""
    if type(got).__module__.startswith("groupmq.sync"):
        return ConfigurationError(
            "queue: a Worker needs a groupmq.Queue, got a groupmq.sync.Queue, which has no event loop; "
            "make a groupmq.Queue of the same name: both see the same jobs"
        )
    return ConfigurationError.expected("queue", "a groupmq.Queue", got)
