"""The dispatcher: passes jobs from the fetcher to the executor, and keeps job objects up to date with the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

from groupmq.client.answers.jobs import MakeJob, job_ended, job_taken
from groupmq.client.job import Job
from groupmq.protocol.commands import (
    Expired,
    FailureOutcome,
    RateLimitedOutcome,
    ReleaseOutcome,
    RetryOutcome,
    SnoozeOutcome,
    Stalled,
    Taken,
)
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.fetching.requester import Requester
from groupmq.worker.running.execution import JobExecutor
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.sharing import Share
from groupmq.worker.telemetry import Telemetry


class Dispatcher:
    """Listens to the fetcher and gives work to the executor; neither of them knows the other.

    Outcomes do not pass here: the executor reports them to the requester that took the job.
    """

    def __init__(
        self,
        worker: str,
        concurrency: int,
        make_jobs: Callable[[], MakeJob[Job]],
        policy: OutcomePolicy,
        executor: JobExecutor,
        prefetch: Prefetch,
        telemetry: Telemetry,
        share: Share | None = None,
        *,
        on_drained: Callable[[], None],
        on_idle: Callable[[], None],
    ) -> None:
        """`make_jobs` is called once for the jobs of an answer, so that they get the current settings.

        `share`: of the slots that several workers share. `on_drained` is called when it has worked and nothing more is
        ready, `on_idle` when the worker may have become idle.
        """
        self._worker = worker
        self._concurrency = concurrency
        self._make_jobs = make_jobs
        self._policy = policy
        self._executor = executor
        self._prefetch = prefetch
        self._telemetry = telemetry
        self._share = share
        self._on_drained = on_drained
        self._on_idle = on_idle
        self._open = True
        self._worked = False
        self._on_first_jobs: list[Callable[[], None]] = []

    def on_first_jobs(self, notify: Callable[[], None]) -> None:
        """Call `notify` once, when the first jobs have come."""
        self._on_first_jobs.append(notify)

    def shut(self) -> None:
        """Start nothing from now on, and give back what has not started."""
        self._open = False
        self._executor.give_back_all()

    def give_back_running(self) -> None:
        """Cancel every run. Its job goes back to its group with its sort key, and no attempt is used."""
        self._executor.stop_all(self._telemetry.graceful_timeout)

    # What there is room for

    def vacant(self) -> int:
        return self._concurrency - self._executor.slots_used

    def free(self) -> int:
        vacant = self.vacant()
        return vacant if self._share is None else min(vacant, self._share.free())

    @property
    def shares_slots(self) -> bool:
        return self._share is not None

    def may_start(self, asked: int) -> int:
        return asked if self._share is None else max(0, min(asked, self.vacant(), self._share.room()))

    def call_ended(self) -> None:
        if self._share is not None:
            self._share.moved()

    call_overdue = call_ended

    def unstarted(self) -> int:
        return self._executor.unstarted

    # Jobs in

    def take_on(
        self,
        taken: list[Taken],
        rows: Sequence[int],
        now: int,
        requester: Requester,
        leases_end: float,
        starts: int,
    ) -> None:
        self._worked = True
        while self._on_first_jobs:
            self._on_first_jobs.pop()()
        if self._share is not None:
            self._share.got_jobs()
        self._prefetch.took(len(taken), len(rows) or len(taken))
        at, debugging, make = 0, self._telemetry.debugging(), self._make_jobs()
        for length in rows or repeat(1, len(taken)):
            jobs = self._read(make, taken[at : at + length], now)
            at += length
            if not jobs:
                continue
            if debugging:
                self._telemetry.taken(jobs)
            starts -= 1
            if self._open:
                requester.row_started()
                if starts >= 0:
                    self._executor.start(jobs, requester, leases_end, together=length > 1)
                else:
                    self._executor.reserve(jobs, requester, leases_end)
            else:
                # Taken by a call that was under way when closing began.
                for job in jobs:
                    requester.report(self._policy.released(job))

    def give_back(self, taken: list[Taken], now: int, requester: Requester) -> None:
        for job in self._read(self._make_jobs(), taken, now):
            requester.report(self._policy.released(job, may_be_gone=True))

    def use_reserve(self, asked: int, wanted: int) -> None:
        """Start reserved jobs in free slots, except those `asked` for. First give back jobs up to fence `wanted`."""
        if wanted:
            self._executor.give_back_reserved(wanted)
        self._executor.start_reserved(self.free() - asked)

    def _read(self, make: MakeJob[Job], taken: list[Taken], now: int) -> list[Job]:
        jobs = []
        for one in taken:
            try:
                job = job_taken(make, one, now, self._worker)
            except Exception as error:
                # This version cannot read the record. Its lease expires; the other jobs of the answer must run all the
                # same.
                self._telemetry.unreadable(one.id, error)
                continue
            jobs.append(job)
        return jobs

    # Outcomes that the server has answered

    def accepted(self, reports: Sequence[RunReport], now: int) -> None:
        """The server has recorded these outcomes: bring the job objects up to date, then emit."""
        telemetry = self._telemetry
        completed: list[Job] = []
        for report in reports:
            job, _, kind, _, result, _, _ = report
            if kind != "completed":
                telemetry.completed(completed)  # so that events come in the order of the reports
                completed = []
                self._accepted_other(report, now)
                continue
            job_ended(job, "completed", now, result)
            completed.append(job)
        telemetry.completed(completed)
        if telemetry.debugging():
            telemetry.log_completed(report.job for report in reports if report.kind == "completed")

    def _accepted_other(self, report: RunReport, now: int) -> None:
        job, outcome, telemetry = report.job, report.outcome, self._telemetry
        if isinstance(outcome, ReleaseOutcome | RateLimitedOutcome | SnoozeOutcome | RetryOutcome):
            job.state = "delayed" if report.yields else "waiting"
        if isinstance(outcome, RetryOutcome | FailureOutcome):
            job.failed_reason, job.stacktrace, job.error_class = outcome.reason, outcome.stack, outcome.error or None
        match outcome:
            case ReleaseOutcome():
                telemetry.released(job)
            case RateLimitedOutcome():
                telemetry.rate_limited(job, outcome)
            case SnoozeOutcome():
                telemetry.snoozed(job, outcome)
            case RetryOutcome():
                job.attempts_made += 1
                telemetry.retrying(job, outcome, report.error)
            case FailureOutcome():
                job_ended(job, "failed", now)
                telemetry.failed(job, report.error)

    def refused(self, report: RunReport) -> None:
        """The lease of this run belongs to another worker or is gone: the server has recorded nothing of the run."""
        if report.may_be_gone:
            return  # the heartbeat thread has had it taken back
        if report.kind == "begun":
            self._executor.lease_lost(report.job.fence)  # does nothing if the run has ended meanwhile
        else:
            self._telemetry.lease_lost(report.job)

    def ended_by_time(self, stalled: Sequence[Stalled], expired: Sequence[Expired]) -> None:
        for stall in stalled:
            self._telemetry.stalled(stall)
        for expiry in expired:
            self._telemetry.expired(expiry)

    # Idle

    def dry(self) -> None:
        if self._worked and not self._executor.slots_used:
            self._worked = False
            self._on_drained()
        self._on_idle()

    def became_idle(self) -> None:
        self._on_idle()
