"""The read model of the blocking queue, the twin of `groupmq/client/inspection.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from groupmq.client.operations import Operations, Steps
from groupmq.client.repeats import Repeating
from groupmq.core.views import Failure, GroupInfo, JobCounts, Metrics, RepeatingJob, Turn, WorkerInfo
from groupmq.sync.job import Job

T = TypeVar("T")


class Runs(Protocol):
    """What carries out an operation."""

    _operations: Operations[Job]
    _repeating: Repeating[Job]

    def _run(self, steps: Steps[T]) -> T: ...
    def get_job_counts(self) -> JobCounts: ...
    def get_job(self, job_id: str) -> Job | None: ...


class Looking:
    """The getters of a queue."""

    def get_job(self: Runs, job_id: str) -> Job | None:
        return self._run(self._operations.get_job(job_id))

    def require_job(self: Runs, job_id: str) -> Job:
        """Like `get_job`, but raises JobNotFound."""
        return self._run(self._operations.require_job(job_id))

    def get_jobs_by_id(self: Runs, ids: Sequence[str]) -> list[Job | None]:
        """Many jobs at once, in the order of `ids`; None where there is no such job."""
        return self._run(self._operations.get_jobs_by_id(ids))

    def get_job_ids(
        self: Runs,
        state: str,
        limit: int = 1000,
        offset: int = 0,
        *,
        group_id: str | None = None,
        newest: bool = False,
    ) -> list[str]:
        """Ids of the jobs in a state; finished ones oldest first, or newest first. `group_id`: of waiting jobs only."""
        return self._run(self._operations.get_job_ids(state, limit, offset, group_id, newest=newest))

    def get_job_counts(self: Runs) -> JobCounts:
        return self._run(self._operations.get_job_counts())

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
        return self._run(self._operations.list_ids("active", limit, offset))

    def get_waiting_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of waiting jobs, group by group; in a small queue by arrival."""
        return self._run(self._operations.list_ids("waiting", limit, offset))

    def get_delayed_jobs(self: Runs, limit: int = 1000, offset: int = 0) -> list[str]:
        """Ids of delayed jobs, the next one due in front."""
        return self._run(self._operations.list_ids("delayed", limit, offset))

    def get_completed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept completed jobs, newest first."""
        return self._run(self._operations.list_jobs("completed", limit, offset))

    def get_failed_jobs(self: Runs, limit: int = 100, offset: int = 0) -> list[Job]:
        """Kept failed jobs, newest first."""
        return self._run(self._operations.list_jobs("failed", limit, offset))

    def get_jobs(self: Runs, limit: int = 1000) -> dict[str, list[str]]:
        """Ids by state, at most `limit` of each."""
        return self._run(self._operations.get_jobs(limit))

    def get_unique_groups(self: Runs, limit: int | None = None) -> list[str]:
        """Groups that have a live job: waiting, active or delayed."""
        return self._run(self._operations.get_unique_groups(limit))

    def get_unique_groups_count(self: Runs) -> int:
        return self.get_job_counts().unique_groups

    def get_group_job_count(self: Runs, group_id: str) -> int:
        """Waiting and active jobs of a group."""
        return self._run(self._operations.get_group_job_count(group_id))

    def get_group(self: Runs, group_id: str) -> GroupInfo:
        """One group: its counts and limits, what holds it and until when."""
        return self._run(self._operations.get_group_info(group_id))

    def get_metrics(self: Runs, minutes: int = 60, *, step: int = 1, look: int = 500) -> Metrics:
        """Counters, how long jobs waited and ran, and the last `minutes` (two weeks are kept).

        `step` minutes are summed up to one entry of `series`: two weeks by the hour are 336 of them. `look`: how many
        calls may look for the longest waits, each at a hundred running jobs and held groups; with few they may miss
        the longest of a large queue.
        """
        return self._run(self._operations.get_metrics(minutes, step, look))

    def get_workers(self: Runs) -> list[WorkerInfo]:
        return self._run(self._operations.get_workers())

    def get_repeating_jobs(self: Runs) -> list[RepeatingJob]:
        """What repeats: when next, when last, how often so far; the next one to run in front."""
        return self._run(self._repeating.get_all())

    def get_turn(self: Runs) -> Turn | None:
        """Whose turn it is in an exclusive queue; None if nobody works."""
        return self._run(self._operations.get_turn())

    def get_last_event_id(self: Runs) -> str:
        """The id of the newest event: `events(since=...)` with it tells all that happens after this call."""
        return self._run(self._operations.get_last_event_id())

    def get_failures(self: Runs, limit: int = 100) -> list[Failure]:
        """One record per failed attempt, newest first; the newest 1,000 are kept."""
        return self._run(self._operations.get_failures(limit))
