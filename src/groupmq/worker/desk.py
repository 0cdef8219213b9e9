"""The desk between fetcher and executor: takes jobs on, sends their outcomes, and tells listeners what happened."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from groupmq.commands import Policy, Stalled, Taken
from groupmq.connection import Connection, WakeConnection
from groupmq.emitter import Emitter
from groupmq.errors import GroupMQError, said
from groupmq.job import Job
from groupmq.operations import Operations
from groupmq.options import WorkerOptions
from groupmq.worker.executor import Executor
from groupmq.worker.fetcher import Fetcher, Lane
from groupmq.worker.outcome import Judge, Report
from groupmq.worker.pace import Pace

EVENTS = (
    "ready",
    "active",
    "completed",
    "retrying",
    "failed",
    "stalled",
    "progress",
    "lease-lost",
    "error",
    "graceful-timeout",
    "drained",
    "closed",
)


@dataclass(slots=True)
class WorkerMetrics:
    """Counters of one worker object."""

    name: str
    completed: int = 0
    retried: int = 0
    failed: int = 0
    released: int = 0
    limited: int = 0
    lease_lost: int = 0
    stalled_seen: int = 0
    connection_errors: int = 0
    advances: int = 0
    running: int = 0
    uptime: float = 0.0

    @property
    def processed(self) -> int:
        """Runs that ended with an outcome: completed, to be retried, or failed."""
        return self.completed + self.retried + self.failed


class Desk:
    """The jobs of one worker and what becomes of them. `changed` is set whenever that may have changed."""

    def __init__(
        self,
        worker_id: str,
        options: WorkerOptions,
        operations: Operations[Job],
        connection: Connection,
        invoke: Callable[[Job], Awaitable[Any]],
    ) -> None:
        self._options = options
        self._logger = options.logger
        self._operations = operations
        self.policy = Policy(options.max_attempts, options.max_stalled, operations.options.keep)
        self.events = Emitter(EVENTS, options.logger)
        self._hear_active, self._hear_completed = map(self.events.listeners, ("active", "completed"))
        self.metrics = WorkerMetrics(options.name)
        self.changed = asyncio.Event()
        self._judge = Judge(operations.options, options.backoff)
        self.pace = Pace(options.prefetch)
        self.executor = Executor(invoke, self._judge, self, self.pace)
        keys, exclusive = connection.dialogue.keys, operations.options.exclusive
        markers = [keys.wake, keys.hail(worker_id)] if exclusive else [keys.wake]
        self.fetcher = Fetcher(
            self,
            connection,
            lambda: WakeConnection(connection.endpoint, markers, options.blocking_timeout),
            worker=worker_id,
            concurrency=options.concurrency,
            lease_ms=operations.options.job_timeout_ms,
            policy=self.policy,
            longest_sleep=options.stalled_interval,
            atomic=options.atomic_completion,
            batch=options.batch_size if exclusive else None,
        )
        self.run_completed = self.fetcher.report_later
        self.last_reached = time.monotonic()
        self._unreached_since: float | None = None
        self.gave_up: BaseException | None = None
        self.last_beat: Callable[[], float] = lambda: 0.0
        self.heard_of_tick: Callable[[int], None] = lambda _: None
        self._open = True
        self._end = math.inf
        self._worked = False

    # Closing

    def shut(self) -> None:
        """Take nothing on from this moment."""
        self._open = False
        self.fetcher.stop_taking()
        self.executor.give_back_all()
        self.changed.set()

    def give_back(self) -> None:
        """Cancel every run; its job goes back to its place, no attempt used."""
        for run in list(self.executor.runs.values()):
            self.events.emit("graceful-timeout", run.job)
            self.executor.stop(run, "closing")

    def hurry(self, timeout: float) -> None:
        """What runs has this long to end. A shorter time replaces a longer one, never the other way round."""
        self._end = min(self._end, asyncio.get_running_loop().time() + timeout)
        self.changed.set()

    async def runs_ended(self, grace: float = 0.0) -> bool:
        """Wait until nothing runs; False if that takes longer than `hurry` allows, and `grace` beyond."""
        loop = asyncio.get_running_loop()
        while self.executor.runs:
            left = self._end + grace - loop.time()
            if left <= 0:
                return False
            self.changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self.changed.wait()
            except TimeoutError:
                return not self.executor.runs
        return True

    def held(self) -> list[tuple[str, int]]:
        """Every lease to renew, (id, token). Called from the heartbeat thread."""
        given_up = self.executor.given_up()
        return [lease for lease in self.executor.held() + self.fetcher.held() if lease[1] not in given_up]

    # What the fetcher asks for and tells

    def room(self) -> int:
        return self._options.concurrency - len(self.executor.runs)

    def plan(self, room: int, in_hand: int, expected: int, *, reports: bool) -> tuple[int, int]:
        return self.pace.plan(room, in_hand, self.executor.ahead + expected, reports=reports)

    def take_on(self, taken: list[Taken], rows: Sequence[int], now: int, lane: Lane) -> None:
        self._worked = True
        self.pace.took(len(taken), len(rows) or len(taken))
        at = 0
        for length in rows or repeat(1, len(taken)):
            jobs = self._read(taken[at : at + length], now)
            at += length
            if not jobs:
                continue
            if self._open:
                lane.in_hand += 1
                self.executor.start(jobs, lane, together=length > 1)
            else:
                # Taken by a call that was under way when closing began.
                for job in jobs:
                    self.fetcher.report(self._judge.released(job), lane)

    def _read(self, taken: list[Taken], now: int) -> list[Job]:
        jobs = []
        for one in taken:
            try:
                job = self._operations.job_taken(one, now, self._options.name)
            except Exception as error:
                # Not a record of ours. Its lease runs out by itself; the jobs beside it must not suffer.
                self.trouble(GroupMQError(f"job {one.id!r} cannot be read and is left alone: {said(error)}"))
                continue
            job._heard = self.progress
            jobs.append(job)
        return jobs

    def progress(self, job: Job, value: Any) -> None:
        self.events.emit("progress", job, value)

    def accepted(self, reports: Sequence[Report], now: int) -> None:
        """The server recorded outcomes: bring the job objects up to date, and tell."""
        metrics = self.metrics
        for report in reports:
            job, _, event, _, result, _ = report
            if event != "completed":
                self._accepted_other(report, now)
                continue
            metrics.completed += 1
            job.attempts_made += 1
            job.state, job._raw_result, job._finished_ms = "completed", result, now
            if self._hear_completed:
                self.events.emit("completed", job)

    def _accepted_other(self, report: Report, now: int) -> None:
        job, event = report.job, report.event
        if event == "released":
            self.metrics.released += 1
            job.state = "waiting"
        elif event == "limited":
            self.metrics.limited += 1
            job.state = "delayed" if report.yields else "waiting"
        elif event != "begun":
            self._failed(report, now)

    def _failed(self, report: Report, now: int) -> None:
        """An attempt failed, the last one or not."""
        job = report.job
        job.attempts_made += 1
        job.failed_reason, job.stacktrace = report.outcome[-2:]
        if report.event == "retrying":
            self.metrics.retried += 1
            job.state = "delayed" if report.yields else "waiting"
            self.events.emit("retrying", job, report.error)
        else:
            self.metrics.failed += 1
            job.state, job._finished_ms = "failed", now
            self.events.emit("failed", job)

    def refused(self, report: Report) -> None:
        """The server says the lease is another's: nothing of this run was recorded."""
        if report.event == "begun":
            self.executor.lease_lost(report.job.fence)  # nothing, if its end was reported meanwhile
        else:
            self._lost(report.job)

    def stalled(self, stalled: Stalled) -> None:
        """A lease, of whichever worker, expired and was taken back by a call of ours."""
        self.metrics.stalled_seen += 1
        what = "it failed for good" if stalled.final else "it runs again"
        self._logger.warning("job %s stalled: its lease expired, %s", stalled.id, what)
        self.events.emit("stalled", stalled.id, stalled.group_id)

    def reached(self) -> None:
        """The server has answered."""
        self.last_reached = time.monotonic()
        self._unreached_since = None

    def unreached(self, error: BaseException) -> None:
        """The server did not answer, or refused. Patience counts from the first time: it may have been quiet before."""
        now, patience = time.monotonic(), self._options.unreachable_timeout
        if self._unreached_since is None or self.last_beat() > self._unreached_since:
            self._unreached_since = now
        if patience is not None and self.gave_up is None and now - self._unreached_since >= patience:
            self.gave_up = error
            self.changed.set()
        self.trouble(error)

    def trouble(self, error: BaseException) -> None:
        self.metrics.connection_errors += 1
        self._logger.warning("worker %s: %s; trying again", self._options.name, error)
        self.events.emit("error", error)
        self._on_error(error, None)

    def tick(self, wait_ms: int) -> None:
        """A repeating job ticks that soon."""
        self.heard_of_tick(wait_ms)

    def dry(self) -> None:
        """Nothing is ready."""
        if self._worked and not self.executor.runs:
            self._worked = False
            self.events.emit("drained")
        self.changed.set()

    def at_rest(self) -> None:
        """Nothing to report, nothing under way."""
        self.changed.set()

    # What the executor tells

    def run_starts(self, job: Job) -> None:
        if self._hear_active:
            self.events.emit("active", job)

    def run_goes_on(self, report: Report, lane: Lane) -> None:
        self.fetcher.report(report, lane)

    def row_ended(self, lane: Lane) -> None:
        lane.in_hand -= 1

    def run_ended(self, job: Job, report: Report | None, lane: Lane) -> None:
        if report is None:
            self._lost(job)
        else:
            if report.error is not None and report.event != "limited":
                self._on_error(report.error, job)
            self.fetcher.report(report, lane)
        self.changed.set()

    def _lost(self, job: Job) -> None:
        self.metrics.lease_lost += 1
        self._logger.warning(
            "worker %s lost the lease of job %s; its outcome was not recorded", self._options.name, job.id
        )
        self.events.emit("lease-lost", job)

    def _on_error(self, error: BaseException, job: Job | None) -> None:
        if self._options.on_error is None:
            return
        try:
            outcome = self._options.on_error(error, job)
            if inspect.isawaitable(outcome):
                self.events.watch("on_error", outcome)
        except BaseException as broken:
            self._logger.error("on_error raised %s: %s", type(broken).__name__, broken)
