"""A queue at one point in time, as a monitor shows it: plain, frozen, typed. Durations are in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from groupmq.core.deprecation import renamed
from groupmq.core.views import GroupInfo, HeldGroup, JobCounts


@dataclass(frozen=True, slots=True)
class JobTotals:
    """Jobs so far. `added` counts those that live or have ended, so it falls when jobs are removed."""

    added: int = 0
    completed: int = 0
    failed: int = 0
    retried: int = 0

    @property
    def processed(self) -> int:
        """Deprecated: use `completed`."""
        renamed("JobTotals", "processed", "completed")
        return self.completed


@dataclass(frozen=True, slots=True)
class GroupActivity:
    """A group and its activity. The jobs without a group are shown as one with the id None."""

    id: str | None
    state: str
    waiting: int
    active: int
    delayed: int
    waited: float | None
    """Seconds that its first job has waited."""
    held_for: float | None
    """Seconds until that job may start; None if it need not wait, or no time is known."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that runs."""

    id: str
    group_id: str | None
    attempt: int
    running_for: float
    worker: str


@dataclass(frozen=True, slots=True)
class RecentFailure:
    """The newest failed attempt of a job."""

    id: str
    attempt: int
    error: str
    ago: float
    final: bool
    worker: str
    state: str | None
    """The state the job is in now; None if it is gone."""


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker whose last heartbeat is recent."""

    name: str
    host: str
    pid: int
    busy: int
    concurrency: int
    seen: float
    """Seconds since its last heartbeat."""


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    """A queue at one point in time: counts, totals, busiest groups, runs, failures and workers."""

    at: datetime
    paused: bool
    counts: JobCounts
    totals: JobTotals
    last_hour: JobTotals
    """The totals of the last hour; `added` is unknown, so it is 0."""
    oldest_wait: float | None
    """Seconds that the longest-waiting job that could start now has waited."""
    longest_held: HeldGroup | None = None
    busiest: tuple[GroupActivity, ...] = ()
    """Groups with the most waiting and running jobs, of those looked at so far."""
    longest_waiting: tuple[GroupActivity, ...] = ()
    """Groups whose first job has waited longest, of those looked at so far."""
    runs: tuple[RunningJob, ...] = ()
    failures: tuple[RecentFailure, ...] = ()
    workers: tuple[LiveWorker, ...] = ()
    cursor: str = "0"
    """Where the next survey continues among the groups."""
    groups_blocked: int = 0
    """Groups that a failed job blocks."""
    blocked: tuple[GroupInfo, ...] = ()
    """The groups that have been blocked longest."""
    breakers_open: int = 0
    """Groups whose breaker is open."""
    breakers: tuple[GroupInfo, ...] = ()
    """The groups whose breaker has been open longest."""
    longest_held_unpaused: HeldGroup | None = None
    """The longest-held group that no operator has paused: otherwise an old pause would hide all other holds."""

    @property
    def most_delayed(self) -> tuple[GroupActivity, ...]:
        """Deprecated: use `longest_waiting`."""
        renamed("QueueSurvey", "most_delayed", "longest_waiting")
        return self.longest_waiting
