"""Decides what the end of a run means for its job. Pure, no I/O."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from groupmq.client.job import Job
from groupmq.core import backoff as backoffs
from groupmq.core import codec
from groupmq.core.backoff import BackoffPolicy
from groupmq.core.clipping import clipped
from groupmq.core.durations import millis
from groupmq.core.errors import (
    BatchFailed,
    ConfigurationError,
    FailJob,
    HandlerTimeout,
    JobCancelled,
    RateLimited,
    RetryJob,
    Snooze,
    class_path,
    message_of,
)
from groupmq.core.queue_options import QueueOptions
from groupmq.core.tuples import of_class
from groupmq.protocol import commands
from groupmq.protocol.commands import Outcome
from groupmq.worker.live_settings import LiveSettings
from groupmq.worker.runners import HandlerError
from groupmq.worker.running.stopping import StopReason

OutcomeKind = Literal["completed", "retrying", "failed", "released", "rate_limited", "snoozed", "begun", "ended"]
_USUAL_MS = 1000
"""Used if `retry_after`, or the delay of a Snooze, is not a duration: the mistake must cost neither the job an attempt
nor the service a call."""


class RunReport(NamedTuple):
    """The outcome of one run, to be sent, and what the worker needs to know of it once the server has answered."""

    job: Job
    outcome: Outcome
    kind: OutcomeKind
    error: BaseException | None = None
    result: bytes | None = None
    yields: bool = False
    """The job waits outside its group."""
    may_be_gone: bool = False
    """The server may have taken the lease back already: then nothing is lost if this is refused."""


@dataclass(frozen=True, slots=True)
class OutcomePolicy:
    """Decides what happens to a job whose handler has ended."""

    queue: QueueOptions
    backoff: BackoffPolicy
    live: LiveSettings | None = None
    """The current settings; None = those above, which then never change."""

    def ending(
        self,
        job: Job,
        value: Any,
        error: BaseException | None,
        stop_reason: StopReason | None,
        *,
        abandoned: bool,
        begun: bool = True,
    ) -> RunReport | None:
        """The handler has returned a value or raised an error. `stop_reason`: None = it was not stopped.

        None if there is nothing to report, because the lease is lost.
        """
        if stop_reason == "lease-lost":
            return None
        if error is None:
            return self.returned(job, value)
        if stop_reason is None:
            return self.raised(job, error)
        return self.stopped(job, stop_reason, abandoned=abandoned, begun=begun)

    def returned(self, job: Job, value: Any) -> RunReport:
        """The handler returned. A value that cannot be stored fails the job: running it again would not change that."""
        if value is None:
            outcome = commands.COMPLETE, job.id, job.fence, None  # `commands.completed` without the call: most jobs
            return of_class(RunReport, (job, outcome, "completed", None, None, False, False))
        try:
            raw = codec.encode(self.queue.serializer, value, self.queue.max_payload, "return value")
        except ConfigurationError as error:
            return self.final(job, error)
        return RunReport(job, commands.completed(job.id, job.fence, raw), "completed", result=raw)

    def raised(self, job: Job, error: BaseException) -> RunReport:
        """The handler raised: retry the job if it has attempts left, else fail it."""
        if isinstance(error, RateLimited):
            return self.rate_limited(job, error)
        if isinstance(error, Snooze):
            return self.snoozed(job, error)
        return self.final(job, error) if isinstance(error, FailJob) else self.retried(job, error)

    def retried(self, job: Job, error: BaseException) -> RunReport:
        """The attempt failed: another one follows if the job has any left."""
        if isinstance(error, RateLimited):
            return self.rate_limited(job, error)
        if isinstance(error, Snooze):
            return self.snoozed(job, error)
        if job.attempt >= self._most_attempts(job):
            return self.final(job, error)
        yields = self._yields(job)
        delay_ms, remark = self._delay(job, error)
        reason, stack, kind = described(error)
        outcome = commands.retried(job.id, job.fence, delay_ms, yields, reason + remark, stack, kind)
        outside = delay_ms > 0 and (yields or job.group_id is None)
        return RunReport(job, outcome, "retrying", error, yields=outside)

    def final(self, job: Job, error: BaseException) -> RunReport:
        return RunReport(job, commands.failed(job.id, job.fence, *described(error)), "failed", error)

    def rate_limited(self, job: Job, error: RateLimited) -> RunReport:
        """The handler raised RateLimited: the job keeps its sort key, its group rests, and no attempt is used."""
        delay_ms, remark = _asked_delay(error.retry_after, "RateLimited.retry_after")
        outside = delay_ms > 0 and job.group_id is None
        reason = clipped(message_of(error), 500) + remark
        outcome = commands.rate_limited(job.id, job.fence, delay_ms, reason, class_path(error))
        return RunReport(job, outcome, "rate_limited", error, yields=outside)

    def snoozed(self, job: Job, error: Snooze) -> RunReport:
        """The handler raised Snooze: the job comes back later with its sort key, and no attempt is used."""
        delay_ms, remark = _asked_delay(error.delay, "Snooze.delay")
        yields = self._yields(job)
        outside = delay_ms > 0 and (yields or job.group_id is None)
        reason = clipped(message_of(error), 500) + remark
        outcome = commands.snoozed(job.id, job.fence, delay_ms, yields, reason, class_path(error))
        return RunReport(job, outcome, "snoozed", error, yields=outside)

    def stopped(self, job: Job, stop_reason: StopReason, *, abandoned: bool, begun: bool = True) -> RunReport:
        """The handler was stopped, or not called at all (see `begun`), and did not return a value.

        A run whose lease is lost has nothing to report.
        """
        if stop_reason == "closing":
            return self.released(job, begun=begun)
        if stop_reason == "cancelled":
            return self.cancelled(job, abandoned=abandoned)
        return self.raised(job, HandlerTimeout(job.id, job.timeout or 0.0))

    def cancelled(self, job: Job, *, abandoned: bool = False) -> RunReport:
        """Cancelled by an operator: no further attempts. `abandoned`: its handler has not ended yet."""
        outcome = commands.abandoned if abandoned else commands.failed
        return RunReport(job, outcome(job.id, job.fence, JobCancelled.REASON, ""), "failed", JobCancelled(job.id))

    def released(self, job: Job, *, begun: bool = False, may_be_gone: bool = False) -> RunReport:
        """The run did not finish: the job goes back to its group with its sort key, and no attempt is used.

        `begun`: its handler was called, which the history of the job then shows. `may_be_gone`: as in RunReport.
        """
        outcome = commands.released(job.id, job.fence, begun=begun)
        return RunReport(job, outcome, "released", may_be_gone=may_be_gone)

    def begun(self, job: Job) -> RunReport:
        """The report that the handler of the job was called. It does not end the run."""
        return RunReport(job, commands.begun(job.id, job.fence), "begun")

    def ended(self, job: Job) -> RunReport:
        """The handler of a run that an operator has ended is done. There is no outcome: the job is gone."""
        return RunReport(job, commands.ended(job.id, job.fence), "ended")

    def _most_attempts(self, job: Job) -> int:
        """The settings may have changed since the job was taken."""
        if self.live is None or job.own_max_attempts is not None:
            return job.max_attempts
        return self.live.now().max_attempts

    def _yields(self, job: Job) -> bool:
        setting = self.queue.on_retry if self.live is None else self.live.now().on_retry
        return (job.on_retry or setting) == "yield"

    def blocks(self, job: Job) -> bool:
        """Whether this job blocks its group if it fails for good."""
        setting = self.queue.on_failed if self.live is None else self.live.now().on_failed
        return job.group_id is not None and (job.on_failed or setting) == "hold"

    def _delay(self, job: Job, error: BaseException) -> tuple[int, str]:
        if isinstance(error, RetryJob):
            try:
                return millis(error.delay, "RetryJob.delay"), ""
            except ConfigurationError as bad:
                return 0, f" ({bad})"
        policy = job.backoff or (self.backoff if self.live is None else self.live.now().backoff)
        try:
            return millis(backoffs.delay_after(policy, job.attempt, error), "backoff"), ""
        except Exception as broken:
            # A back-off policy that raises must not cost the job its retry.
            words = clipped(message_of(broken), 500)
            remark = f" (the back-off policy raised {type(broken).__name__}: {words}; the default was used)"
            return millis(backoffs.DEFAULT.delay(job.attempt), "backoff"), remark


def _asked_delay(delay: object, argument: str) -> tuple[int, str]:
    """The time that a handler asks for, and a remark for its reason if that is not a duration."""
    try:
        return millis(delay, argument), ""
    except ConfigurationError as bad:
        return _USUAL_MS, f" ({bad}; {_USUAL_MS // 1000} s was used)"


def described(error: BaseException) -> tuple[str, str, str]:
    """Reason, stack and class of an error, as stored. An error whose own text raises must not stop the worker."""
    message, name = message_of(error), type(error).__name__
    # A HandlerError already names the class that was raised, in another process.
    in_words = message and isinstance(error, FailJob | RetryJob | BatchFailed | HandlerError)
    reason = message if in_words else f"{name}: {message}".removesuffix(": ")
    try:
        stack = "".join(traceback.format_exception(error))
    except Exception:
        stack = ""
    return clipped(reason, 2000), clipped(stack), class_path(error)
