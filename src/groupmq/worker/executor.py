"""Running jobs: their hard timeouts, their cancellation, and the report at the end of each.

Jobs that were taken together (a row) use one slot: the next one starts when the one before it has completed. If it ends
in any other way, or takes long, or the worker closes, those behind it are given back.

A row is one task: a task for each of its jobs would cost more than the rest of running them. Each job has a context of
its own, and whatever a handler may have done to the task it ran in does not reach the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from functools import partial
from itertools import islice
from typing import Any, Literal, Protocol

from groupmq.errors import HandlerTimeout
from groupmq.job import Job
from groupmq.tasks import within
from groupmq.worker.outcome import Judge, Report
from groupmq.worker.pace import Pace

Verdict = Literal["timeout", "lease-lost", "closing", "cancelled"]
GRACE = 1.0
"""Seconds a cancelled handler has to end before its slot is taken back without it."""
PATIENCE, ROW_PATIENCE = 0.01, 0.05
"""Seconds that one run, and a whole row, may take; then those behind go back to where others can see them wait."""
_TURN = 0.001
"""Seconds after which a row whose handlers wait for nothing lets the rest of the program have its turn."""


class Row:
    """Jobs of a group that were taken together and run one after the other. `rest` have not started."""

    __slots__ = ("jobs", "lane", "rest", "run", "started")

    def __init__(self, jobs: Sequence[Job], lane: Any) -> None:
        self.jobs = jobs
        self.lane = lane
        self.rest = deque(jobs)
        self.run: Run | None = None
        self.started = time.monotonic()


class Run:
    """One run of one job in this worker."""

    hard_end: float | None = None
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    give_up: asyncio.TimerHandle | None = None
    verdict: Verdict | None = None
    begun = False

    def __init__(self, job: Job, row: Row) -> None:
        self.job = job
        self.row = row
        self.started = time.monotonic()
        if job.timeout is not None:
            self.hard_end = self.started + job.timeout


class Host(Protocol):
    """What the executor needs of the worker around it."""

    def run_starts(self, job: Job) -> None: ...
    def run_ended(self, job: Job, report: Report | None) -> None:
        """Exactly once per job; None = there is nothing to say, its lease is another's."""

    def row_ended(self, lane: Any) -> None:
        """Nothing of a row runs or waits here any more."""

    def run_goes_on(self, report: Report) -> None:
        """The server should know that this one has started."""


