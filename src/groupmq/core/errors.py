"""The few errors of groupmq, under one root. Each says what happened, to which job, and what happens next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any


class GroupMQError(Exception):
    """Root of every error raised by groupmq."""


class ConfigurationError(GroupMQError, ValueError):
    """An argument or a setting is wrong; nothing was written."""

    @classmethod
    def expected(cls, argument: str, expected: str, got: object) -> ConfigurationError:
        """The error in its usual form: the argument, the expected value and the given one."""
        try:
            shown = repr(got)
        except Exception:
            shown = f"a {type(got).__name__}"
        if len(shown) > 120:
            shown = shown[:117] + "..."
        return cls(f"{argument}: expected {expected}, got {shown}")


class PayloadTooLarge(ConfigurationError):
    """Data or a return value is larger than the queue's `max_payload`."""


class GroupFull(GroupMQError):
    """The group has as many live jobs as the queue's `max_group_size` allows; nothing was added."""

    def __init__(self, group_id: str, size: int) -> None:
        # A process that did not set the limit itself does not know it.
        live = f"{size} live jobs, the most it may have" if size else "as many live jobs as it may have"
        super().__init__(f"group {group_id!r} is full: it has {live}; nothing was added")
        self.group_id = group_id
        self.size = size


class JobNotFound(GroupMQError, LookupError):
    """There is no job with this id: it was never added, was removed, or is no longer kept."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id!r} does not exist (never added, removed, or no longer kept)")
        self.job_id = job_id


class WrongState(GroupMQError):
    """The state of the job does not allow the operation; nothing was changed."""

    def __init__(self, job_id: str, expected: tuple[str, ...], actual: str, detail: str = "") -> None:
        found = f"{actual} {detail}".rstrip()
        super().__init__(f"job {job_id!r} is {found}, expected {' or '.join(expected)}; nothing was changed")
        self.job_id = job_id
        self.expected = expected
        self.actual = actual


class QueueNotFound(GroupMQError):
    """The queue does not exist, and the caller asked not to create it."""

    def __init__(self, name: str, where: str) -> None:
        super().__init__(f"queue {name!r} does not exist at {where}; adding a job creates it")
        self.name = name


class LeaseLost(GroupMQError):
    """This worker no longer holds the job: its lease expired, or the job was removed, failed or taken over."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"the lease of job {job_id!r} is lost; the outcome of this run will not be recorded")
        self.job_id = job_id


class JobFailed(GroupMQError):
    """The awaited job failed for good."""

    def __init__(self, job_id: str, reason: str, stacktrace: str = "") -> None:
        super().__init__(f"job {job_id!r} failed: {reason}")
        self.job_id = job_id
        self.reason = reason
        self.stacktrace = stacktrace


class JobRemoved(GroupMQError):
    """The awaited job was removed before it finished, or before its result could be read."""

    def __init__(self, job_id: str, how: str = "was removed before it finished") -> None:
        super().__init__(f"job {job_id!r} {how}")
        self.job_id = job_id


class ConnectionLost(GroupMQError, ConnectionError):
    """The server cannot be reached, or stopped answering; the call may or may not have taken effect."""


class ServerRefused(GroupMQError):
    """The server was reached but refuses the call for now: loading, read-only, out of memory, busy."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class NotDurable(GroupMQError):
    """A job was added, but is not yet as safe as the queue's `durability` demands: a failover may still lose it.

    It is in the queue and will run. Adding it again with the same `job_id` adds nothing and waits once more.
    """

    def __init__(self, lacking: str, seconds: float) -> None:
        super().__init__(f"the job was added, but after {seconds:g} s {lacking}; a failover may still lose it")
        self.lacking = lacking
        self.seconds = seconds


class ScriptError(GroupMQError):
    """A server-side script failed; the message names the Lua file and line. Nothing was written."""


class HandlerTimeout(GroupMQError):
    """A handler ran longer than its job's `timeout` and was cancelled."""

    def __init__(self, job_id: str, seconds: float) -> None:
        super().__init__(f"the handler of job {job_id!r} ran longer than its timeout of {seconds:g} s")
        self.job_id = job_id
        self.seconds = seconds


class JobCancelled(GroupMQError):
    """A running handler was stopped because its job was cancelled."""

    REASON = "cancelled"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id!r} was cancelled")
        self.job_id = job_id


class FailJob(Exception):
    """Raised by a handler: fail the job now, even if attempts remain."""


class RetryJob(Exception):
    """Raised by a handler: end this attempt and try again after `delay`, if attempts remain."""

    def __init__(self, reason: str = "retry requested", *, delay: float = 0.0) -> None:
        super().__init__(reason)
        self.delay = delay


class BatchFailed(Exception):
    """Raised by a handler of batches: the jobs before `at` (counted from 0) are done, and the job at `at` has failed.

    The jobs before `at` complete, with `results` if there are any. The job at `at` is tried again, or fails, as if it
    had run alone; with `raise BatchFailed(at=k) from error`, `error` decides about it, so FailJob, RetryJob and
    RateLimited have their usual meaning. The jobs behind it are given back untouched.
    """

    def __init__(self, at: int, reason: str = "batch failed", *, results: Sequence[Any] | None = None) -> None:
        if type(at) is not int or at < 0:
            raise ConfigurationError.expected("BatchFailed.at", "the index of a job of the batch", at)
        super().__init__(reason)
        self.at = at
        self.results = results


class Snooze(Exception):
    """Raised by a handler that cannot work yet: the job comes back after `delay` with its sort key.

    No attempt is used. The group waits for the job, unless `on_retry` is "yield".
    """

    def __init__(self, delay: float | timedelta, reason: str = "snoozed") -> None:
        super().__init__(reason)
        self.delay = delay


class RateLimited(Exception):
    """Raised by a handler that must slow down (HTTP 429): the group of the job rests for `retry_after`.

    No attempt is used, the job keeps its sort key, and other groups go on.
    """

    def __init__(self, reason: str = "rate limited", *, retry_after: float | timedelta = 1.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


def message_of(error: BaseException) -> str:
    """The text of an error. An error whose `__str__` raises must not prevent the report."""
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


RAISED = "_groupmq_raised"
"""The attribute of an error from another process that holds the path of its original class."""


def class_path(error: BaseException) -> str:
    """The class of an error with its path, as a traceback writes it: `shop.errors.CardDeclined`, `ValueError`."""
    raised = getattr(error, "__dict__", {}).get(RAISED)
    if isinstance(raised, str):
        return raised
    module, name = str(type(error).__module__), str(type(error).__qualname__)
    path = name if module == "builtins" else f"{module}.{name}"
    return path[:500].encode("utf-8", "backslashreplace").decode()


# The path of these classes is stored with failed jobs, compared by filters and written into pickles. It must not depend
# on the file in which they are defined.
_RAISED_BY_HANDLERS = [FailJob, RetryJob, Snooze, RateLimited, BatchFailed]
for _error in [GroupMQError, *GroupMQError.__subclasses__(), PayloadTooLarge, *_RAISED_BY_HANDLERS]:
    _error.__module__ = "groupmq.errors"
