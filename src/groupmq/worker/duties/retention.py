"""Retention: removes ended jobs that are older than the queue keeps them."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.client.queue.caller import Caller
from groupmq.client.queue.upkeep import remove_by_age
from groupmq.core.queue_options import QueueOptions
from groupmq.worker.duties.duty import DutyDone
from groupmq.worker.outage import CLEAN_UP


class AgeRetention:
    """Removes completed and failed jobs by age. (The limit on their number is applied whenever a job ends.)"""

    task = CLEAN_UP

    def __init__(self, call: Caller, options: Callable[[], QueueOptions]) -> None:
        self._call = call
        self._options = options

    async def run_once(self) -> DutyDone:
        options = self._options()
        kept = options.keep_completed, options.keep_failed
        by_age = any(one.age_ms is not None and one.kept != 0 for one in kept)
        return DutyDone(await remove_by_age(self._call, options), called=by_age)
