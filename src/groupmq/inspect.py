"""The read model of a queue: everything that only looks. Paged and bounded: nothing lists a whole queue at once."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, TypeVar

from groupmq.job import Job
from groupmq.operations import Operations, Steps
from groupmq.repeating import Repeating
from groupmq.views import Failure, GroupInfo, JobCounts, Metrics, RepeatingJob, Turn, WorkerInfo

T = TypeVar("T")


class Runs(Protocol):
    """What carries out an operation."""

    operations: Operations[Job]
    _repeating: Repeating[Job]

    def run(self, steps: Steps[T]) -> Awaitable[T]: ...
    async def get_job_counts(self) -> JobCounts: ...
    async def get_job(self, job_id: str) -> Job | None: ...


class Looking:
    """The getters of a queue."""

    async def get_job(self: Runs, job_id: str) -> Job | None:
        return await self.run(self.operations.get_job(job_id))

    async def require_job(self: Runs, job_id: str) -> Job:
        """Like `get_job`, but raises JobNotFound."""
        return await self.run(self.operations.require_job(job_id))

    async def get_job_counts(self: Runs) -> JobCounts:
        return await self.run(self.operations.get_job_counts())

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
        return await self.run(self.operations.list_ids("active", limit, offset))

    async def get_waiting_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of waiting jobs, group by group; in a small queue by arrival."""
        return await self.run(self.operations.list_ids("waiting", limit, offset))

    async def get_delayed_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of delayed jobs, the next one due in front."""
        return await self.run(self.operations.list_ids("delayed", limit, offset))

    async def get_completed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept completed jobs, newest first."""
        return await self.run(self.operations.list_jobs("completed", limit, offset))

    async def get_failed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept failed jobs, newest first."""
        return await self.run(self.operations.list_jobs("failed", limit, offset))

    async def get_jobs(self: Runs, limit: int = 1000) -> dict[str, list[str]]:
        """Ids by state, at most `limit` of each."""
        return await self.run(self.operations.get_jobs(limit))

    async def get_unique_groups(self: Runs, limit: int | None = None) -> list[str]:
        """Groups that have a live job: waiting, active or delayed."""
        return await self.run(self.operations.get_unique_groups(limit))

    async def get_unique_groups_count(self: Runs) -> int:
        return (await self.get_job_counts()).unique_groups

    async def get_group_job_count(self: Runs, group_id: str) -> int:
        """Waiting and active jobs of a group."""
        return await self.run(self.operations.get_group_job_count(group_id))

    async def get_group(self: Runs, group_id: str) -> GroupInfo:
        return await self.run(self.operations.get_group(group_id))

    async def get_metrics(self: Runs, minutes: int = 60) -> Metrics:
        """Counters, how long jobs waited and ran, and the last `minutes` one by one (two weeks are kept)."""
        return await self.run(self.operations.get_metrics(minutes))

    async def get_workers(self: Runs) -> list[WorkerInfo]:
        return await self.run(self.operations.get_workers())

    async def get_repeating_jobs(self: Runs) -> list[RepeatingJob]:
        """What repeats: when next, when last, how often so far; the next one to run in front."""
        return await self.run(self._repeating.get_all())

    async def get_turn(self: Runs) -> Turn | None:
        """Whose turn it is in an exclusive queue; None if nobody works."""
        return await self.run(self.operations.get_turn())

    async def get_failures(self: Runs, limit: int = 100) -> list[Failure]:
        """One record per failed attempt, newest first; the newest 1,000 are kept."""
        return await self.run(self.operations.get_failures(limit))
