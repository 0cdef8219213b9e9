"""Running jobs: their hard timeouts, their cancellation, and the report at the end of each.

Jobs that were taken together (a row) use one slot: the next one starts when the one before it has completed. If it ends
in any other way, or takes long, or the worker closes, those behind it are given back.

A row is one task: a task for each of its jobs would cost more than everything else about running them. For the same
reason rows whose handlers hardly take any time share a task, until one of their handlers waits for something: then
those that have not begun get a new task, and none of them waits for that handler. Each job has its own context, and
what a handler does to its task does not affect the next one.

Jobs that have not begun can be taken back by the heartbeat thread (slot_runs.py, rows.py, reserve.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Any

from groupmq.client.job import Job
from groupmq.runtime.tasks import Waiting, as_coroutine_function, start_in_context
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.runners import Preparing
from groupmq.worker.running.execution import Withdrawn
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.reporter import Reporter
from groupmq.worker.running.reserve import Reserve
from groupmq.worker.running.rows import Rows
from groupmq.worker.running.runs import JobRun, RunListener, RunRow
from groupmq.worker.running.shared_task import SharedTask
from groupmq.worker.running.slot_runs import RunsInSlots
from groupmq.worker.running.stopping import end_when_left

PATIENCE, ROW_PATIENCE = 0.01, 0.05
"""Seconds that one run, and a whole row, may take. Then the jobs behind it are given back, so that other workers can
take them."""
ROW_LASTS = 2 * ROW_PATIENCE
"""Seconds after which no further job of a row is started: the event loop was too busy to check the row in time."""
_SLICE = 0.001
"""Seconds after which a row whose handlers never wait lets the rest of the program run."""


class Executor(RunsInSlots[JobRun]):
    """Runs jobs, and those that follow them in their rows, and holds a reserve that waits for slots."""

    def __init__(
        self,
        invoke: Callable[[Job], Awaitable[Any]],
        policy: OutcomePolicy,
        listener: RunListener,
        prefetch: Prefetch,
        on_end: Callable[[], None] = lambda: None,
        preparing: Preparing | None = None,
    ) -> None:
        """`on_end`: see RunsInSlots. `preparing`: called before each run begins."""
        super().__init__(policy, listener, on_end)
        self._invoke = invoke
        self._coroutine_of = as_coroutine_function(invoke)
        self._prefetch = prefetch
        self._preparing = preparing
        self._rows = Rows()
        self._reserve = Reserve(self._claim, self._row_ended, ROW_LASTS)
        self._shared = SharedTask(self._work, self._is_live, lambda: self._context.copy())
        self._check_timer: asyncio.TimerHandle | None = None

    @property
    def unstarted(self) -> int:
        return self._rows.unstarted

    def start(self, jobs: Sequence[Job], reporter: Reporter, leases_end: float, *, together: bool = False) -> None:
        """Run these one after the other, as long as each of them completes. Their outcomes go to `reporter`.

        `leases_end`: when their leases end at the earliest, by this process's clock. `together`: they were taken as a
        row, even if only one is left of it.
        """
        row = RunRow(jobs, reporter, leases_end)
        if len(jobs) > 1 or together:
            self._list(row)
        run = self._claim(row, time.monotonic())
        if run is None:
            self._row_ended(row)
        else:
            self._begin_soon(run)

    def _list(self, row: RunRow) -> None:
        """Add a row to the rows whose jobs can be withdrawn."""
        for job in self._rows.add(row):
            self._release(job, row.reporter)
        if self._check_timer is None:
            self._check_timer = asyncio.get_running_loop().call_later(PATIENCE, self._check_rows)

    def reserve(self, jobs: Sequence[Job], reporter: Reporter, leases_end: float) -> None:
        """Run these, one after the other, when there is a slot for them."""
        row = RunRow(jobs, reporter, leases_end)
        self._reserve.add(row)
        self._list(row)
        if self._reserve.is_wanted(row):
            self.give_back(row)

    def start_reserved(self, slots: int) -> None:
        """Start what is reserved in this many free slots."""
        while slots > 0 and self._reserve:
            run = self._reserve.next()
            if run is not None:
                self._begin_soon(run)
            slots -= 1

    def _begin_soon(self, run: JobRun) -> None:
        """Begin a run in the next iteration of the event loop."""
        if self._prefetch.shares_tasks:
            self._shared.add(run)
        else:
            self._start_task(run)

    def _start_task(self, run: JobRun) -> None:
        """Make a new task for this run and the rest of its row."""
        run.task = asyncio.get_running_loop().create_task(self._work(run), context=self._context.copy())

    def _claim(self, row: RunRow, now: float) -> JobRun | None:
        """Give the next job of a row a slot, at the time `now`. None if there is no next one."""
        try:
            job = row.unstarted.popleft()
        except IndexError:
            return None
        run = row.run = JobRun(job, row, now)
        self.runs[run.fence] = run
        self._unbegun.add(run)
        return run

    async def _work(self, run: JobRun, context: Context | None = None) -> None:
        """Run a row, and then other runs that have not begun. `context`: of the first job; None = that of the task.

        Everything a handler can raise is caught: a SystemExit that escaped would end the whole worker.
        """
        task, slice_began, now = asyncio.current_task(), time.monotonic(), time.monotonic
        while True:
            run.task, begins = task, now()
            if begins - slice_began > _SLICE:
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:  # the cancellation was meant for an earlier handler of this task
                    self._start_task(run)
                    return
                slice_began = begins = now()
            if self._preparing is not None:
                if not await self._prepare(self._preparing, run):
                    return
                begins = now()
            begun = self._begin(run, begins)
            try:
                if not begun:
                    value = None
                elif context is None:
                    value = await self._invoke(run.job)
                else:
                    value = start_in_context(context, self._coroutine_of(run.job))
                    if isinstance(value, Waiting):
                        self._shared.start()  # the runs that have not begun must not wait for this handler
                        value = await value
            except GeneratorExit:
                end_when_left(task, partial(self._end_by, run))
                raise
            except BaseException as error:
                self._end_by(run, error)
                return
            following = self._end(run, value) if begun else self._drop(run)
            is_tainted = task is None or bool(task.cancelling())
            if following is not None and is_tainted:
                # This task has a pending cancellation, so the next job runs in a new task.
                self._start_task(following)
                following = None
            if following is None and not is_tainted:
                following = self._shared.next()
            if following is None:
                self._shared.start()
                return
            run, context = following, self._context.copy()

    async def _prepare(self, preparing: Preparing, run: JobRun) -> bool:
        """Prepare the call of the handler. Meanwhile the run has not begun, and may be taken back."""
        self._shared.start()  # the other runs that have not begun must not wait for this
        try:
            await preparing.prepare()
        except asyncio.CancelledError:  # by the closing worker, or meant for an earlier handler of this task
            if self._is_live(run):
                self._start_task(run)
            return False
        return True

    def _end_by(self, run: JobRun, error: BaseException) -> None:
        """End a run that raised, or that was stopped; the next one runs in a new task."""
        following = self._end(run, error=error)
        if following is not None:
            self._start_task(following)
        self._shared.start()

    def _drop(self, run: JobRun) -> JobRun | None:
        """Free the slot of a run that does not begin, and give back the jobs behind it; returns the next run."""
        if self._preparing is not None:
            self._preparing.unprepare()
        if self.runs.pop(run.fence, None) is None:
            return None
        row = run.row
        row.run = None
        self._row_ended(row)
        row.reporter.slot_freed()
        self._on_end()
        return self._reserve.next() if self._reserve else None

    def _end(self, run: JobRun, value: Any = None, error: BaseException | None = None) -> JobRun | None:
        """Report how a run ended; returns the next run of its row or of the reserve, if one is to start."""
        job, row = run.job, run.row
        if self.runs.pop(run.fence, None) is None:
            if run in self._abandoned:
                self._abandoned.discard(run)
                run.report(self._policy.ended(job))
            return None
        if run.timer is not None:
            run.end_timer()
        if error is None and run.stop_reason is None:  # most runs: what `ending` would decide, without the call
            report: RunReport | None = self._policy.returned(job, value)
        else:
            report = self._policy.ending(job, value, error, run.stop_reason, abandoned=run.abandoned, begun=run.begun)
        row.run = None  # a reference cycle would keep both until the garbage collector runs
        now = time.monotonic()
        self._prefetch.saw(now - (run.begun_at or run.slot_at))  # `busy_since` without the call
        # After a freeze of the process, leases may have expired: a job that waited too long here is not started.
        completed = report is not None and report.kind == "completed"
        if row.unstarted and report is not None and completed and now - row.came_at < ROW_LASTS:
            following = self._claim(row, now)
            if following is not None:
                row.reporter.report_later(report)
                return following
        following = self._reserve.next() if self._reserve else None
        # The outcome of a job that may not run again, or that has run before, is sent at once, not with later ones.
        waits = completed and job.max_attempts > 1 and job.attempt == 1
        if following is not None and report is not None and waits and following.row.reporter is row.reporter:
            row.reporter.report_later(report)
        else:
            self._deliver(run, report)
        if run.abandoned:
            self._abandoned.add(run)
        elif report is None:
            run.report(self._policy.ended(job))
        self._row_ended(row)
        return following

    def _deliver(self, run: JobRun, report: RunReport | None) -> None:
        """Hand the outcome of a run to its reporter; None: the lease is lost, so there is nothing to report."""
        if report is None:
            self._listener.lease_lost(run.job)
            run.reporter.slot_freed()
        else:
            if report.error is not None:
                self._handler_raised(report)
            run.reporter.report(report)
        self._on_end()

    # Jobs that go back

    def _row_ended(self, row: RunRow) -> None:
        self.give_back(row)
        self._rows.discard(row)
        row.reporter.row_ended()

    def give_back(self, row: RunRow) -> None:
        """Give back the unstarted jobs of a row."""
        while row.unstarted:
            with contextlib.suppress(IndexError):  # the heartbeat thread may have taken the last one
                job = row.unstarted.popleft()
                self._release(job, row.reporter)

    def _give_back_followers(self, run: JobRun) -> None:
        self.give_back(run.row)

    def give_back_all(self) -> None:
        self._reserve.end(math.inf)
        for row in self._rows:
            self.give_back(row)

    def _check_rows(self) -> None:
        """Report long runs as begun, and give back the jobs behind them so that other workers can take them."""
        self._check_timer = None
        now = time.monotonic()
        for row in self._rows:
            run = row.run
            if run is None:
                continue
            lasted = now - run.busy_since()
            if lasted >= PATIENCE or now - row.came_at >= ROW_PATIENCE:
                self._rows.discard(row)
                self._prefetch.saw(lasted)
                self.give_back(row)
                if run.begun:
                    run.report_begun(self._policy)
        if self._reserve:
            # If no slot has become free for a while, the whole reserve goes back.
            busy = max((run.busy_since() for run in self.runs.values()), default=now)
            self._reserve.end(now if now - busy >= PATIENCE else now - ROW_PATIENCE)
        if self._rows:
            self._check_timer = asyncio.get_running_loop().call_later(PATIENCE, self._check_rows)

    def give_back_reserved(self, fence: int) -> None:
        """Give back the jobs that were reserved under fences up to this one: another worker is idle."""
        for job, reporter in self.withdraw_reserved(fence):
            self._release(job, reporter)

    # From the heartbeat thread

    def withdraw(self, fences: Sequence[int]) -> Withdrawn:
        """Take back these jobs and those behind them (Rows.withdraw), unless they have begun."""
        return self._rows.withdraw(fences) + super().withdraw(fences)

    def withdraw_all(self) -> Withdrawn:
        return super().withdraw_all() + self._rows.withdraw_all()

    def withdraw_reserved(self, fence: int) -> Withdrawn:
        """Take back what was reserved under fences up to this one. Jobs that come later go back as they come."""
        return self._reserve.withdraw(fence)
