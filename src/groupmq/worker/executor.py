"""Running jobs: their hard timeouts, their cancellation, and the report at the end of each.

Jobs that were taken together (a row) use one slot: the next one starts when the one before it has completed. If it ends
in any other way, or takes long, or the worker closes, those behind it are given back.

A row is one task: a task for each of its jobs would cost more than the rest of running them. Each job has a context of
its own, and whatever a handler may have done to the task it ran in does not reach the next one.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Literal, Protocol, TypeGuard

from groupmq.errors import HandlerTimeout
from groupmq.job import Job
from groupmq.tasks import going_on
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
    started = 0.0
    """When its handler was called, or as soon as it could be."""

    def __init__(self, job: Job, row: Row) -> None:
        self.job = job
        self.row = row


class Host(Protocol):
    """What the executor needs of the worker around it."""

    def run_starts(self, job: Job) -> None: ...
    def run_ended(self, job: Job, report: Report | None, lane: Any) -> None:
        """Exactly once per job, but for those that completed; None = there is nothing to say, its lease is another's.

        `lane` is what took the job, and reports it, so that reports of a group arrive in order.
        """

    def run_completed(self, report: Report, lane: Any) -> None:
        """The same for one of a row that goes on: the report can wait for that of the next."""

    def row_ended(self, lane: Any) -> None:
        """Nothing of a row runs or waits here any more."""

    def run_goes_on(self, report: Report, lane: Any) -> None:
        """The server should know that this one has started."""


def _is_async_def(called: Callable[[Job], Awaitable[Any]]) -> TypeGuard[Callable[[Job], Coroutine[Any, Any, Any]]]:
    return bool(getattr(getattr(called, "__code__", None), "co_flags", 0) & inspect.CO_COROUTINE)


class Executor:
    """Holds the runs of a worker, and the jobs that will follow them in their rows."""

    def __init__(self, invoke: Callable[[Job], Awaitable[Any]], judge: Judge, host: Host, pace: Pace) -> None:
        self._invoke = invoke
        # Calling an `async def` runs nothing of it yet. Whatever else is called in the context of its job, by a step.
        self._begin = invoke if _is_async_def(invoke) else self._call
        self._judge = judge
        self._host = host
        self._pace = pace
        self.context = copy_context()
        """What each handler finds; what it does to its own is not seen by the next one."""
        # By token: after a lost lease the same job may be back here while its old handler still ends.
        self.runs: dict[int, Run] = {}
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
            if self._patience is None:
                self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._look_at_rows)
        self._start_task(row)

    def _start_task(self, row: Row) -> None:
        """The rest of the row, in a new task."""
        run = self._start_next(row)
        run.started = time.monotonic()
        run.task = asyncio.get_running_loop().create_task(self._work(row, run), context=self.context.copy())
        if run.job.fence in self._doomed:
            self.stop(run, "cancelled")

    def _start_next(self, row: Row) -> Run:
        job = row.rest[0]
        run = row.run = Run(job, row)
        self.runs[job.fence] = run
        row.rest.popleft()  # not before: the heartbeat must find it in one of the two
        self._host.run_starts(job)
        if job.timeout is not None:
            run.hard_end = time.monotonic() + job.timeout
            run.timer = asyncio.get_running_loop().call_later(job.timeout, self.stop, run, "timeout")
        return run

    async def _work(self, row: Row, run: Run) -> None:
        """Everything a handler can raise ends here; a SystemExit that got past would end the whole worker."""
        task, turn, now = asyncio.current_task(), time.monotonic(), time.monotonic
        context: Context | None = None  # the first one has that of the task
        while True:
            run.task, run.begun, run.started = task, True, now()
            try:
                if run.started - turn > _TURN:
                    await asyncio.sleep(0)
                    turn = run.started = now()
                if context is None:
                    value = await self._invoke(run.job)
                else:
                    called = self._begin(run.job)
                    try:
                        awaited = context.run(called.send, None)
                    except StopIteration as end:
                        value = end.value
                    else:
                        value = await going_on(context, called, awaited)
            except GeneratorExit:
                # Raised by the handler, or by an interpreter that throws the task away; only the first ends the task.
                if task is not None:
                    task.add_done_callback(partial(self._left, run))
                raise
            except BaseException as error:
                self._end(run, error=error)
                return
            if not self._end(run, value):
                return
            if task is None or task.cancelling() or row.rest[0].fence in self._doomed:
                # Something has cancelled this task, and may still do: the next one must not suffer. Or it must.
                self._start_task(row)
                return
            run, context = self._start_next(row), self.context.copy()

    def _left(self, run: Run, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # or asyncio complains, at some later time, that nobody asked for it
        self._end(run, error=RuntimeError("handler raised GeneratorExit"))

    async def _call(self, job: Job) -> Any:
        return await self._invoke(job)

    def _end(self, run: Run, value: Any = None, error: BaseException | None = None) -> bool:
        """Report how a run ended; True if the next one of its row is to start."""
        job, row = run.job, run.row
        if self.runs.pop(job.fence, None) is None:
            return False
        if run.timer is not None:
            run.timer.cancel()
        if run.give_up is not None:
            run.give_up.cancel()
        if error is None and run.verdict is None:
            report: Report | None = self._judge.returned(job, value)
        else:
            report = self._report(run, value, error)
        row.run = None  # or the two hold each other until the garbage collector comes by
        self._pace.saw(time.monotonic() - run.started)
        if report is not None and report.event == "completed" and row.rest:
            self._host.run_completed(report, row.lane)
            return True
        self._host.run_ended(job, report, row.lane)
        self.give_back(row)
        self._rows.discard(row)
        self._host.row_ended(row.lane)
        return False

    def give_back(self, row: Row) -> None:
        """Those of a row that have not started wait in their group again."""
        while row.rest:
            job = row.rest.popleft()
            self._host.run_ended(job, self._judge.released(job), row.lane)

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
                self._host.run_goes_on(self._judge.begun(run.job), row.lane)
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
            return
        for row in self._rows:
            for job in row.rest:
                if job.fence == token:
                    row.rest.remove(job)
                    self._host.run_ended(job, None, row.lane)
                    return

    def cancel(self, tokens: Sequence[int]) -> None:
        """These runs are to end, all that there are at the moment; some may not have begun yet."""
        self._doomed = {token for token in tokens if token not in self.runs}
        for token in tokens:
            if token in self.runs:
                self.stop(self.runs[token], "cancelled")

    def held(self) -> list[tuple[str, int]]:
        """Leases to renew, (id, token). Called from the heartbeat thread."""
        ahead = [(job.id, job.fence) for row in tuple(self._rows) for job in tuple(row.rest)]
        return ahead + [(run.job.id, token) for token, run in tuple(self.runs.items())]

    @property
    def ahead(self) -> int:
        """How many jobs have not started."""
        return sum(len(row.rest) for row in self._rows)

    def given_up(self) -> set[int]:
        """Tokens of leases that must not be renewed any more. Called from the heartbeat thread.

        A handler past its hard timeout may hang the whole loop, so that its cancellation never happens: even then it
        must not hold its group for ever, nor may those of its row, who cannot be reported or given back.
        """
        now = time.monotonic()
        late = [run for run in tuple(self.runs.values()) if run.hard_end is not None and now >= run.hard_end + GRACE]
        return {job.fence for run in late for job in run.row.jobs}
