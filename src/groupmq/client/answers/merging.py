"""The answers of the partitions of a queue, combined into the answer of the whole queue. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from groupmq.core.survey_views import GroupActivity, JobTotals, LiveWorker, QueueSurvey
from groupmq.core.views import (
    DutyReport,
    GroupInfo,
    HeldGroup,
    Histogram,
    JobCounts,
    Metrics,
    MinuteStats,
    RepairReport,
    WorkerInfo,
)

_COUNTERS = (
    *("completed", "failed", "retried", "stalled", "lost", "rate_limited", "lease_lost"),
    *("groups_ready", "groups_parked", "groups_paused", "groups_blocked", "breakers_open"),
)
_OF_MINUTES = ("completed", "failed", "retried", "stalled", "rate_limited", "started", "retention_dropped")


def counts(found: Sequence[JobCounts]) -> JobCounts:
    return JobCounts(*(sum(getattr(one, name.name) for one in found) for name in fields(JobCounts)))


def histogram(found: Sequence[Histogram]) -> Histogram:
    """Add up histograms. All of them have the bounds of the format, but an empty one may have fewer."""
    full = max(found, key=lambda one: len(one.bounds))
    same = [one for one in found if one.bounds == full.bounds]
    return Histogram(full.bounds, tuple(map(sum, zip(*(one.buckets for one in same), strict=True))), _sum(same, "sum"))


def metrics(found: Sequence[Metrics]) -> Metrics:
    waits = [one.oldest_startable_wait for one in found if one.oldest_startable_wait is not None]
    oldest = max(waits, default=None)
    return replace(
        found[0],
        **{name: _sum(found, name) for name in _COUNTERS},
        oldest_wait=oldest,
        oldest_startable_wait=oldest,
        longest_held=longest_held(one.longest_held for one in found),
        longest_held_unpaused=longest_held(one.longest_held_unpaused for one in found),
        longest_blocked=max((one.longest_blocked for one in found if one.longest_blocked is not None), default=None),
        longest_breaker_open=max(
            (one.longest_breaker_open for one in found if one.longest_breaker_open is not None), default=None
        ),
        wait=histogram([one.wait for one in found]),
        run=histogram([one.run for one in found]),
        series=series([one.series for one in found]),
    )


def longest_held(found: Iterable[HeldGroup | None]) -> HeldGroup | None:
    return max((one for one in found if one is not None), key=lambda one: one.wait, default=None)


def series(found: Sequence[Sequence[MinuteStats]]) -> list[MinuteStats]:
    """Merge series by the time of each span: the clocks of two servers need not be in the same minute."""
    by_time: dict[object, list[MinuteStats]] = {}
    for one in found:
        for span in one:
            by_time.setdefault(span.at, []).append(span)
    length = max(map(len, found))
    return [_span(by_time[at]) for at in sorted(by_time, key=str)][-length:] if length else []


def _span(found: Sequence[MinuteStats]) -> MinuteStats:
    wait, run = histogram([one.wait for one in found]), histogram([one.run for one in found])
    started, ended = _sum(found, "started"), sum(one.completed + one.failed + one.retried for one in found)
    sums: dict[str, Any] = {name: _sum(found, name) for name in _OF_MINUTES}
    return replace(
        found[0],
        **sums,
        mean_wait=wait.sum / started if started else 0.0,
        mean_run=run.sum / ended if ended else 0.0,
        wait=wait,
        run=run,
        minutes=max(one.minutes for one in found),
    )


def workers(found: Iterable[WorkerInfo]) -> list[WorkerInfo]:
    """List each worker once: it reports in each partition the jobs that it runs there."""
    by_id: dict[str, WorkerInfo] = {}
    for one in found:
        seen = by_id.get(one.id)
        by_id[one.id] = (
            one
            if seen is None
            else replace(
                max(seen, one, key=lambda info: info.last_seen),
                current_jobs=seen.current_jobs + one.current_jobs,
                jobs=[*seen.jobs, *one.jobs][:100],
                blocked=max(seen.blocked, one.blocked),
            )
        )
    return sorted(by_id.values(), key=lambda info: info.id)


def duty(found: Sequence[DutyReport]) -> DutyReport:
    waits = [one.next_in for one in found if one.next_in is not None]
    return DutyReport(
        done=_sum(found, "done"),
        next_in=min(waits, default=None),
        added=_sum(found, "added"),
        promoted=_sum(found, "promoted"),
        unparked=_sum(found, "unparked"),
        stalled=tuple(stalled for one in found for stalled in one.stalled),
        expired=tuple(expired for one in found for expired in one.expired),
        removed=_sum(found, "removed"),
        gone_workers=tuple(dict.fromkeys(worker for one in found for worker in one.gone_workers)),
        swept=_sum(found, "swept"),
        errors=tuple(error for one in found for error in one.errors),
        called=any(one.called for one in found),
    )


def repair(found: Iterable[RepairReport]) -> RepairReport:
    whole = RepairReport()
    for one in found:
        whole.jobs += one.jobs
        whole.groups += one.groups
        for kind, ids in one.mended.items():
            whole.mended.setdefault(kind, []).extend(ids)
    return whole


def survey(found: Sequence[QueueSurvey], groups: int, runs: int, failures: int) -> QueueSurvey:
    def busy(one: GroupActivity) -> tuple[int, str]:
        return -(one.waiting + one.active), one.id or ""

    def late(one: GroupActivity) -> tuple[float, str]:
        return -(one.waited or 0.0), one.id or ""

    def blocked_first(one: GroupInfo) -> tuple[float, str]:
        return one.blocked_since.timestamp() if one.blocked_since else 0.0, one.id

    def opened_first(one: GroupInfo) -> tuple[float, str]:
        return one.breaker_since.timestamp() if one.breaker_since else 0.0, one.id

    waits = [one.oldest_wait for one in found if one.oldest_wait is not None]
    return QueueSurvey(
        at=max(one.at for one in found),
        paused=all(one.paused for one in found),
        counts=counts([one.counts for one in found]),
        totals=totals([one.totals for one in found]),
        last_hour=totals([one.last_hour for one in found]),
        oldest_wait=max(waits, default=None),
        longest_held=longest_held(one.longest_held for one in found),
        longest_held_unpaused=longest_held(one.longest_held_unpaused for one in found),
        busiest=tuple(sorted((group for one in found for group in one.busiest), key=busy)[:groups]),
        longest_waiting=tuple(sorted((group for one in found for group in one.longest_waiting), key=late)[:groups]),
        runs=tuple(sorted((run for one in found for run in one.runs), key=lambda run: -run.running_for)[:runs]),
        failures=tuple(sorted((job for one in found for job in one.failures), key=lambda job: job.ago)[:failures]),
        workers=tuple(live_workers(worker for one in found for worker in one.workers)),
        cursor=cursors([one.cursor for one in found]),
        groups_blocked=_sum(found, "groups_blocked"),
        blocked=tuple(sorted((group for one in found for group in one.blocked), key=blocked_first)[:groups]),
        breakers_open=_sum(found, "breakers_open"),
        breakers=tuple(sorted((group for one in found for group in one.breakers), key=opened_first)[:groups]),
    )


def totals(found: Sequence[JobTotals]) -> JobTotals:
    return JobTotals(*(_sum(found, name) for name in ("added", "completed", "failed", "retried")))


def live_workers(found: Iterable[LiveWorker]) -> list[LiveWorker]:
    merged: dict[tuple[str, str, int], LiveWorker] = {}
    for one in found:
        key = one.name, one.host, one.pid
        seen = merged.get(key)
        merged[key] = one if seen is None else replace(one, busy=seen.busy + one.busy, seen=min(seen.seen, one.seen))
    return list(merged.values())


def cursors(found: Sequence[str]) -> str:
    """The cursors of all partitions as one; "0" = all of them start again."""
    return ",".join(found) if any(one != "0" for one in found) else "0"


def cursor_of_each(cursor: str, n: int) -> list[str]:
    """The reverse of `cursors`. With a cursor of another number of partitions, all start again."""
    found = cursor.split(",")
    return found if len(found) == n else ["0"] * n


def _sum(found: Sequence[object], name: str) -> int:
    total: int = sum(getattr(one, name) for one in found)
    return total
