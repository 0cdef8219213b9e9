"""Presence: forgets workers that died without deregistering."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from groupmq.client.queue.caller import Caller
from groupmq.client.queue.upkeep import forget_gone_workers
from groupmq.worker.duties.duty import DutyDone
from groupmq.worker.outage import FORGET


class PresenceCleanup:
    """Deregisters workers that have been silent for a minute, with the last replies that the server keeps for them.

    `on_gone` is called with their ids.
    """

    task = FORGET

    def __init__(self, call: Caller, on_gone: Callable[[Sequence[str]], None] = lambda workers: None) -> None:
        self._call = call
        self._on_gone = on_gone

    async def run_once(self) -> DutyDone:
        gone = await forget_gone_workers(self._call)
        if gone:
            self._on_gone(gone)
        return DutyDone(len(gone))


class AcrossPartitions:
    """Cleans up data that concerns several partitions of a queue."""

    task = FORGET

    def __init__(self, clean: Callable[[], Awaitable[int]]) -> None:
        self._clean = clean

    async def run_once(self) -> DutyDone:
        return DutyDone(await self._clean())
