"""The runs that have a slot: how they are stopped, and what the heartbeat thread does with them.

Shared by the executor of single jobs (executor.py) and that of batches (batches.py). The thread renews the leases of
what runs. It takes back jobs that have not begun when an operator or another worker asks for them, or when the event
loop is blocked (unbegun.py, without a lock).
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Generic

from groupmq.client.job import Job
from groupmq.worker.running.execution import Withdrawn
from groupmq.worker.running.long_runs import LongRuns
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.reporter import Reporter
from groupmq.worker.running.runs import AnyRun, RunListener
from groupmq.worker.running.stopping import StopReason, StopRequests
from groupmq.worker.running.unbegun import Unbegun


class RunsInSlots(ABC, Generic[AnyRun]):
    """Runs that have a slot."""

    def __init__(self, policy: OutcomePolicy, listener: RunListener, on_end: Callable[[], None]) -> None:
        """`on_end` is called when a slot may have become free."""
        # By fence: after a lost lease the same job may be back here before its old handler has ended.
        self.runs: dict[int, AnyRun] = {}
        self._policy = policy
        self._listener = listener
        self._on_end = on_end
        self._context = copy_context()
        """Each handler runs in a copy of this."""
        self._unbegun: Unbegun[AnyRun] = Unbegun()
        self._recalled: set[int] = set()
        """Fences of jobs to give back. Some are not here yet: the reply that brings them may be on its way."""
        self._long_runs = LongRuns(self.runs, policy)
        self._stops = StopRequests()
        self._abandoned: set[AnyRun] = set()
        """Abandoned runs whose handlers have not ended."""

    def use_context_of_caller(self) -> None:
        """Handlers see the context variables that are set where this is called."""
        self._context = copy_context()

    @property
    def slots_used(self) -> int:
        return len(self.runs)

    def current(self) -> list[tuple[Job, float]]:
        """Running jobs, the longest-running first, each with the time at which its handler was called."""
        return [(job, run.busy_since()) for run in self.runs.values() for job in run.jobs]

    def _run_of(self, fence: int) -> AnyRun | None:
        """The run of the job that has this fence."""
        return self.runs.get(fence)

    def _is_live(self, run: AnyRun) -> bool:
        return self.runs.get(run.fence) is run

    def _begin(self, run: AnyRun, now: float) -> bool:
        """Decide to call the handler, at the time `now`. False: the run goes back, or has gone back."""
        if not self._unbegun.claim(run):
            return False
        # Claim first, then compare. `withdraw` does it the other way round, so one of the two gives the jobs back.
        if now >= run.leases_end or (self._recalled and self._is_recalled(run)):
            for job in run.jobs:
                self._release(job, run.reporter)
            return False
        run.begun_at = now
        if run.timeout is not None:
            run.limit(now, run.timeout, self.stop)
        if not self._long_runs.are_watched:
            self._long_runs.watch()
        self._listener.begun(run)
        return True

    def _is_recalled(self, run: AnyRun) -> bool:
        return any(job.fence in self._recalled for job in run.jobs)

    def _release(self, job: Job, reporter: Reporter) -> None:
        """Give a job back that has not begun."""
        reporter.report(self._policy.released(job))
        self._on_end()

    def _handler_raised(self, report: RunReport) -> None:
        """Announce the error of a failed attempt."""
        if report.error is not None and report.kind not in ("rate_limited", "snoozed"):
            self._listener.handler_raised(report.error, report.job)

    @abstractmethod
    def _give_back_followers(self, run: AnyRun) -> None:
        """Give back the jobs that would follow this run."""

    @abstractmethod
    def _drop(self, run: AnyRun) -> object:
        """Free the slot of a run that does not begin."""

    @abstractmethod
    def _end_by(self, run: AnyRun, error: BaseException) -> None:
        """End a run that raised, or that was stopped."""

    # Stopping

    def stop(self, run: AnyRun, reason: StopReason) -> None:
        """Cancel a run. If the handler does not end within GRACE, its slot is taken back without it.

        If an operator has ended the run, its group still waits for the handler, as long as the lease lasts.
        """
        if run.stop_reason is not None or not self._is_live(run):
            return
        is_unbegun = self._unbegun.claim(run)
        if not (is_unbegun or run.begun):
            return  # the heartbeat thread has just given it back
        run.stop(reason)
        self._give_back_followers(run)
        if is_unbegun:
            self._end_by(run, asyncio.CancelledError())
        else:
            run.cancel(self._abandon)

    def _stop_job(self, fence: int, reason: StopReason) -> None:
        run = self._run_of(fence)
        if run is not None:
            self.stop(run, reason)

    def lease_lost(self, fence: int) -> None:
        self._stop_job(fence, "lease-lost")

    def cancel(self, cancelled: Sequence[int], ended: Sequence[int] = ()) -> None:
        """Stop the runs of these jobs. `ended`: jobs that an operator has removed or failed, so their lease is gone."""
        for fence in cancelled:
            self._stop_job(fence, "cancelled")
        for fence in ended:
            self._stop_job(fence, "lease-lost")

    def stop_all(self, announce: Callable[[Job], None]) -> None:
        """Cancel every run and give its jobs back, because the worker closes."""
        for run in tuple(self.runs.values()):
            for job in run.jobs:
                announce(job)
            self.stop(run, "closing")

    def abandon_all(self) -> None:
        """Take back every slot, even from handlers that have not ended."""
        for run in tuple(self.runs.values()):
            self._abandon(run)

    def _abandon(self, run: AnyRun) -> None:
        if not run.begun:
            self._drop(run)
            return
        run.take_slot_back()
        self._end_by(run, asyncio.CancelledError())

    def close(self) -> None:
        """Cancel abandoned handlers and forget them."""
        self._long_runs.close()
        for run in self._abandoned:
            if run.task is not None:
                run.task.cancel()
        self._abandoned.clear()

    # From the heartbeat thread

    def request_stop(self, fences: Sequence[int]) -> None:
        """Record that the server wants these jobs stopped. A blocked event loop cannot stop them: see `given_up`."""
        self._stops.record(fences)

    def withdraw(self, fences: Sequence[int]) -> Withdrawn:
        """Take back the runs of these jobs unless they have begun, with their reporters."""
        self._recalled = set(fences)
        found = {run: None for fence in fences if (run := self._run_of(fence)) is not None}
        return [(job, run.reporter) for run in found if self._unbegun.claim(run) for job in run.jobs]

    def withdraw_all(self) -> Withdrawn:
        """Take back every job that has not begun."""
        return [(job, run.reporter) for run in self._unbegun.claim_all() for job in run.jobs]

    def leases(self) -> list[tuple[str, int]]:
        """Leases (id, fence) of running jobs. Those of jobs that have not begun are not renewed."""
        return [(job.id, job.fence) for job in self._begun_jobs()]

    def running(self, fences: set[int]) -> list[Job]:
        """The running jobs among these."""
        return [job for job in self._begun_jobs() if job.fence in fences]

    def _begun_jobs(self) -> list[Job]:
        return [job for run in tuple(self.runs.values()) if run.begun for job in run.jobs]

    def running_tasks(self) -> list[tuple[Job, asyncio.Task[None] | None]]:
        return [(job, run.task) for run in tuple(self.runs.values()) for job in run.jobs]

    def given_up(self) -> set[int]:
        """Fences of leases that must not be renewed any more: those of all jobs of a run.

        A handler past its hard timeout, or one that is to stop, may block the event loop, so that it cannot be
        cancelled. Its leases must end all the same, or its group would wait for ever.
        """
        now = time.monotonic()
        stopping = self._stops.overdue(now)
        return stopping | {
            job.fence
            for run in tuple(self.runs.values())
            if run.is_past_timeout(now) or any(job.fence in stopping for job in run.jobs)
            for job in run.jobs
        }
