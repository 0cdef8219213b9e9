"""Failed jobs that others of their group have overtaken: a retry would run them after jobs that stood behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.job import Job
from groupmq.protocol.commands import CHUNK

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

MOST_SCANNED = 10_000
"""Jobs that are looked at in each state; of the completed ones, the newest."""


class Overtaking:
    """Looks for jobs of the same groups that have started since, among those that run and the completed ones.

    A job that was completed and is no longer kept is not seen, so the result is a lower bound. A job that failed does
    not count: it did not do its work, and it may be retried too.
    """

    def __init__(self, queue: QueueMethods) -> None:
        self._queue = queue
        self._jobs: list[tuple[str, str, int, int]] = []
        self._fences: dict[str, int] = {}
        self._started: dict[str, int] = {}

    def watch(self, job: Job) -> None:
        """Include a failed job in the search."""
        if job.group_id is not None:
            self._jobs.append((job.id, job.group_id, job.fence, job._finished_ms))

    async def find(self) -> list[str]:
        """Those of the watched jobs that have been overtaken, in the order in which they were given."""
        if not self._jobs:
            return []
        groups = {group_id for _, group_id, *_ in self._jobs}
        earliest = min(finished for *_, finished in self._jobs)
        await self._look("active", groups, 0)
        await self._look("completed", groups, earliest)
        return [job_id for job_id, group_id, fence, ended in self._jobs if self._is_overtaken(group_id, fence, ended)]

    def _is_overtaken(self, group_id: str, fence: int, ended: int) -> bool:
        if fence:
            # Fences grow with each start, even within one millisecond.
            return self._fences.get(group_id, 0) > fence
        # It never ran: an operator failed it, or it expired.
        return self._started.get(group_id, -1) >= ended

    async def _look(self, state: str, groups: set[str], earliest: int) -> None:
        walk, scanned = self._queue._walk(state), 0
        while not walk.ended and scanned < MOST_SCANNED:
            entries = list(await walk.next_page(CHUNK))
            scanned += len(entries)
            for job in await self._queue.get_jobs_by_id([job_id for job_id, _ in entries]):
                if job is None or job.state != state:
                    continue
                if state == "completed" and job._finished_ms < earliest:
                    return
                if job.group_id in groups:
                    self._fences[job.group_id] = max(self._fences.get(job.group_id, 0), job.fence)
                    self._started[job.group_id] = max(self._started.get(job.group_id, 0), job._started_ms)
