"""The read model of the blocking queue, the twin of `groupmq/inspect.py`."""

from __future__ import annotations

from typing import Protocol, TypeVar

from groupmq.operations import Operations, Steps
from groupmq.repeating import Repeating
from groupmq.sync.job import Job
from groupmq.views import Failure, GroupInfo, JobCounts, Metrics, RepeatingJob, Turn, WorkerInfo

T = TypeVar("T")


class Runs(Protocol):
    """What carries out an operation."""

    operations: Operations[Job]
    _repeating: Repeating[Job]

    def run(self, steps: Steps[T]) -> T: ...
    def get_job_counts(self) -> JobCounts: ...
    def get_job(self, job_id: str) -> Job | None: ...


class Looking:
    """The getters of a queue."""

    def get_job(self: Runs, job_id: str) -> Job | None:
        return self.run(self.operations.get_job(job_id))

    def require_job(self: Runs, job_id: str) -> Job:
        """Like `get_job`, but raises JobNotFound."""
        return self.run(self.operations.require_job(job_id))

    def get_job_counts(self: Runs) -> JobCounts:
        return self.run(self.operations.get_job_counts())

    def get_active_count(self: Runs) -> int:
        return self.get_job_counts().active

    def get_waiting_count(self: Runs) -> int:
        return self.get_job_counts().waiting

    def get_delayed_count(self: Runs) -> int:
        return self.get_job_counts().delayed

    def get_completed_count(self: Runs) -> int:
        return self.get_job_counts().completed

    def get_failed_count(self: Runs) -> int:
        return self.get_job_counts().failed

    def get_active_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of running jobs, the one whose lease ends first in front."""
        return self.run(self.operations.list_ids("active", limit, offset))

    def get_waiting_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of waiting jobs, group by group; in a small queue by arrival."""
        return self.run(self.operations.list_ids("waiting", limit, offset))

    def get_delayed_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of delayed jobs, the next one due in front."""
        return self.run(self.operations.list_ids("delayed", limit, offset))

    def get_completed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept completed jobs, newest first."""
        return self.run(self.operations.list_jobs("completed", limit, offset))

    def get_failed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept failed jobs, newest first."""
        return self.run(self.operations.list_jobs("failed", limit, offset))

    def get_jobs(self: Runs, limit: int = 1000) -> dict[str, list[str]]:
        """Ids by state, at most `limit` of each."""
        return self.run(self.operations.get_jobs(limit))

    def get_unique_groups(self: Runs, limit: int | None = None) -> list[str]:
        """Groups that have a live job: waiting, active or delayed."""
        return self.run(self.operations.get_unique_groups(limit))

    def get_unique_groups_count(self: Runs) -> int:
        return self.get_job_counts().unique_groups

    def get_group_job_count(self: Runs, group_id: str) -> int:
        """Waiting and active jobs of a group."""
        return self.run(self.operations.get_group_job_count(group_id))

    def get_group(self: Runs, group_id: str) -> GroupInfo:
        return self.run(self.operations.get_group(group_id))

    def get_metrics(self: Runs, minutes: int = 60) -> Metrics:
        """Counters, how long jobs waited and ran, and the last `minutes` one by one (two weeks are kept)."""
        return self.run(self.operations.get_metrics(minutes))

    def get_workers(self: Runs) -> list[WorkerInfo]:
        return self.run(self.operations.get_workers())

    def get_repeating_jobs(self: Runs) -> list[RepeatingJob]:
        """What repeats: when next, when last, how often so far; the next one to run in front."""
        return self.run(self._repeating.get_all())

    def get_turn(self: Runs) -> Turn | None:
        """Whose turn it is in an exclusive queue; None if nobody works."""
        return self.run(self.operations.get_turn())

    def get_failures(self: Runs, limit: int = 100) -> list[Failure]:
        """One record per failed attempt, newest first; the newest 1,000 are kept."""
        return self.run(self.operations.get_failures(limit))
