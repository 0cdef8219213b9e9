"""A queue in one row: its jobs, its rate, how long jobs wait, its workers, and warnings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from groupmq import ConfigurationError
from groupmq.dashboard.documents.attempts import AllowedAttempts, attempts
from groupmq.dashboard.documents.held import Held, held
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.starting import Starting, starting
from groupmq.dashboard.documents.warning import QueueWarning, warnings

if TYPE_CHECKING:
    from groupmq import GroupMQError, JobCounts, Metrics, MinuteStats, Queue, ServerInfo, WorkerInfo

SPARK_MINUTES = 60
LOOK = 8
"""The most calls that look for the longest waits, which read up to 800 running jobs and held groups."""
_RATE_MINUTES = 5


@record
class Counts:
    active: int
    waiting: int
    delayed: int
    completed: int
    failed: int
    total: int
    """Live ones: active, waiting and delayed."""
    groups: int


@record
class QueueRow:
    name: str
    display_name: str
    description: str
    paused: bool
    counts: Counts
    rate: float
    """Completed jobs per second, over the last five minutes."""
    failed_rate: float
    sparkline: list[int]
    """Completed per minute, oldest first."""
    failed_sparkline: list[int]
    oldest_wait: float | None
    """Seconds that the longest-waiting job which could start now has waited."""
    held: Held | None
    """The group that has been held longest; one that is paused only if no other is held."""
    held_group: str | None
    blocked: int
    """Groups that a failed job blocks until it is retried, skipped or removed."""
    longest_blocked: float | None
    """Seconds that the group which was blocked first has been blocked."""
    breakers_open: int
    """Groups whose breaker is open: they rest, or try one job."""
    longest_breaker_open: float | None
    """Seconds that the breaker which opened first has been open."""
    workers: int
    slots: int
    busy: int
    use: float | None
    """Share of the slots that are busy, 0 to 1; None without workers."""
    starting: Starting | None
    """Why a job that could start has not started yet; None if the queue has no live job."""
    attempts: AllowedAttempts
    warnings: list[QueueWarning]
    error: str | None
    """Why the queue could not be read; the numbers above are empty then."""


async def queue_row(
    queue: Queue, server: ServerInfo | None, *, display_name: str = "", description: str = ""
) -> QueueRow:
    """Read the row with a bounded number of calls, whatever the size of the queue."""
    counts, metrics, workers, paused = await asyncio.gather(
        queue.get_job_counts(), queue.get_metrics(SPARK_MINUTES, look=LOOK), queue.get_workers(), queue.is_paused()
    )
    slots = sum(worker.concurrency for worker in workers)
    longest = metrics.longest_held_unpaused or metrics.longest_held
    return QueueRow(
        name=queue.name,
        display_name=display_name or queue.name,
        description=description,
        paused=paused,
        counts=_counts(counts),
        rate=rate(metrics.series, "completed"),
        failed_rate=rate(metrics.series, "failed"),
        sparkline=[minute.completed for minute in metrics.series],
        failed_sparkline=[minute.failed for minute in metrics.series],
        oldest_wait=metrics.oldest_startable_wait,
        held=held(longest),
        held_group=None if longest is None else longest.group_id,
        blocked=metrics.groups_blocked,
        longest_blocked=metrics.longest_blocked,
        breakers_open=metrics.breakers_open,
        longest_breaker_open=metrics.longest_breaker_open,
        workers=len(workers),
        slots=slots,
        busy=counts.active,
        use=min(1.0, counts.active / slots) if slots else None,
        starting=starting(
            paused=paused,
            workers=len(workers),
            slots=slots,
            active=counts.active,
            rate_limit=queue.options.rate_limit,
        )
        if counts.total
        else None,
        attempts=attempts(queue.options.max_attempts, workers),
        warnings=_warnings(counts, metrics, workers, server, paused=paused),
        error=None,
    )


def unreadable_row(name: str, error: GroupMQError, *, display_name: str = "", description: str = "") -> QueueRow:
    """The row of a queue that cannot be read: the others must still be shown."""
    return QueueRow(
        name=name,
        display_name=display_name or name,
        description=description,
        paused=False,
        counts=Counts(active=0, waiting=0, delayed=0, completed=0, failed=0, total=0, groups=0),
        rate=0.0,
        failed_rate=0.0,
        sparkline=[],
        failed_sparkline=[],
        oldest_wait=None,
        held=None,
        held_group=None,
        blocked=0,
        longest_blocked=None,
        breakers_open=0,
        longest_breaker_open=None,
        workers=0,
        slots=0,
        busy=0,
        use=None,
        starting=None,
        attempts=AllowedAttempts(most=None, by_worker={}),
        warnings=[],
        error=f"This queue cannot be read: {_why(error)}",
    )


def _why(error: GroupMQError) -> str:
    """Only the message of a configuration error is shown: other messages may name the server."""
    return str(error) if isinstance(error, ConfigurationError) else type(error).__name__


def _counts(counts: JobCounts) -> Counts:
    return Counts(
        active=counts.active,
        waiting=counts.waiting,
        delayed=counts.delayed,
        completed=counts.completed,
        failed=counts.failed,
        total=counts.total,
        groups=counts.unique_groups,
    )


def rate(series: Sequence[MinuteStats], what: str, now: datetime | None = None) -> float:
    """Per second, from the whole minutes before the one under way, which is too young to count.

    For a queue that is younger than that: from the first minute in which it did anything, the one under way included.
    """
    busy = [n for n, minute in enumerate(series) if minute.completed or minute.failed or minute.retried]
    if not busy:
        return 0.0
    last = len(series) - 1
    begin = max(busy[0], last - _RATE_MINUTES)
    under_way = ((now or datetime.now(UTC)) - series[-1].at).total_seconds()
    counts: list[int] = [getattr(minute, what) for minute in series]
    if begin == busy[0] and begin > 0:
        return sum(counts[begin:]) / (60 * (last - begin) + min(60.0, max(1.0, under_way)))
    return sum(counts[begin:last]) / (60 * (last - begin))


def _warnings(
    counts: JobCounts, metrics: Metrics, workers: list[WorkerInfo], server: ServerInfo | None, *, paused: bool
) -> list[QueueWarning]:
    return warnings(
        counts,
        workers=len(workers),
        paused=paused,
        longest_held=metrics.longest_held,
        longest_held_unpaused=metrics.longest_held_unpaused,
        blocked=metrics.groups_blocked,
        breakers_open=metrics.breakers_open,
        oldest_wait=metrics.oldest_startable_wait,
        dropped=_dropped(metrics.series),
        server=server,
    )


def _dropped(series: list[MinuteStats]) -> int:
    return sum(minute.retention_dropped for minute in series)
