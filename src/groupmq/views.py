"""Answers of the getters: plain, frozen, typed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs are in each state. `total` counts the live ones: active, waiting and delayed."""

    active: int
    waiting: int
    delayed: int
    completed: int
    failed: int
    total: int
    unique_groups: int


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """One group. `state`: idle, ready, busy, parked (its head waits for `held_for`) or paused."""

    id: str
    state: str
    waiting: int
    active: int
    delayed: int
    concurrency: int
    paused: bool
    held_for: float | None
    """Seconds until the head may start, when it has to wait (a back-off)."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How long something took: `buckets[i]` is how many were below `bounds[i]` seconds; the last bound is infinite."""

    bounds: tuple[float, ...]
    buckets: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        return sum(self.buckets)

    @property
    def mean(self) -> float:
        """Seconds; 0 if there was none."""
        return self.sum / self.count if self.count else 0.0

    def quantile(self, q: float) -> float:
        """An upper bound of the q-th quantile, in seconds (exact to a factor of two)."""
        left = q * self.count
        for bound, n in zip(self.bounds, self.buckets, strict=True):
            left -= n
            if left <= 0:
                return bound
        return self.bounds[-1]


@dataclass(frozen=True, slots=True)
class MinuteStats:
    """What happened in one minute."""

    at: datetime
    processed: int
    failed: int
    retried: int
    stalled: int
    rate_limited: int
    started: int
    """Jobs that started for the first time."""
    mean_wait: float
    """Seconds they had waited, on average."""
    mean_run: float
    """Seconds that runs took, on average."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters since the queue was created, how long jobs waited and ran, and the last minutes."""

    processed: int
    failed: int
    retried: int
    stalled: int
    lost: int
    """Jobs whose record was deleted behind the queue's back."""
    rate_limited: int
    """Runs that ended with RateLimited."""
    lease_lost: int
    """Outcomes that were refused, since the lease was another's by then."""
    groups_ready: int
    """Groups that may start a job now."""
    groups_due: int
    """Groups whose head has to wait: for a back-off, a window, a rate."""
    groups_paused: int
    oldest_wait: float | None
    """Seconds that the first job in line has been waiting; None if nothing is ready."""
    wait: Histogram
    """From when a job may start to the start of its first attempt."""
    run: Histogram
    """Each run that ended with an outcome."""
    series: list[MinuteStats]
    """Oldest first; the last one is the minute under way."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that said it lives."""

    id: str
    name: str
    host: str
    pid: int
    concurrency: int
    current_jobs: int
    heartbeat: float
    last_seen: datetime
    version: str
    jobs: list[str] = field(default_factory=list)
    """Ids of running jobs, at most 100."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is in an exclusive queue."""

    worker: str
    epoch: int
    """Grows with every turn."""
    expires_in: float
    """Seconds until the turn is lost, unless it is renewed."""
    taken: int
    """Jobs taken in this turn."""


@dataclass(frozen=True, slots=True)
class RepeatingJob:
    """The definition of a repeating job."""

    key: str
    group_id: str | None
    schedule: str
    """In words: `every 5 s`, `cron 0 9 * * 1-5 (Europe/Stockholm)`."""
    next_run: datetime
    last_run: datetime | None
    count: int
    """Occurrences so far."""
    limit: int | None
    end: datetime | None
    data: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt."""

    job_id: str
    attempt: int
    error: str
    stack: str
    time: datetime
    final: bool
    worker: str


@dataclass(slots=True)
class RepairReport:
    """What `repair` looked at and what it mended: kind of damage -> ids. Empty in normal life."""

    jobs: int = 0
    groups: int = 0
    mended: dict[str, list[str]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(len(ids) for ids in self.mended.values())

    @property
    def clean(self) -> bool:
        return not self.mended

    def __bool__(self) -> bool:
        """True if something had to be mended."""
        return bool(self.mended)
