"""A job described step by step: `queue.create_job(data).group("g").retries(3).delay(5)`, then saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

from groupmq.core.checks import whole
from groupmq.core.drafts import draft
from groupmq.core.queue_options import MAX_ATTEMPTS, OnFailed, OnRetry, QueueOptions

R = TypeVar("R")


class JobDraft(Generic[R]):
    """A job that is not added yet. Each step checks its argument and returns the draft; only `save` writes."""

    def __init__(self, options: QueueOptions, add: Callable[..., R], data: Any) -> None:
        self._options = options
        self._add = add
        self.fields: dict[str, Any] = {"data": data}
        draft(options, data)

    def _set(self, **fields: Any) -> Self:
        described = {**self.fields, **fields}
        draft(self._options, described.pop("data"), **described)
        self.fields.update(fields)
        return self

    def group(self, group_id: str) -> Self:
        return self._set(group_id=group_id)

    def retries(self, n: int) -> Self:
        """Run up to `n` more times after the first run; the same as max_attempts = n + 1."""
        return self._set(max_attempts=whole(n, "retries", 0, MAX_ATTEMPTS - 1) + 1)

    def timeout(self, duration: Any) -> Self:
        """Cancel the handler after this long."""
        return self._set(timeout=duration)

    def delay(self, duration: Any) -> Self:
        """Do not start the job before this time has passed."""
        return self._set(delay=duration)

    def run_at(self, instant: Any) -> Self:
        """Do not start the job before this instant."""
        return self._set(run_at=instant)

    def backoff(self, policy: Any) -> Self:
        return self._set(backoff=policy)

    def on_retry(self, hold_or_yield: OnRetry) -> Self:
        """Whether the group waits for the next attempt."""
        return self._set(on_retry=hold_or_yield)

    def on_failed(self, hold_or_continue: OnFailed) -> Self:
        """Whether the group is blocked if the job fails for good."""
        return self._set(on_failed=hold_or_continue)

    def priority(self, n: int) -> Self:
        return self._set(priority=n)

    def order(self, order_ms: int) -> Self:
        return self._set(order_ms=order_ms)

    def set_id(self, job_id: str) -> Self:
        return self._set(job_id=job_id)

    def unique_for(self, duration: Any) -> Self:
        """Keep the id taken for this long after the job has ended. Call `set_id` first."""
        return self._set(unique_for=duration)

    def ttl(self, duration: Any) -> Self:
        """Fail the job if it has not started within this long."""
        return self._set(ttl=duration)

    def dedupe(self, once: Any) -> Self:
        """Set a Throttle or a Debounce."""
        return self._set(dedupe=once)

    def save(self) -> R:
        """Add the job. On an asynchronous queue, `await` this call."""
        fields = dict(self.fields)
        return self._add(fields.pop("data"), **fields)
