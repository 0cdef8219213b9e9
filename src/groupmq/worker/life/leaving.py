"""How a closing worker leaves its queue: runs end or are given back, outcomes are reported, and it deregisters."""

from __future__ import annotations

import asyncio

from groupmq.client.queue.access import QueueAccess
from groupmq.core.checks import Logger
from groupmq.core.errors import GroupMQError
from groupmq.worker.life.deadline import Deadline
from groupmq.worker.parts import WorkerParts

GOODBYE = 1.0
"""Seconds beyond its timeout that a closing worker spends on giving jobs back and deregistering."""
_DELIVERY = 10.0
"""Seconds of its timeout that a closing worker spends at most on reporting outcomes while its server is away. Jobs
whose outcome is not reported run again."""


async def leave(name: str, access: QueueAccess, parts: WorkerParts, deadline: Deadline, logger: Logger) -> None:
    """Wait for the runs until the deadline, give back the others and deregister.

    Never raises if the server does not answer: the leases of the worker expire, and its jobs run again.
    """
    executor, fetcher, heartbeat = parts.executor, parts.fetcher, parts.heartbeat

    def nothing_runs() -> bool:
        return not executor.slots_used

    await deadline.wait_for(nothing_runs)
    try:
        async with asyncio.timeout(GOODBYE):
            parts.dispatcher.give_back_running()
            if not await deadline.wait_for(nothing_runs, grace=GOODBYE / 2):
                # A handler that will not end: its job goes back, since its lease must not outlive the worker.
                executor.abandon_all()
        async with asyncio.timeout(min(deadline.left(GOODBYE), _DELIVERY)):
            await fetcher.flushed()
        async with asyncio.timeout(GOODBYE):
            heartbeat.stop()
            if heartbeat.begun:
                await asyncio.to_thread(heartbeat.join, GOODBYE / 4)
            await fetcher.stop_watching()
            await access.connection.call(fetcher.goodbye(), patience=GOODBYE / 4)
    except (TimeoutError, GroupMQError) as error:
        logger.warning(
            "worker %s of queue %s could not deregister (%r); its jobs run again when their leases expire",
            name,
            access.queue.name,
            error,
        )