class Executor:
    """Holds the runs of a worker, and the jobs that will follow them in their rows."""

    def __init__(self, invoke: Callable[[Job], Awaitable[Any]], judge: Judge, host: Host, pace: Pace) -> None:
        self._invoke = invoke
        self._judge = judge
        self._host = host
        self._pace = pace
        self.context = copy_context()
        """What each handler finds; what it does to its own is not seen by the next one."""
        # By token: after a lost lease the same job may be back here while its old handler still ends.
        self.runs: dict[int, Run] = {}
        self.ahead: dict[int, Job] = {}
        self._rows: set[Row] = set()
        self._patience: asyncio.TimerHandle | None = None
        self._doomed: set[int] = set()

    def start(self, jobs: Sequence[Job], lane: Any = None, *, together: bool = False) -> None:
        """Run these one after the other, as long as each of them completes. `lane` goes with their reports.

        `together`: they were taken in a row, even if only one is left of it.
        """
        row = Row(jobs, lane)
        if len(jobs) > 1 or together:
            self._rows.add(row)
            for job in islice(jobs, 1, None):
                self.ahead[job.fence] = job
            if self._patience is None:
                self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._look_at_rows)
        self._start_task(row)

    def _start_task(self, row: Row) -> None:
        """The rest of the row, in a new task."""
        run = self._start_next(row)
        run.task = asyncio.get_running_loop().create_task(self._work(row, run), context=self.context.copy())
        if run.job.fence in self._doomed:
            self.stop(run, "cancelled")

    def _start_next(self, row: Row) -> Run:
        job = row.rest.popleft()
        run = row.run = Run(job, row)
        self.runs[job.fence] = run
        self.ahead.pop(job.fence, None)  # not before: the heartbeat must find it in one of the two
        self._host.run_starts(job)
        if job.timeout is not None:
            run.timer = asyncio.get_running_loop().call_later(job.timeout, self.stop, run, "timeout")
        return run

    async def _work(self, row: Row, run: Run) -> None:
        """Everything a handler can raise ends here; a SystemExit that got past would end the whole worker."""
        task, turn = asyncio.current_task(), time.monotonic()
        context: Context | None = None  # the first one has that of the task
        while True:
            run.task, run.begun, run.started = task, True, time.monotonic()
            try:
                if run.started - turn > _TURN:
                    await asyncio.sleep(0)
                    turn = run.started = time.monotonic()
                if context is None:
                    value = await self._invoke(run.job)
                else:
                    value = await within(context, self._call(run.job))
            except GeneratorExit:
                # Raised by the handler, or by an interpreter that throws the task away; only the first ends the task.
                if task is not None:
                    task.add_done_callback(partial(self._left, run))
                raise
            except BaseException as error:
                self._end(run, error=error)
                return
            if not self._end(run, value=value):
                return
            if task is None or task.cancelling() or row.rest[0].fence in self._doomed:
                # Something has cancelled this task, and may still do: the next one must not suffer. Or it must.
                self._start_task(row)
                return
            run, context = self._start_next(row), self.context.copy()

    def _left(self, run: Run, task: asyncio.Task[None]) -> None:
        self._end(run, error=RuntimeError("handler raised GeneratorExit"))

    async def _call(self, job: Job) -> Any:
        return await self._invoke(job)

    def _end(self, run: Run, *, value: Any = None, error: BaseException | None = None) -> bool:
        """Report how a run ended; True if the next one of its row is to start."""
        if self.runs.pop(run.job.fence, None) is None:
            return False
        if run.timer is not None:
            run.timer.cancel()
        if run.give_up is not None:
            run.give_up.cancel()
        row, report = run.row, self._report(run, value, error)
        row.run = None  # or the two hold each other until the garbage collector comes by
        self._pace.saw(time.monotonic() - run.started)
        if report is not None:
            report.lane = row.lane
            report.row_goes_on = bool(row.rest) and report.event == "completed"
        self._host.run_ended(run.job, report)
        if report is not None and report.row_goes_on:
            return True
        self.give_back(row)
        self._rows.discard(row)
        self._host.row_ended(row.lane)
        return False

    def give_back(self, row: Row) -> None:
        """Those of a row that have not started wait in their group again."""
        while row.rest:
            job = row.rest.popleft()
            del self.ahead[job.fence]
            report = self._judge.released(job)
            report.lane = row.lane
            self._host.run_ended(job, report)

    def give_back_all(self) -> None:
        for row in list(self._rows):
            self.give_back(row)

    def _look_at_rows(self) -> None:
        """A run that takes long is told to the server, and nobody waits behind it where nobody can see it."""
        self._patience = None
        now = time.monotonic()
        for row in list(self._rows):
            run = row.run
            if run is not None and (now - run.started >= PATIENCE or now - row.started >= ROW_PATIENCE):
                self._rows.discard(row)
                self._pace.saw(now - run.started)
                self.give_back(row)
                report = self._judge.begun(run.job)
                report.lane = row.lane
                self._host.run_goes_on(report)
        if self._rows:
            self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._look_at_rows)

    def _report(self, run: Run, value: Any, error: BaseException | None) -> Report | None:
        """None when there is nothing to say: the lease is another's."""
        job = run.job
        if run.verdict == "lease-lost":
            return None
        if error is None:
            return self._judge.returned(job, value)
        if run.verdict == "closing":
            return self._judge.released(job)
        if run.verdict == "cancelled":
            return self._judge.cancelled(job)
        if run.verdict == "timeout":
            return self._judge.raised(job, HandlerTimeout(job.id, job.timeout or 0.0))
        return self._judge.raised(job, error)

    def stop(self, run: Run, verdict: Verdict) -> None:
        """Cancel a run. If the handler does not end within GRACE, its slot goes on without it."""
        if run.verdict is not None or run.task is None or run.job.fence not in self.runs:
            return
        run.verdict = verdict
        self.give_back(run.row)
        run.job._end_run()
        run.task.cancel()
        if not run.begun:
            # A task that is cancelled before its first step never takes one.
            asyncio.get_running_loop().call_soon(self._abandon, run)
        run.give_up = asyncio.get_running_loop().call_later(GRACE, self._abandon, run)

    def abandon_all(self) -> None:
        """Take back every slot, whatever its handler still does."""
        for run in list(self.runs.values()):
            self._abandon(run)

    def _abandon(self, run: Run) -> None:
        self._end(run, error=asyncio.CancelledError())

    def lease_lost(self, token: int) -> None:
        if token in self.runs:
            self.stop(self.runs[token], "lease-lost")
        elif token in self.ahead:
            job = self.ahead.pop(token)
            for row in self._rows:
                if job in row.rest:
                    row.rest.remove(job)
            self._host.run_ended(job, None)

    def cancel(self, tokens: Sequence[int]) -> None:
        """These runs are to end, all that there are at the moment; some may not have begun yet."""
        self._doomed = {token for token in tokens if token not in self.runs}
        for token in tokens:
            if token in self.runs:
                self.stop(self.runs[token], "cancelled")

    def held(self) -> list[tuple[str, int]]:
        """Leases to renew, (id, token). Called from the heartbeat thread."""
        ahead = [(job.id, token) for token, job in tuple(self.ahead.items())]
        return ahead + [(run.job.id, token) for token, run in tuple(self.runs.items())]

    def given_up(self) -> set[int]:
        """Tokens of leases that must not be renewed any more. Called from the heartbeat thread.

        A handler past its hard timeout may hang the whole loop, so that its cancellation never happens: even then it
        must not hold its group for ever, nor may those of its row, who cannot be reported or given back.
        """
        now = time.monotonic()
        late = [run for run in tuple(self.runs.values()) if run.hard_end is not None and now >= run.hard_end + GRACE]
        return {job.fence for run in late for job in run.row.jobs}
