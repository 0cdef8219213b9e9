"""Running batches: several jobs in one call of a handler, in one slot.

Each job has its own lease, fence and outcome. Stopping one job stops the handler. The others are given back,
unless the handler says how far it got. Nothing waits here: a batch starts as soon as it arrives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from groupmq.client.job import Job
from groupmq.worker.running import batch_outcome
from groupmq.worker.running.execution import Withdrawn
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.reporter import Reporter
from groupmq.worker.running.runs import Run, RunListener
from groupmq.worker.running.slot_runs import RunsInSlots
from groupmq.worker.running.stopping import StopReason, end_when_left


class BatchRun(Run):
    """One run of several jobs."""

    def __init__(self, jobs: Sequence[Job], reporter: Reporter, leases_end: float) -> None:
        self._jobs = tuple(jobs)
        self.reporter = reporter
        self.fence = jobs[0].fence
        self.slot_at = time.monotonic()
        self.leases_end = leases_end
        self.timeout = min((job.timeout for job in jobs if job.timeout is not None), default=None)
        self.lost: set[int] = set()
        self.cancelled: set[int] = set()
        """Fences of jobs that an operator cancelled."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        return self._jobs


class BatchExecutor(RunsInSlots[BatchRun]):
    """Runs batches, as `executor.Executor` runs single jobs."""

    def __init__(
        self,
        invoke: Callable[[list[Job]], Awaitable[Any]],
        policy: OutcomePolicy,
        listener: RunListener,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(policy, listener, on_end)
        self._invoke = invoke
        self._by_fence: dict[int, BatchRun] = {}
        """Each run by the fences of all its jobs."""

    def start(self, jobs: Sequence[Job], reporter: Reporter, leases_end: float, *, together: bool = False) -> None:
        """Call the handler with these jobs. Their outcomes go to `reporter`."""
        loop, run = asyncio.get_running_loop(), BatchRun(jobs, reporter, leases_end)
        self.runs[run.fence] = run
        for job in jobs:
            self._by_fence[job.fence] = run
        self._unbegun.add(run)
        run.task = loop.create_task(self._work(run), context=self._context.copy())

    async def _work(self, run: BatchRun) -> None:
        """Everything a handler can raise is caught: a SystemExit that escaped would end the whole worker."""
        task = asyncio.current_task()
        if not self._begin(run, time.monotonic()):
            self._drop(run)
            return
        try:
            value = await self._invoke(list(run.jobs))
        except GeneratorExit:
            end_when_left(task, lambda error: self._end_by(run, error))
            raise
        except BaseException as error:
            self._end_by(run, error)
            return
        self._end(run, value)

    def _forget(self, run: BatchRun) -> None:
        del self.runs[run.fence]
        for job in run.jobs:
            del self._by_fence[job.fence]

    def _drop(self, run: BatchRun) -> None:
        if self._is_live(run):
            self._forget(run)
            run.reporter.row_ended()
            run.reporter.slot_freed()
            self._on_end()

    def _end_by(self, run: BatchRun, error: BaseException) -> None:
        self._end(run, error=error)

    def _end(self, run: BatchRun, value: Any = None, error: BaseException | None = None) -> None:
        """Report how the jobs of a batch ended."""
        if not self._is_live(run):
            if run in self._abandoned:
                self._abandoned.discard(run)
                self._handler_ended(run)
            return
        self._forget(run)
        run.end_timer()
        freed = True
        for report in self._reports(run, value, error):
            if report.job.fence in run.lost:
                self._listener.lease_lost(report.job)
                continue
            self._handler_raised(report)
            run.report(report)
            freed = False
        if run.abandoned:
            self._abandoned.add(run)
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
        if run.stop_reason is None:
            return batch_outcome.raised(policy, jobs, error)
        timeout, abandoned = run.timeout or 0.0, run.abandoned
        return batch_outcome.stopped(
            policy, jobs, error, run.stop_reason, run.cancelled, timeout, abandoned=abandoned, begun=run.begun
        )

    def _handler_ended(self, run: BatchRun, *, cancelled: bool = True) -> None:
        """Report the end of a handler: the group waits for it if an operator has ended a job, or if a cancelled job was
        abandoned."""
        fences = run.lost | run.cancelled if cancelled else run.lost
        for job in run.jobs:
            if job.fence in fences:
                run.report(self._policy.ended(job))

    # The jobs of a batch

    def _run_of(self, fence: int) -> BatchRun | None:
        return self._by_fence.get(fence)

    def _stop_job(self, fence: int, reason: StopReason) -> None:
        run = self._run_of(fence)
        if run is not None:
            (run.lost if reason == "lease-lost" else run.cancelled).add(fence)
        super()._stop_job(fence, reason)

    # Nothing is prefetched

    unstarted = 0

    def reserve(self, jobs: Sequence[Job], reporter: Reporter, leases_end: float) -> None:
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

    def _give_back_followers(self, run: BatchRun) -> None:
        pass

    def withdraw_reserved(self, fence: int) -> Withdrawn:
        return []
