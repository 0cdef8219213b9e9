"""Running batches: several jobs in one call of a handler, in one slot.

Each job has its own lease, fence and outcome. Stopping one job stops the handler. The others are given back,
unless the handler says how far it got. Nothing waits here: a batch starts as soon as it arrives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Any

from groupmq.client.job import Job
from groupmq.worker import batch_outcome
from groupmq.worker.long_runs import LongRuns
from groupmq.worker.outcome import OutcomePolicy, RunReport
from groupmq.worker.requester import Reporter
from groupmq.worker.runs import RunListener
from groupmq.worker.stopping import StoppableRun, StopRequests, Verdict, cancel_abandoned, end_when_left
from groupmq.worker.unbegun import Unbegun


class BatchRun(StoppableRun):
    """One call of the handler."""

    def __init__(self, jobs: Sequence[Job], reporter: Reporter) -> None:
        self.jobs = tuple(jobs)
        self.reporter = reporter
        self.started = time.monotonic()
        self.leases_end = reporter.leases_end
        self.limit = min((job.timeout for job in jobs if job.timeout is not None), default=None)
        """The smallest timeout of its jobs."""
        self.lost: set[int] = set()
        """Fences of jobs whose lease is gone: there is nothing to report about them."""
        self.cancelled: set[int] = set()
        """Fences of jobs that an operator cancelled."""


class BatchExecutor:
    """Runs batches, as `executor.Executor` runs single jobs."""

    def __init__(
        self,
        invoke: Callable[[list[Job]], Awaitable[Any]],
        policy: OutcomePolicy,
        listener: RunListener,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_end` is called when a slot may have become free."""
        self._invoke = invoke
        self._policy = policy
        self._listener = listener
        self._on_end = on_end
        self._context = copy_context()
        self._batches: dict[BatchRun, None] = {}
        """In the order in which they started."""
        self._by_fence: dict[int, BatchRun] = {}
        self._unbegun: Unbegun[BatchRun] = Unbegun()
        self._recalled: set[int] = set()
        """Fences of jobs to give back. Some are not here yet: the reply that brings them may be on its way."""
        self._long_runs = LongRuns(lambda: tuple(self._batches), self._report_begun)
        self._stops = StopRequests()
        self._left_behind: set[BatchRun] = set()
        """Abandoned batches whose handlers have not ended."""

    def use_context_of_caller(self) -> None:
        """Handlers see the context variables that are set where this is called."""
        self._context = copy_context()

    @property
    def slots_used(self) -> int:
        return len(self._batches)

    def current(self) -> list[tuple[Job, float]]:
        """Running jobs, the longest-running first, each with the time at which its handler was called."""
        return [(job, run.started) for run in self._batches for job in run.jobs]

    # Running

    def start(self, jobs: Sequence[Job], reporter: Reporter, *, together: bool = False) -> None:
        """Call the handler with these jobs. Their outcomes go to `reporter`."""
        loop, run = asyncio.get_running_loop(), BatchRun(jobs, reporter)
        self._batches[run] = None
        for job in jobs:
            self._by_fence[job.fence] = run
        self._unbegun.add(run)
        run.task = loop.create_task(self._work(run), context=self._context.copy())

    def _begin(self, run: BatchRun) -> bool:
        """Decide to call the handler now. False: the whole batch goes back, or has gone back, and must not start."""
        if not self._unbegun.claim(run):
            return False
        run.started = time.monotonic()
        # Claim first, then compare, as in `Executor._begin`.
        if run.started >= run.leases_end or any(job.fence in self._recalled for job in run.jobs):
            for job in run.jobs:
                run.reporter.report(self._policy.released(job))
            return False
        run.begun = True
        if not self._long_runs.are_watched:
            self._long_runs.watch()
        for job in run.jobs:
            self._listener.started(job)
        if run.limit is not None:
            run.hard_end = run.started + run.limit
            run.timer = asyncio.get_running_loop().call_later(run.limit, self._stop, run, "timeout")
        return True

    async def _work(self, run: BatchRun) -> None:
        """Everything a handler can raise is caught: a SystemExit that escaped would end the whole worker."""
        task = asyncio.current_task()
        if not self._begin(run):
            self._drop(run)
            return
        try:
            value = await self._invoke(list(run.jobs))
        except GeneratorExit:
            end_when_left(task, lambda error: self._end(run, error=error))
            raise
        except BaseException as error:
            self._end(run, error=error)
            return
        self._end(run, value)

    def _report_begun(self, run: BatchRun) -> None:
        for job in run.jobs:
            if job.fence not in run.lost:
                run.reporter.report(self._policy.begun(job))

    def _forget(self, run: BatchRun) -> None:
        del self._batches[run]
        for job in run.jobs:
            del self._by_fence[job.fence]

    def _drop(self, run: BatchRun) -> None:
        """Free the slot of a batch that does not begin."""
        if run in self._batches:
            self._forget(run)
            run.reporter.row_ended()
            run.reporter.slot_freed()
            self._on_end()

    def _end(self, run: BatchRun, value: Any = None, error: BaseException | None = None) -> None:
        """Report how the jobs of a batch ended."""
        if run not in self._batches:
            if run in self._left_behind:
                self._left_behind.discard(run)
                self._handler_ended(run)
            return
        self._forget(run)
        for timer in (run.timer, run.give_up):
            if timer is not None:
                timer.cancel()
        freed = True
        for report in self._reports(run, value, error):
            if report.job.fence in run.lost:
                self._listener.lease_lost(report.job)
                continue
            if report.error is not None and report.event != "rate_limited":
                self._listener.handler_raised(report.error, report.job)
            run.reporter.report(report)
            freed = False
        if run.abandoned:
            self._left_behind.add(run)
        else:
            self._handler_ended(run, cancelled=False)
        run.reporter.row_ended()
        if freed:
            run.reporter.slot_freed()
        self._on_end()

    def _reports(self, run: BatchRun, value: Any, error: BaseException | None) -> list[RunReport]:
        policy, jobs = self._policy, run.jobs
        if error is None:
            return batch_outcome.returned(policy, jobs, value)
        if run.verdict is None:
            return batch_outcome.raised(policy, jobs, error)
        limit, abandoned = run.limit or 0.0, run.abandoned
        return batch_outcome.stopped(
            policy, jobs, error, run.verdict, run.cancelled, limit, abandoned=abandoned, begun=run.begun
        )

    def _handler_ended(self, run: BatchRun, *, cancelled: bool = True) -> None:
        """Report the end of a handler: the group waits for it if an operator has ended a job, or if a cancelled job was
        abandoned."""
        fences = run.lost | run.cancelled if cancelled else run.lost
        for job in run.jobs:
            if job.fence in fences:
                run.reporter.report(self._policy.ended(job))

    # Stopping

    def _stop(self, run: BatchRun, verdict: Verdict) -> None:
        """Cancel the handler. If it does not end within GRACE, its slot is taken back without it."""
        if run.verdict is not None or run.task is None or run not in self._batches:
            return
        is_unbegun = self._unbegun.claim(run)
        if not (is_unbegun or run.begun):
            return  # the heartbeat thread has just given it back
        run.verdict = verdict
        for job in run.jobs:
            job._end_run(waits=verdict in ("lease-lost", "cancelled"))
        if is_unbegun:
            self._end(run, error=asyncio.CancelledError())
        else:
            run.cancel_task(run.task, self._abandon)

    def _abandon(self, run: BatchRun) -> None:
        if not run.begun:
            self._drop(run)
            return
        run.take_slot_back()
        self._end(run, error=asyncio.CancelledError())

    def stop_all(self, announce: Callable[[Job], None]) -> None:
        """Cancel every handler and give its jobs back, because the worker closes."""
        for run in tuple(self._batches):
            for job in run.jobs:
                announce(job)
            self._stop(run, "closing")

    def abandon_all(self) -> None:
        """Take back every slot, even from handlers that have not ended."""
        for run in tuple(self._batches):
            self._abandon(run)

    def close(self) -> None:
        """Cancel abandoned handlers and forget them."""
        self._long_runs.close()
        cancel_abandoned(self._left_behind)

    def lease_lost(self, fence: int) -> None:
        run = self._by_fence.get(fence)
        if run is not None:
            run.lost.add(fence)
            self._stop(run, "lease-lost")

    def cancel(self, cancelled: Sequence[int], ended: Sequence[int] = ()) -> None:
        """Stop the batches of these jobs. `ended`: jobs that an operator has removed or failed."""
        for fence in cancelled:
            run = self._by_fence.get(fence)
            if run is not None:
                run.cancelled.add(fence)
                self._stop(run, "cancelled")
        for fence in ended:
            self.lease_lost(fence)

    # Nothing is prefetched

    unstarted = 0

    def reserve(self, jobs: Sequence[Job], reporter: Reporter) -> None:
        """Give back a batch that came so late that another worker has its slot."""
        for job in jobs:
            reporter.report(self._policy.released(job))
        reporter.row_ended()

    def start_reserved(self, slots: int) -> None:
        pass

    def give_back_reserved(self, fence: int) -> None:
        pass

    def give_back_all(self) -> None:
        pass

    # From the heartbeat thread

    def withdraw(self, fences: Sequence[int]) -> list[tuple[Job, Reporter]]:
        """Take back the batches of these jobs unless they have begun."""
        self._recalled = set(fences)
        found = {run: None for fence in fences if (run := self._by_fence.get(fence)) is not None}
        return [(job, run.reporter) for run in found if self._unbegun.claim(run) for job in run.jobs]

    def withdraw_all(self) -> list[tuple[Job, Reporter]]:
        """Take back every batch that has not begun."""
        return [(job, run.reporter) for run in self._unbegun.claim_all() for job in run.jobs]

    def withdraw_reserved(self, fence: int) -> list[tuple[Job, Reporter]]:
        return []

    def request_stop(self, fences: Sequence[int]) -> None:
        """Record that the server wants these jobs stopped. A blocked event loop cannot stop them: see `given_up`."""
        self._stops.record(fences)

    def held(self) -> list[tuple[str, int]]:
        """Leases (id, fence) of running jobs. Those of jobs that have not begun are not renewed."""
        return [(job.id, job.fence) for run in tuple(self._batches) if run.begun for job in run.jobs]

    def running(self, fences: set[int]) -> list[Job]:
        """The running jobs among these."""
        return [job for run in tuple(self._batches) if run.begun for job in run.jobs if job.fence in fences]

    def running_tasks(self) -> list[tuple[Job, asyncio.Task[None] | None]]:
        return [(job, run.task) for run in tuple(self._batches) for job in run.jobs]

    def given_up(self) -> set[int]:
        """Fences of leases that must not be renewed any more (`Executor.given_up`): those of whole batches.

        The leases of the other jobs would keep the group waiting for a handler that cannot be stopped.
        """
        now = time.monotonic()
        stopping = self._stops.overdue(now)
        return {
            job.fence
            for run in tuple(self._batches)
            if run.is_past_timeout(now) or any(job.fence in stopping for job in run.jobs)
            for job in run.jobs
        } | stopping
