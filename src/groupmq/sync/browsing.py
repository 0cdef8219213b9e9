"""Looking through jobs and groups, the twin of `groupmq/client/browsing.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

from groupmq.client.operations import Operations, Steps
from groupmq.core.filters import JobFilter
from groupmq.core.pages import Attempt, FailureGroups, GroupPage, JobPage, JobPosition, RemoveReport, RetryReport
from groupmq.sync.job import Job

T = TypeVar("T")
GroupSort = Literal["held", "oldest", "deepest", "busiest", "name"]


class Runs(Protocol):
    """What carries out an operation."""

    _operations: Operations[Job]

    def _run(self, steps: Steps[T]) -> T: ...


class Browsing:
    """The methods of a queue that look through many jobs or groups, and act on many."""

    def get_attempts(self: Runs, job_id: str) -> list[Attempt]:
        """The runs of a job, oldest first: how each ended, with error, stack, worker and times.

        The newest 20 that did not complete are kept, as long as the job is. Raises JobNotFound.
        """
        return self._run(self._operations.get_attempts(job_id))

    def search(
        self: Runs,
        filter: JobFilter | None = None,
        *,
        state: str = "failed",
        limit: int = 50,
        cursor: str | None = None,
        scan: int = 2000,
    ) -> JobPage[Job]:
        """Jobs of one state that the filter is true of; finished ones newest first.

        Looks at no more than `scan` jobs: a page may hold fewer than `limit`, or none, and have a cursor to go on.
        """
        return self._run(self._operations.search(filter, state, limit, cursor, scan))

    def get_failure_groups(self: Runs, limit: int = 50, *, scan: int = 5000) -> FailureGroups:
        """Kept failed jobs by class of error and shape of message, the most frequent kind first.

        Looks at the newest `scan` of them.
        """
        return self._run(self._operations.get_failure_groups(limit, scan))

    def get_groups(
        self: Runs, *, sort: GroupSort = "held", match: str | None = None, limit: int = 200, behind: int = 0
    ) -> GroupPage[Job]:
        """Groups as lanes: what runs, what holds each, the first `behind` jobs that wait.

        `sort`: held (longest held first), oldest (longest waiting head first), deepest (most waiting jobs), busiest
        (most running jobs), name. `match`: part of the group id, in upper or lower case. However many groups there
        are, at most some 10,000 are looked through; `complete` says whether these are all.
        """
        return self._run(self._operations.get_groups(sort, match, limit, behind))

    def get_group_jobs(self: Runs, group_id: str, limit: int = 50, cursor: str | None = None) -> JobPage[Job]:
        """The line of a group: running jobs, then waiting ones in the order in which they will start, then delayed.

        Delayed jobs are not stored by group: where there are thousands of them, a page may come out short and have a
        cursor to go on.
        """
        return self._run(self._operations.get_group_jobs(group_id, limit, cursor))

    def get_position(self: Runs, job_id: str) -> JobPosition | None:
        """Where a job stands in its line, 1 = the next to start; None if it has ended or does not exist."""
        return self._run(self._operations.get_position(job_id))

    def retry_many(
        self: Runs,
        filter: JobFilter | None = None,
        *,
        rate: float | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        progress: Callable[[RetryReport], object] | None = None,
    ) -> RetryReport:
        """Retry the failed jobs that the filter is true of, the oldest failure first, each to its original place.

        Those that have failed by the time it begins, each once; in small steps, at most `rate` jobs per second.
        `dry_run` only counts. `progress` is called with the report after each step. What it
        raises ends it between two steps.
        """
        return self._run(self._operations.retry_many(filter, rate, limit, dry_run, progress))

    def remove_many(
        self: Runs,
        filter: JobFilter | None = None,
        *,
        state: str = "failed",
        rate: float | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        progress: Callable[[RemoveReport], object] | None = None,
    ) -> RemoveReport:
        """Remove the jobs of one state that the filter is true of, in small steps. Like `retry_many` otherwise."""
        return self._run(self._operations.remove_many(filter, state, rate, limit, dry_run, progress))
