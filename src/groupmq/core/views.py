"""Answers of the getters: plain, frozen, typed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from groupmq.core.backoff import Backoff
from groupmq.core.deprecation import renamed
from groupmq.core.limits import RateLimit
from groupmq.core.queue_options import OnFailed, OnRetry
from groupmq.core.schedule import Overlap
from groupmq.core.wording import when


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
    """One group. `state`: idle, ready, busy, parked (its head waits for `held_for`), paused or blocked.

    A group that is paused and blocked is shown as paused while jobs wait in it; `blocked_since` is set all the same.
    """

    id: str
    state: str
    waiting: int
    active: int
    delayed: int
    concurrency: int
    paused: bool
    held_for: float | None
    """Seconds until the head may start; None if it need not wait, or no time is known."""
    held: HeldGroup | None = None
    """Why the group cannot start its head, since when and until when; None if it can."""
    rate_limit: RateLimit | None = None
    """Its own, or the queue's `group_rate_limit`."""
    blocked_by: str | None = None
    """The job that failed for good under `on_failed="hold"` and stopped the group; of several the first."""
    blocked_since: datetime | None = None
    """Since when the group is blocked; None if it is not."""
    blockers: int = 0
    """How many failed jobs block it. Each of them has to be retried, skipped or removed."""
    failures: int = 0
    """Attempts that have failed in a row, as the breaker of the group counts them."""
    breaker_since: datetime | None = None
    """Since when its breaker is open; None if it is closed."""
    breaker_until: datetime | None = None
    """Until when the open breaker makes it rest; then one job is tried. It stays open until a job completes."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A distribution of durations: `buckets[i]` counts those from `bounds[i - 1]` to below `bounds[i]` seconds.

    The last bound is infinite."""

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
        """An upper bound of the q-th quantile, in seconds (exact to a factor of two); 0 if there was none."""
        if not self.count:
            return 0.0
        left = q * self.count
        for bound, n in zip(self.bounds, self.buckets, strict=True):
            left -= n
            if left <= 0:
                return bound
        return self.bounds[-1]


EMPTY = Histogram((math.inf,), (0,), 0.0)


@dataclass(frozen=True, slots=True)
class MinuteStats:
    """The measures of one minute, or of a span of several."""

    at: datetime
    completed: int
    failed: int
    retried: int
    stalled: int
    rate_limited: int
    started: int
    """Jobs that started for the first time."""
    mean_wait: float
    """Seconds that these had waited, on average."""
    mean_run: float
    """Seconds that runs took, on average."""
    wait: Histogram = EMPTY
    """How long the jobs that started had waited."""
    run: Histogram = EMPTY
    """How long the runs that ended took."""
    retention_dropped: int = 0
    """Failed jobs that were removed because more than `keep_failed` were kept."""
    minutes: int = 1
    """Minutes of the span; of the last span, those that have begun."""

    @property
    def processed(self) -> int:
        """Deprecated: use `completed`."""
        renamed("MinuteStats", "processed", "completed")
        return self.completed


HELD_REASONS = (
    *("running", "stopping", "backoff", "snoozed", "paused", "blocked", "window", "rate", "rate_limited", "breaker"),
)


