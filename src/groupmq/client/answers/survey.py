"""A survey of a queue, put together from the answers of its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from groupmq.client.answers.measures import held_group, longer, worker_info
from groupmq.core.durations import instant_of
from groupmq.core.survey_views import GroupActivity, JobTotals, LiveWorker, QueueSurvey, RecentFailure, RunningJob
from groupmq.core.views import GroupInfo, JobCounts, WorkerInfo
from groupmq.protocol.commands import Minute, Stats, Survey, SurveyedFailure, SurveyedGroup, SurveyedRun, Waits


def survey_of(
    counts: JobCounts,
    stats: Stats,
    minutes: Sequence[Minute],
    found: Survey,
    waits: Waits,
    blocked: Sequence[GroupInfo],
    breakers: Sequence[GroupInfo],
    *,
    paused: bool,
) -> QueueSurvey:
    workers = sorted((worker_info(*pair) for pair in stats.workers.items()), key=lambda one: (one.name, one.id))
    names = {worker.id: worker.name for worker in workers}
    so_far = stats.counters
    return QueueSurvey(
        at=instant_of(stats.now),
        paused=paused,
        counts=counts,
        totals=JobTotals(
            counts.total + so_far.completed + so_far.failed, so_far.completed, so_far.failed, so_far.retried
        ),
        last_hour=_sum(minutes),
        oldest_wait=None if waits.startable is None else waits.startable.waited_ms / 1000,
        longest_held=held_group(longer(waits.held, waits.paused)),
        longest_held_unpaused=held_group(waits.held),
        busiest=tuple(map(_group, found.busiest)),
        longest_waiting=tuple(map(_group, found.most_delayed)),
        runs=tuple(_run(run, found.now, names) for run in found.runs),
        failures=tuple(_failure(failure, found.now, names) for failure in found.failures),
        workers=tuple(_living(workers, stats.now, waits.running)),
        cursor=found.cursor,
        groups_blocked=stats.blocked,
        blocked=tuple(blocked),
        breakers_open=stats.opened,
        breakers=tuple(breakers),
    )


def _sum(minutes: Sequence[Minute]) -> JobTotals:
    names = ("completed", "failed", "retried")
    return JobTotals(0, *(sum(getattr(minute, name) for minute in minutes) for name in names))


def _group(found: SurveyedGroup) -> GroupActivity:
    waited, held = (None if ms < 0 else ms / 1000 for ms in (found.waited_ms, found.held_ms))
    return GroupActivity(found.id or None, found.state, found.waiting, found.active, found.delayed, waited, held)


def _run(run: SurveyedRun, now: int, names: Mapping[str, str]) -> RunningJob:
    worker = names.get(run.worker, run.worker)
    return RunningJob(run.id, run.group_id or None, run.attempt, _since(now, run.started_ms), worker)


def _failure(found: SurveyedFailure, now: int, names: Mapping[str, str]) -> RecentFailure:
    ago, worker = _since(now, found.at_ms), names.get(found.worker, found.worker)
    return RecentFailure(found.id, found.attempt, found.error, ago, found.final, worker, found.state or None)


def _living(workers: Iterable[WorkerInfo], now: int, running: Mapping[str, int]) -> Iterator[LiveWorker]:
    """Workers with a heartbeat as recent as `get_workers` requires. The jobs of each are counted from their leases: the
    number in its heartbeat is as old as the heartbeat."""
    for info in workers:
        seen = now / 1000 - info.last_seen.timestamp()
        if seen <= 2 * info.heartbeat:
            yield LiveWorker(info.name, info.host, info.pid, running.get(info.id, 0), info.concurrency, max(0.0, seen))


def _since(now: int, ms: int) -> float:
    return max(0, now - ms) / 1000
