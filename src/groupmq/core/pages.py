"""Answers about many jobs and groups at once: pages, reports, lanes, failures by kind. `views.py` has the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, TypeVar

from groupmq.core.snapshot import Snapshot
from groupmq.core.views import GroupInfo, HeldGroup

J = TypeVar("J", bound=Snapshot)

AttemptOutcome = Literal[
    "running", "completed", "retried", "failed", "stalled", "released", "snoozed", "rate_limited", "cancelled"
]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of a job."""

    number: int
    """From 1. A run that was released or rate-limited used no attempt, so the next one has the same number; an
    operator's retry counts from 1 again."""
    outcome: AttemptOutcome
    error: str | None
    """Class of the error that the handler raised, with its path (`shop.errors.CardDeclined`, `ValueError`); None if it
    raised none."""
    reason: str | None
    stack: str | None
    """The whole stack for the last run; for earlier runs, only its end."""
    worker: str | None
    started_at: datetime | None
    ended_at: datetime | None
    """None while it runs."""
    duration: float | None
    """Seconds; None while it runs."""


@dataclass(frozen=True, slots=True)
class JobPage(Generic[J]):
    """Some jobs, and where the next page begins."""

    jobs: list[J]
    cursor: str | None
    """Give it to the next call; None = this was the last page."""
    scanned: int
    """Jobs that were looked at for this page."""
    total: int
    """All jobs in the state that was searched, or all that wait in the group."""


@dataclass(frozen=True, slots=True)
class JobPosition:
    """Where a job stands among the waiting jobs of its group: the fourth of 38."""

    group_id: str | None
    """None: the job has no group; it stands among all jobs without one, which start in that order."""
    position: int
    """1 = the next to start; 0 = it is not waiting: it runs already, or is delayed."""
    of: int
    """How many jobs wait there."""
    state: str


@dataclass(frozen=True, slots=True)
class RetryReport:
    """The report of `retry_many`; while it still works, its progress so far."""

    matched: int = 0
    """Failed jobs that the filter matches."""
    retried: int = 0
    skipped: int = 0
    """Matched, but meanwhile retried or removed by another process, or failed again."""
    scanned: int = 0
    """Failed jobs that were looked at."""
    dry_run: bool = False
    groups: int = 0
    """Groups of the matched jobs."""
    sample: list[str] = field(default_factory=list)
    """Ids of the first ten that matched."""
    overtaken: int = 0
    """In a dry run: jobs that would run after jobs of their group that stood behind them but have started since.
    Completed jobs that are no longer kept are not seen."""
    overtaken_sample: list[str] = field(default_factory=list)
    """Ids of the first ten of these."""


@dataclass(frozen=True, slots=True)
class RemoveReport:
    """The report of `remove_many`; while it still works, its progress so far."""

    matched: int = 0
    removed: int = 0
    skipped: int = 0
    """Matched, but in another state or gone when they were reached."""
    scanned: int = 0
    dry_run: bool = False
    groups: int = 0
    sample: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failed jobs of one kind: the same class of error and the same message, apart from numbers, ids and quoted
    text."""

    error_class: str | None
    """With its path; None if no handler raised an error: stalled, expired, failed by an operator."""
    shape: str
    """The message with `#`, `<id>` and `'...'` where numbers, ids and quoted text stood."""
    count: int
    first: datetime
    """When the earliest of them failed."""
    last: datetime
    sample_job_id: str
    """The one that failed last."""
    series: list[int]
    """How many failed in each of 24 equal spans from `FailureGroups.since` to `FailureGroups.until`."""


@dataclass(frozen=True, slots=True)
class FailureGroups:
    """Kept failed jobs by kind, the most frequent first."""

    groups: list[FailureGroup]
    scanned: int
    """Failed jobs that were looked at, the newest ones."""
    total: int
    """Failed jobs that are kept."""
    since: datetime | None
    """When the earliest of the jobs looked at failed; None if there is none."""
    until: datetime | None
    """The time of this answer."""


@dataclass(frozen=True, slots=True)
class Lane(Generic[J]):
    """A group as a lane: its running jobs, the jobs behind them, and what holds it."""

    group: GroupInfo
    held: HeldGroup | None
    """The same as `group.held`."""
    running: list[J]
    """The running jobs, in the order in which they began."""
    next: list[J]
    """The next jobs, in the order in which they will start: those that a worker has prefetched, then waiting ones."""


@dataclass(frozen=True, slots=True)
class GroupPage(Generic[J]):
    """The first groups by some order."""

    groups: list[Lane[J]]
    total: int
    """Groups that have a live job; in a search for blocked groups, all groups that are blocked."""
    scanned: int
    """Groups that were looked at."""
    matched: int
    """Scanned groups that satisfy `match` and `state`; `groups` has the first of them."""
    complete: bool
    """All groups and all running jobs were looked at. Otherwise another group may belong among the first, and a lane
    may lack running or next jobs that its counts include."""