@dataclass(frozen=True, slots=True)
class HeldGroup:
    """A group that has waiting jobs but cannot start the first of them."""

    group_id: str
    reason: str
    """running (as many of its jobs run as may), stopping (the handler of a job that was removed or failed by hand has
    not ended), backoff (its first job failed and waits for the next attempt), paused,
    blocked (a job failed for good under `on_failed="hold"`), snoozed (the handler of its first job raised Snooze),
    breaker (too many attempts in a row have failed),
    window (ordering), rate (the group's limit), rate_limited (a handler raised RateLimited)."""
    job_id: str | None
    """The job that holds it: the running one, the one in its back-off, or the failed one that blocks it."""
    attempt: int | None
    """The attempt of that job: the current one, or the one that failed."""
    since: datetime
    """Since when the first job has been waiting."""
    until: datetime | None
    """When it may start; None if that is not known: while jobs of the group run, or while it is paused."""
    waiting: int
    """Jobs that wait in the group."""
    wait: float
    """Seconds that the first job has been waiting."""
    failures: int | None = None
    """breaker: how many attempts have failed in a row."""

    @property
    def explanation(self) -> str:
        """A sentence that says what holds the group and until when."""
        until = f" until {when(self.until)} UTC" if self.until is not None else ""
        run = f"attempt {self.attempt}"
        return {
            "running": f"job {self.job_id!r} runs, {run}",
            "stopping": "a job was removed or failed by hand, and its handler has not ended",
            "backoff": f"job {self.job_id!r} failed, {run}, and is tried again{until.replace(' until', ' at')}",
            "snoozed": f"job {self.job_id!r} asked to be called again{until.replace(' until', ' at')}",
            "paused": "paused by an operator",
            "blocked": f"job {self.job_id!r} failed for good, {run}; retry it, skip it or remove it",
            "window": f"an ordering window has not passed{until}",
            "rate": f"the group's rate limit{until}",
            "breaker": f"breaker open{until}, {self.failures} failures in a row",
            "rate_limited": f"a handler raised RateLimited; the group rests{until}",
        }[self.reason]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters since the queue was created, how long jobs waited and ran, and the last minutes."""

    completed: int
    failed: int
    retried: int
    stalled: int
    lost: int
    """Jobs whose record was deleted by something other than groupmq."""
    rate_limited: int
    """Runs that ended with RateLimited."""
    lease_lost: int
    """Outcomes that were refused, because the worker no longer held the lease."""
    groups_ready: int
    """Groups that may start a job now."""
    groups_parked: int
    """Groups whose head has to wait: for a back-off, a window or a rate limit."""
    groups_paused: int
    oldest_wait: float | None
    """The same as `oldest_startable_wait`."""
    wait: Histogram
    """The time from when a job may start to the start of its first attempt."""
    run: Histogram
    """The duration of each run that ended with an outcome."""
    series: list[MinuteStats]
    """Oldest first; the last one is the minute under way."""
    oldest_startable_wait: float | None = None
    """Seconds that the longest-waiting job that could start now has been waiting; None if nothing can start.

    Grows when workers are too few. Jobs behind a held group do not count here."""
    longest_held: HeldGroup | None = None
    """The group that cannot start its first job and whose first job has waited longest; None if there is none.

    Grows while one group is held, however many workers there are."""
    groups_blocked: int = 0
    """Groups that a failed job blocks (`on_failed="hold"`)."""
    longest_blocked: float | None = None
    """Seconds that the group which was blocked first has been blocked; None if none is."""
    breakers_open: int = 0
    """Groups whose breaker is open (`breaker=Breaker(...)`): they rest, or one job of them is tried."""
    longest_breaker_open: float | None = None
    """Seconds that the breaker which opened first has been open; None if none is."""
    longest_held_unpaused: HeldGroup | None = None
    """Like `longest_held`, without paused groups: otherwise an old pause would hide all other holds."""

    @property
    def processed(self) -> int:
        """The same as `completed`."""
        return self.completed

    @property
    def groups_due(self) -> int:
        """Deprecated: use `groups_parked`."""
        renamed("Metrics", "groups_due", "groups_parked")
        return self.groups_parked


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that has reported that it is alive."""

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
    library: str = ""
    """Name of the function library it calls, on the server."""
    blocked: float = 0.0
    """Seconds that a handler had been blocking its event loop when it was last seen; 0 = none did."""
    max_attempts: int | None = None
    """Its `max_attempts` for jobs that have none of their own; None = that of the queue."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of an exclusive queue: which worker has it, and for how long."""

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
    priority: int = 0
    max_attempts: int | None = None
    """None = as the queue and the worker have it. The same holds for timeout, backoff, on_retry and on_failed."""
    timeout: float | None = None
    backoff: Backoff | None = None
    on_retry: OnRetry | None = None
    on_failed: OnFailed | None = None
    ttl: float | None = None
    """Seconds within which each of its jobs must start; None = any time."""
    overlap: Overlap = "allow"
    skipped: int = 0
    """Ticks without an occurrence, because the one before was live (`overlap="skip"`)."""


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
    error_class: str | None = None
    """Class of the error that the handler raised, with its path; None if it raised none (a stall)."""
    group_id: str | None = None


@dataclass(frozen=True, slots=True)
class StalledJob:
    """A job whose lease ran out: its worker died, or could not reach the server for that long."""

    id: str
    group_id: str | None
    final: bool
    """Whether it failed for good; otherwise it runs again."""
    blocks: bool = False
    """Whether it blocks its group until it is retried, skipped or removed."""
    cancelled: bool = False
    """Whether it was cancelled while it ran, and for that reason does not run again."""


@dataclass(frozen=True, slots=True)
class ExpiredJob:
    """A job that failed because it had not started when its ttl ended."""

    id: str
    group_id: str | None
    blocks: bool
    """Whether it blocks its group until it is retried, skipped or removed."""


@dataclass(frozen=True, slots=True)
class DutyReport:
    """The report of one run of a duty; see `Queue.run_duty_once`."""

    done: int = 0
    """The sum of all counts below, without `errors`."""
    next_in: float | None = None
    """Seconds until there is more to do, as far as is known; None if nothing is known to come."""
    added: int = 0
    """Occurrences of repeating jobs."""
    promoted: int = 0
    """Delayed jobs that joined their groups."""
    unparked: int = 0
    """Groups whose wait was over."""
    stalled: tuple[StalledJob, ...] = ()
    """Jobs whose lease ran out."""
    expired: tuple[ExpiredJob, ...] = ()
    """Jobs that failed because they had not started when their ttl ended."""
    removed: int = 0
    """Finished jobs that were removed because of their age."""
    gone_workers: tuple[str, ...] = ()
    """Workers that stopped sending heartbeats and were forgotten."""
    swept: int = 0
    """Entries of jobs that are gone (of a queue with partitions)."""
    errors: tuple[str, ...] = ()
    """Repeating jobs that could not be read, and why."""
    called: bool = True
    """Whether the server was called; not if there is nothing for this duty to do."""

    @property
    def woken(self) -> int:
        """Deprecated: use `unparked`."""
        renamed("DutyReport", "woken", "unparked")
        return self.unparked


@dataclass(slots=True)
class RepairReport:
    """The report of `repair`: how much it checked, and what it mended (kind of damage -> ids; normally empty)."""

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
