"""How a worker reports its work: events, counters, log lines, and the `on_error` hook."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from groupmq.client.job import Job
from groupmq.core.deprecation import renamed
from groupmq.core.errors import GroupMQError, JobCancelled, message_of
from groupmq.core.job_log import Expiry, JobLog, Stall
from groupmq.core.queue_options import QueueOptions
from groupmq.core.views import DutyReport
from groupmq.core.worker_options import WorkerOptions
from groupmq.protocol.commands import RateLimitedOutcome, RetryOutcome, SnoozeOutcome
from groupmq.runtime.emitter import Emitter

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
    rate_limited: int = 0
    snoozed: int = 0
    lease_lost: int = 0
    stalled_seen: int = 0
    connection_errors: int = 0
    advances: int = 0
    running: int = 0
    loop_blocked: float = 0.0
    """Seconds that a handler has been blocking the event loop; 0 = none does."""
    loop_blocks: int = 0
    """How often a handler has blocked the event loop for half a second or more."""
    uptime: float = 0.0

    @property
    def runs_ended(self) -> int:
        """Runs that ended with an outcome: completed, to be retried, or failed."""
        return self.completed + self.retried + self.failed

    @property
    def processed(self) -> int:
        """Deprecated: use `runs_ended`."""
        renamed("WorkerMetrics", "processed", "runs_ended")
        return self.runs_ended

    @property
    def limited(self) -> int:
        """Deprecated: use `rate_limited`."""
        renamed("WorkerMetrics", "limited", "rate_limited")
        return self.rate_limited


class HasJobs(Protocol):
    """A run."""

    @property
    def jobs(self) -> Sequence[Job]: ...


class Telemetry:
    """Each method records one kind of event. It is called once per event, from the event loop, and never raises."""

    def __init__(self, queue: QueueOptions, options: WorkerOptions) -> None:
        self._who = f"worker {options.name} of queue {queue.name}"
        self._logger = options.logger
        self._hook = options.on_error
        self._log = JobLog(
            options.logger,
            queue.name,
            options.name,
            keeps_failed=queue.keep_failed.kept != 0,
            on_failed=queue.on_failed,
        )
        self.events = Emitter(EVENTS, options.logger, self._who)
        self.metrics = WorkerMetrics(options.name)
        self._active_listeners, self._completed_listeners = map(self.events.listeners, ("active", "completed"))

    def adopt(self, queue: QueueOptions) -> None:
        """Use these settings, which are stored with the queue."""
        self._log.adopt(keeps_failed=queue.keep_failed.kept != 0, on_failed=queue.on_failed)

    # Jobs that come and run

    def debugging(self) -> bool:
        """Whether DEBUG lines are written: asked once per call, not once per job."""
        return self._log.debugging()

    def taken(self, row: Sequence[Job]) -> None:
        """A DEBUG line for each job of a row."""
        self._log.taken(row)

    def begun(self, run: HasJobs) -> None:
        if self._active_listeners:
            for job in run.jobs:
                self.events.emit("active", job)

    def progress(self, job: Job, value: Any) -> None:
        self.events.emit("progress", job, value)

    def handler_raised(self, error: BaseException, job: Job) -> None:
        self._on_error(error, job)

    def unreadable(self, job_id: str, error: BaseException) -> None:
        """The record of a job cannot be read. It stays on the server; the other jobs of the answer run."""
        unreadable = GroupMQError(f"job {job_id!r} cannot be read; its lease will expire: {message_of(error)}")
        self._logger.warning("%s: %s", self._who, unreadable)
        self.call_failed(unreadable)

    # Outcomes that the server has recorded

    def completed(self, jobs: Sequence[Job]) -> None:
        self.metrics.completed += len(jobs)
        if self._completed_listeners:
            for job in jobs:
                self.events.emit("completed", job)

    def log_completed(self, jobs: Iterable[Job]) -> None:
        """A DEBUG line for each."""
        self._log.completed(jobs)

    def retrying(self, job: Job, outcome: RetryOutcome, error: BaseException | None) -> None:
        self.metrics.retried += 1
        self._log.retrying(job, outcome.delay_ms, holds=not outcome.yields)
        self.events.emit("retrying", job, error)

    def failed(self, job: Job, error: BaseException | None) -> None:
        self.metrics.failed += 1
        if isinstance(error, JobCancelled):
            self._log.cancelled(job)
        else:
            self._log.failed(job)
        self.events.emit("failed", job)

    def released(self, job: Job) -> None:
        self.metrics.released += 1
        if self._log.debugging():
            self._log.released(job)

    def rate_limited(self, job: Job, outcome: RateLimitedOutcome) -> None:
        self.metrics.rate_limited += 1
        self._log.rate_limited(job, outcome.delay_ms, outcome.reason)

    def snoozed(self, job: Job, outcome: SnoozeOutcome) -> None:
        self.metrics.snoozed += 1
        self._log.snoozed(job, outcome.delay_ms, outcome.reason)

    def lease_lost(self, job: Job) -> None:
        """The lease of a run belongs to another worker or is gone: nothing of this run is recorded."""
        self.metrics.lease_lost += 1
        self._log.lost(job)
        self.events.emit("lease-lost", job)

    def stalled(self, stalled: Stall) -> None:
        """The lease of a run, of any worker, expired and was taken back by a call of this worker."""
        self.metrics.stalled_seen += 1
        self._log.stalled(stalled)
        self.events.emit("stalled", stalled.id, stalled.group_id)

    def expired(self, expired: Expiry) -> None:
        """A job had not started when its ttl ended; a call of this worker has failed it."""
        self._log.expired(expired)

    def duty_done(self, report: DutyReport) -> None:
        for stalled in report.stalled:
            self.stalled(stalled)
        for expired in report.expired:
            self.expired(expired)

    # The worker

    def call_failed(self, error: BaseException) -> None:
        """A call to the server failed. (The outage log decides whether it is logged.)"""
        self.metrics.connection_errors += 1
        self.events.emit("error", error)
        self._on_error(error, None)

    def drained(self) -> None:
        self.events.emit("drained")

    def graceful_timeout(self, job: Job) -> None:
        """A run did not end in the time that a closing worker had: it is cancelled, and its job is given back."""
        self._log.late(job)
        self.events.emit("graceful-timeout", job)

    def _on_error(self, error: BaseException, job: Job | None) -> None:
        if self._hook is None:
            return
        try:
            outcome = self._hook(error, job)
            if inspect.isawaitable(outcome):
                self.events.watch("on_error", outcome)
        except BaseException as broken:
            self._logger.error(
                "%s: on_error raised %s: %s; the worker continues", self._who, type(broken).__name__, broken
            )
