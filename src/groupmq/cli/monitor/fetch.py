"""One look at a queue: CALLS calls to the server, however deep the queue is, and none of them writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from groupmq import commands
from groupmq.cli.common import UNSET_ATTEMPTS, Target
from groupmq.cli.monitor.look import Failure, Group, Look, Run, Totals, Worker
from groupmq.cli.reading import READABLE
from groupmq.commands import Minute, Stats, Survey, SurveyedFailure, SurveyedGroup, SurveyedRun
from groupmq.errors import ConnectionLost
from groupmq.job import Job
from groupmq.operations import Steps, one
from groupmq.operations.measuring import worker_info
from groupmq.options import Retention
from groupmq.queue import Queue
from groupmq.views import JobCounts, WorkerInfo

T = TypeVar("T")
CALLS = 4
"""counts, stats, series, survey; one more while a job is inspected."""
GROUPS, RUNS, FAILURES = 20, 50, 50
"""How many of each a look tells at most."""
PATIENCE = 5.0
"""Seconds a look or an action may take; then the server counts as out of reach."""


class Watcher:
    """Looks at a queue, and does what a key asked for."""

    def __init__(self, target: Target, name: str) -> None:
        self.queue = Queue(
            name,
            target.url,
            prefix=target.prefix,
            max_attempts=UNSET_ATTEMPTS,
            keep_completed=Retention(),
            keep_failed=Retention(),
            serializer=READABLE,
        )
        self.where = self.queue.connection.endpoint.where
        self.queue.connection.dialogue.accept_stored_settings(make=False)
        self._cursor = "0"
        self._again: Sequence[str] = ()

    async def look(self) -> Look:
        found = await self._run(look(self._cursor, self._again))
        self._cursor = found.cursor
        # What was found large stays in view, while the pages go round.
        self._again = list({group.id or "" for group in (*found.busiest, *found.most_delayed)})
        return found

    async def job(self, job_id: str) -> Job | None:
        return await self._run(self.queue.operations.get_job(job_id))

    async def switch(self, *, paused: bool) -> None:
        await self._run(one(commands.switch(paused=paused)))

    async def retry(self, job_id: str) -> None:
        await self._run(self.queue.operations.retry(job_id))

    async def close(self) -> None:
        await self.queue.close()

    async def _run(self, steps: Steps[T]) -> T:
        """Carry out an operation without trying again: the next look is the next try."""
        try:
            async with asyncio.timeout(PATIENCE):
                call = next(steps)
                while True:
                    call = steps.send(await self.queue.connection.call(call, 0.0))
        except StopIteration as stop:
            result: T = stop.value
            return result
        except TimeoutError as error:
            raise ConnectionLost(f"the server at {self.where} cannot be reached: no answer") from error


def look(cursor: str, again: Sequence[str]) -> Steps[Look]:
    """Look at everything a frame shows. `cursor` and `again` are of the groups, and come from the look before."""
    active, waiting, delayed, completed, failed, groups, paused, *_ = yield commands.counts()
    stats: Stats = yield commands.stats()
    _, minutes = yield commands.series(60)
    found: Survey = yield commands.survey(cursor, again, groups=GROUPS, runs=RUNS, failures=FAILURES)
    workers = sorted((worker_info(*pair) for pair in stats.workers.items()), key=lambda one: (one.name, one.id))
    names = {worker.id: worker.name for worker in workers}
    live, so_far = active + waiting + delayed, stats.counters
    return Look(
        at=datetime.fromtimestamp(stats.now / 1000, UTC),
        paused=paused == 1,
        counts=JobCounts(active, waiting, delayed, completed, failed, live, groups),
        totals=Totals(live + so_far.processed + so_far.failed, so_far.processed, so_far.failed, so_far.retried),
        last_hour=_in_all(minutes),
        oldest_wait=None if stats.oldest_ms < 0 else stats.oldest_ms / 1000,
        busiest=tuple(map(_group, found.busiest)),
        most_delayed=tuple(map(_group, found.most_delayed)),
        runs=tuple(_run(run, found.now, names) for run in found.runs),
        failures=tuple(_failure(failure, found.now, names) for failure in found.failures),
        workers=tuple(_living(workers, stats.now)),
        cursor=found.cursor,
    )


def _in_all(minutes: Sequence[Minute]) -> Totals:
    return Totals(0, *(sum(getattr(minute, name) for minute in minutes) for name in ("processed", "failed", "retried")))


def _group(found: SurveyedGroup) -> Group:
    waited, held = (None if ms < 0 else ms / 1000 for ms in (found.waited_ms, found.held_ms))
    return Group(found.id or None, found.place, found.waiting, found.active, found.delayed, waited, held)


def _run(run: SurveyedRun, now: int, names: Mapping[str, str]) -> Run:
    worker = names.get(run.worker, run.worker)
    return Run(run.id, run.group_id or None, run.attempt, _since(now, run.started_ms), worker)


def _failure(found: SurveyedFailure, now: int, names: Mapping[str, str]) -> Failure:
    ago, worker = _since(now, found.at_ms), names.get(found.worker, found.worker)
    return Failure(found.id, found.attempt, found.error, ago, found.final, worker, found.state or None)


def _living(workers: Iterable[WorkerInfo], now: int) -> Iterator[Worker]:
    """Those heard of within two heartbeats, as `get_workers` has it."""
    for info in workers:
        seen = now / 1000 - info.last_seen.timestamp()
        if seen <= 2 * info.heartbeat:
            yield Worker(info.name, info.host, info.pid, info.current_jobs, info.concurrency, max(0.0, seen))


def _since(now: int, ms: int) -> float:
    return max(0, now - ms) / 1000
