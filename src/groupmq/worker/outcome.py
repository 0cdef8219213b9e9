"""What the end of a run means: pure decisions, no I/O."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from groupmq import backoff as backoffs
from groupmq import codec, commands
from groupmq.backoff import BackoffPolicy
from groupmq.commands import Outcome
from groupmq.durations import millis
from groupmq.errors import ConfigurationError, FailJob, JobCancelled, RateLimited, RetryJob, said
from groupmq.job import Job
from groupmq.operations import clipped
from groupmq.options import QueueOptions
from groupmq.worker.pools import HandlerError

Event = Literal["completed", "retrying", "failed", "released", "limited", "begun"]
_REST_MS = 1000
"""For a `retry_after` that makes no sense: the job must not suffer for it, nor the service it calls."""


class Report(NamedTuple):
    """The outcome of one run, to be sent, and the event to emit once the server has accepted it."""

    job: Job
    outcome: Outcome
    event: Event
    error: BaseException | None = None
    result: bytes | None = None
    yields: bool = False
    """A retry that waits outside its group."""


_new = tuple.__new__
"""Makes a named tuple without the detour through its class; for what passes by the thousand."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides what becomes of a job whose handler ended."""

    queue: QueueOptions
    backoff: BackoffPolicy

    def returned(self, job: Job, value: Any) -> Report:
        """The handler returned. A value that cannot be stored fails the job: running it again would not change that."""
        if value is None:
            outcome = commands.COMPLETE, job.id, job.fence, None
            return _new(Report, (job, outcome, "completed", None, None, False))
        try:
            raw = codec.encode(self.queue.serializer, value, self.queue.max_payload, "return value")
        except ConfigurationError as error:
            return self.final(job, error)
        return Report(job, commands.completed(job.id, job.fence, raw), "completed", result=raw)

    def raised(self, job: Job, error: BaseException) -> Report:
        """The handler raised: another attempt if one is left, else the end."""
        if isinstance(error, RateLimited):
            return self.limited(job, error)
        if isinstance(error, FailJob) or job.attempt >= job.max_attempts:
            return self.final(job, error)
        yields = (job.on_retry or self.queue.on_retry) == "yield"
        delay_ms, note = self._delay(job, error)
        reason, stack = described(error)
        outcome = commands.retried(job.id, job.fence, delay_ms, yields, reason + note, stack)
        outside = delay_ms > 0 and (yields or job.group_id is None)
        return Report(job, outcome, "retrying", error, yields=outside)

    def final(self, job: Job, error: BaseException) -> Report:
        return Report(job, commands.failed(job.id, job.fence, *described(error)), "failed", error)

    def limited(self, job: Job, error: RateLimited) -> Report:
        """Told to slow down: back to its place, its group rests, no attempt used."""
        try:
            delay_ms = millis(error.retry_after, "RateLimited.retry_after")
        except ConfigurationError:
            delay_ms = _REST_MS
        outside = delay_ms > 0 and job.group_id is None
        return Report(job, commands.limited(job.id, job.fence, delay_ms), "limited", error, yields=outside)

    def cancelled(self, job: Job) -> Report:
        """Stopped by somebody's word: no further attempts."""
        error = JobCancelled(job.id)
        return Report(job, commands.failed(job.id, job.fence, JobCancelled.REASON, ""), "failed", error)

    def released(self, job: Job) -> Report:
        """Unfinished: back to its place, no attempt used."""
        return Report(job, commands.released(job.id, job.fence), "released")

    def begun(self, job: Job) -> Report:
        """No end yet: a job that was taken ahead has started."""
        return Report(job, commands.begun(job.id, job.fence), "begun")

    def _delay(self, job: Job, error: BaseException) -> tuple[int, str]:
        if isinstance(error, RetryJob):
            try:
                return millis(error.delay, "RetryJob.delay"), ""
            except ConfigurationError as bad:
                return 0, f" ({bad})"
        policy = job.backoff or self.backoff
        try:
            return millis(backoffs.delay_after(policy, job.attempt, error), "backoff"), ""
        except Exception as broken:
            # A broken policy must not cost the job its retry.
            words = clipped(said(broken), 500)
            note = f" (the back-off policy raised {type(broken).__name__}: {words}; the default was used)"
            return millis(backoffs.DEFAULT.delay(job.attempt), "backoff"), note


def described(error: BaseException) -> tuple[str, str]:
    """Reason and stack of an error, as stored. An error whose own text raises must not stop the worker."""
    message, name = said(error), type(error).__name__
    # A HandlerError already names the class that was raised, in another process.
    in_words = message and isinstance(error, FailJob | RetryJob | HandlerError)
    reason = message if in_words else f"{name}: {message}".removesuffix(": ")
    try:
        stack = "".join(traceback.format_exception(error))
    except Exception:
        stack = ""
    return clipped(reason, 2000), clipped(stack)
