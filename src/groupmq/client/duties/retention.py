"""Retention: removes ended jobs that are older than the queue keeps them."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.client.queue.caller import Caller
from groupmq.core.queue_options import QueueOptions
from groupmq.core.views import DutyReport
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK


class AgeRetention:
    """Removes completed and failed jobs by age. (The limit on their number is applied whenever a job ends.)

    A process that keeps none of its own jobs does not remove the jobs that other processes keep.
    """

    task = "clean up"

    def __init__(self, call: Caller, options: Callable[[], QueueOptions]) -> None:
        self._call = call
        self._options = options

    async def run_once(self) -> DutyReport:
        options, removed, called = self._options(), 0, False
        for kind, kept in (("completed", options.keep_completed), ("failed", options.keep_failed)):
            if kept.age_ms is None or kept.kept == 0:
                continue
            called = True
            while (n := await self._call(commands.clean(kind, kept.age_ms, CHUNK))) > 0:
                removed += n
        return DutyReport(removed, removed=removed, called=called)
