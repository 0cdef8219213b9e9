"""Runs, the rows that they belong to, and what an executor announces about them.

A job that has been taken is unstarted until it gets a slot. Then it has a run, which is unbegun until the handler is
called.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Protocol, Self, TypeVar

from groupmq.client.job import Job
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.reporter import Reporter
from groupmq.worker.running.stopping import GRACE, StopReason, holds_group


class Run:
    """One call of a handler in this worker, and the slot that it has."""

    reporter: Reporter
    fence: int
    """The fence of its first job."""
    timeout: float | None
    """Seconds that its handler may take; the smallest timeout of its jobs."""
    leases_end: float
    """When the leases of its jobs end, as long as it has not begun: later than that it may not begin."""
    slot_at: float
    """When it got its slot."""
    begun_at: float | None = None
    """When its handler was called; None = it is unbegun. Assigned by its executor, as `task` is: each job has
    both, and a method for them would cost measurable time."""
    confirmed = False
    """Whether its begin has been reported."""
    stop_reason: StopReason | None = None
    """Why it was stopped, if it was."""
    abandoned = False
    """Its slot was taken back, and its handler has not ended."""
    lost: Set[int] = frozenset()
    """Fences of jobs of a batch whose lease is gone: there is nothing to report about them."""
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    """Stops it at its timeout or, once it was cancelled, takes its slot back."""
    _hard_end: float | None = None
    """When its timeout ends, if it has one."""

    @property
    def jobs(self) -> Sequence[Job]:
        raise NotImplementedError

    @property
    def begun(self) -> bool:
        return self.begun_at is not None

    def busy_since(self) -> float:
        """When its handler was called, or before that, when it got its slot."""
        return self.begun_at or self.slot_at

    def limit(self, now: float, timeout: float, stop: Callable[[Self, StopReason], None]) -> None:
        """The handler is called now. If it has not ended after `timeout` seconds, `stop` is called."""
        self._hard_end = now + timeout
        self.timer = asyncio.get_running_loop().call_later(timeout, stop, self, "timeout")

    def stop(self, reason: StopReason) -> None:
        """Record that it is stopped, and tell its jobs."""
        self.stop_reason = reason
        for job in self.jobs:
            job._end_run(waits=holds_group(reason))

    def cancel(self, abandon: Callable[[Self], None]) -> None:
        """Cancel the handler. `abandon` is called if it does not end within GRACE."""
        if self.task is not None:
            self.task.cancel()
            self.end_timer()
            self.timer = asyncio.get_running_loop().call_later(GRACE, abandon, self)

    def end_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def take_slot_back(self) -> None:
        """Record whether its group waits for the handler, which continues without its slot."""
        self.abandoned = self.begun and holds_group(self.stop_reason)

    def is_past_timeout(self, now: float) -> bool:
        """Whether its timeout has passed and its handler has not even been cancelled."""
        return self._hard_end is not None and now >= self._hard_end + GRACE

    def report(self, report: RunReport) -> None:
        self.reporter.report(report)

    def report_begun(self, policy: OutcomePolicy) -> None:
        self.confirmed = True
        for job in self.jobs:
            if job.fence not in self.lost:
                self.report(policy.begun(job))


AnyRun = TypeVar("AnyRun", bound=Run)


class RunRow:
    """Jobs of one group that were taken together and run one after the other in one slot.

    `unstarted`: those that have no slot yet. `fence`: of its first job. `came_at`: when the row came. `leases_end`:
    when the leases of those that have not begun end; later than that none of them may begin.
    """

    __slots__ = ("came_at", "fence", "leases_end", "reporter", "run", "unstarted")

    def __init__(self, jobs: Sequence[Job], reporter: Reporter, leases_end: float) -> None:
        self.reporter = reporter
        self.unstarted = deque(jobs)
        self.run: JobRun | None = None
        self.came_at = time.monotonic()
        self.leases_end = leases_end
        self.fence = jobs[0].fence


class JobRun(Run):
    """One run of one job of a row."""

    def __init__(self, job: Job, row: RunRow, now: float) -> None:
        self.job = job
        self.row = row
        self.reporter = row.reporter
        self.leases_end = row.leases_end
        self.fence = job.fence
        self.timeout = job.timeout
        self.slot_at = now

    @property
    def jobs(self) -> Sequence[Job]:
        return (self.job,)


class RunListener(Protocol):
    """The listener of the executor: telemetry."""

    def begun(self, run: Run) -> None: ...
    def handler_raised(self, error: BaseException, job: Job) -> None: ...
    def lease_lost(self, job: Job) -> None:
        """The lease of a run belongs to another worker or is gone: there is no outcome to report."""
