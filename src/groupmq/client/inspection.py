"""The read model of a queue: everything that only looks. Paged and bounded: nothing lists a whole queue at once."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from groupmq.client.job import Job
from groupmq.client.operations import Operations, Steps
from groupmq.client.repeats import Repeating
from groupmq.core.views import Failure, GroupInfo, JobCounts, Metrics, RepeatingJob, Turn, WorkerInfo

T = TypeVar("T")


class Runs(Protocol):
    """What carries out an operation."""

    _operations: Operations[Job]
    _repeating: Repeating[Job]

    def _run(self, steps: Steps[T]) -> Awaitable[T]: ...
    async def get_job_counts(self) -> JobCounts: ...
    async def get_job(self, job_id: str) -> Job | None: ...


class Looking:
    """The getters of a queue."""

    async def get_job(self: Runs, job_id: str) -> Job | None:
        return await self._run(self._operations.get_job(job_id))

    async def require_job(self: Runs, job_id: str) -> Job:
        """Like `get_job`, but raises JobNotFound."""
        return await self._run(self._operations.require_job(job_id))

    async def get_jobs_by_id(self: Runs, ids: Sequence[str]) -> list[Job | None]:
        """Many jobs at once, in the order of `ids`; None where there is no such job."""
        return await self._run(self._operations.get_jobs_by_id(ids))

    async def get_job_ids(
        self: Runs,
        state: str,
        limit: int = 1000,
        offset: int = 0,
        *,
        group_id: str | None = None,
        newest: bool = False,
    ) -> list[str]:
        """Ids of the jobs in a state; finished ones oldest first, or newest first. `group_id`: of waiting jobs only."""
        return await self._run(self._operations.get_job_ids(state, limit, offset, group_id, newest=newest))

    async def get_job_counts(self: Runs) -> JobCounts:
        return await self._run(self._operations.get_job_counts())

    async def get_active_count(self: Runs) -> int:
        return (await self.get_job_counts()).active

    async def get_waiting_count(self: Runs) -> int:
        return (await self.get_job_counts()).waiting

    async def get_delayed_count(self: Runs) -> int:
        return (await self.get_job_counts()).delayed

    async def get_completed_count(self: Runs) -> int:
        return (await self.get_job_counts()).completed

    async def get_failed_count(self: Runs) -> int:
        return (await self.get_job_counts()).failed

    async def get_active_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of running jobs, the one whose lease ends first in front."""
        return await self._run(self._operations.list_ids("active", limit, offset))

    async def get_waiting_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of waiting jobs, group by group; in a small queue by arrival."""
        return await self._run(self._operations.list_ids("waiting", limit, offset))

    async def get_delayed_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of delayed jobs, the next one due in front."""
        return await self._run(self._operations.list_ids("delayed", limit, offset))

    async def get_completed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept completed jobs, newest first."""
        return await self._run(self._operations.list_jobs("completed", limit, offset))

    async def get_failed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept failed jobs, newest first."""
        return await self._run(self._operations.list_jobs("failed", limit, offset))

    async def get_jobs(self: Runs, limit: int = 1000) -> dict[str, list[str]]:
        """Ids by state, at most `limit` of each."""
        return await self._run(self._operations.get_jobs(limit))

    async def get_unique_groups(self: Runs, limit: int | None = None) -> list[str]:
        """Groups that have a live job: waiting, active or delayed."""
        return await self._run(self._operations.get_unique_groups(limit))

    async def get_unique_groups_count(self: Runs) -> int:
        return (await self.get_job_counts()).unique_groups

    async def get_group_job_count(self: Runs, group_id: str) -> int:
        """Waiting and active jobs of a group."""
        return await self._run(self._operations.get_group_job_count(group_id))

    async def get_group(self: Runs, group_id: str) -> GroupInfo:
        """One group: its counts and limits, what holds it and until when."""
        return await self._run(self._operations.get_group_info(group_id))

    async def get_metrics(self: Runs, minutes: int = 60, *, step: int = 1, look: int = 500) -> Metrics:
        """Counters, how long jobs waited and ran, and the last `minutes` (two weeks are kept).

        `step` minutes are summed up to one entry of `series`: two weeks by the hour are 336 of them. `look`: how many
        calls may look for the longest waits, each at a hundred running jobs and held groups; with few they may miss
        the longest of a large queue.
        """
        return await self._run(self._operations.get_metrics(minutes, step, look))

    async def get_workers(self: Runs) -> list[WorkerInfo]:
        return await self._run(self._operations.get_workers())

    async def get_repeating_jobs(self: Runs) -> list[RepeatingJob]:
        """What repeats: when next, when last, how often so far; the next one to run in front."""
        return await self._run(self._repeating.get_all())

    async def get_turn(self: Runs) -> Turn | None:
        """Whose turn it is in an exclusive queue; None if nobody works."""
        return await self._run(self._operations.get_turn())

    async def get_last_event_id(self: Runs) -> str:
        """The id of the newest event: `events(since=...)` with it tells all that happens after this call."""
        return await self._run(self._operations.get_last_event_id())

    async def get_failures(self: Runs, limit: int = 100) -> list[Failure]:
        """One record per failed attempt, newest first; the newest 1,000 are kept."""
        return await self._run(self._operations.get_failures(limit))
