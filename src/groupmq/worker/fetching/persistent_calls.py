"""Calls that are made again and again until the server answers them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TypeVar

from groupmq.client.connection.connections import Connection
from groupmq.client.connection.faults import is_passing
from groupmq.protocol.commands import Call
from groupmq.worker.outage import Pauses
from groupmq.worker.reachability import Reachability

T = TypeVar("T")


class PersistentCalls:
    """Repeats calls, with growing pauses that end when another part of the worker has reached the server."""

    def __init__(self, connection: Connection, reachability: Reachability) -> None:
        self._connection = connection
        self._reachability = reachability
        self._server_back = asyncio.Event()

    def start(self) -> None:
        self._reachability.on_return(self.retry_now, asyncio.get_running_loop())

    async def call(self, call: Call[T], on_failure: Callable[[], None]) -> T:
        """A request that is sent again gets the same answer. `on_failure` is called each time it fails."""
        pauses, again = Pauses(), False
        while True:
            began = time.monotonic()
            try:
                answer = await self._connection.call(call, patience=0.0)
            except Exception as error:
                # Catches every kind of error: a worker that stopped asking would look alive and take no job.
                self._reachability.unreached(error)
                on_failure()
                # The first retry comes at once: usually a single connection was dropped.
                await self.pause(pauses.next() if again or not is_passing(error) else 0.0)
                again = True
            else:
                self._reachability.reached(began)
                return answer

    def retry_now(self) -> None:
        """The server is back: calls that pause are made again now."""
        self._server_back.set()

    async def pause(self, seconds: float) -> None:
        """Pause for this long, or until the server is back."""
        self._server_back.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._server_back.wait()
