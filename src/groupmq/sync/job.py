"""The job, blocking: the values of `groupmq.Job`, and methods that return instead of being awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from groupmq.core.durations import Duration
from groupmq.core.events import Event
from groupmq.core.pages import Attempt
from groupmq.core.snapshot import Snapshot

if TYPE_CHECKING:
    from groupmq.client.events import JobListeners
    from groupmq.sync.queue import Queue


class Job(Snapshot):
    """A job as returned by the blocking queue. Its methods act on the stored job."""

    _queue: Queue
    _listeners: JobListeners | None = None

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the job's end, wherever it runs, and return what its handler returned.

        Raises JobFailed (with reason and stack), JobRemoved, or TimeoutError after `timeout` seconds.
        """
        return self._queue._result_of(self, timeout)

    def on(self, event: str, listener: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call `listener(event)`, in a thread of its own, for what happens to this job, while this object lives."""
        self._listeners = self._queue._listen_to(self, event, listener)
        return listener

    def off(self, event: str, listener: Callable[[Event], Any]) -> bool:
        """Stop calling `listener`; True if it was listening."""
        return self._listeners is not None and self._queue._stop_listening_to(self._listeners, event, listener)

    def get_state(self) -> str:
        """The state right now. Raises JobNotFound if the job is gone."""
        return self._queue.require_job(self.id).state

    def refresh(self) -> Self:
        """Read everything about this job anew."""
        self.copy_from(self._queue.require_job(self.id))
        return self

    def get_attempts(self) -> list[Attempt]:
        """The runs of this job, oldest first; see `Queue.get_attempts`."""
        return self._queue.get_attempts(self.id)

    def remove(self) -> bool:
        return self._queue.remove(self.id)

    def retry(self) -> bool:
        return self._queue.retry(self.id)

    def promote(self) -> bool:
        return self._queue.promote(self.id)

    def change_delay(self, delay: Any) -> bool:
        return self._queue.change_delay(self.id, delay)

    def update_data(self, data: Any) -> None:
        """Replace the data; a handler that runs already keeps what it was given."""
        self._queue.update_data(self.id, data)
        self._data = data

    update = update_data

    def fail(self, reason: str = "failed by operator") -> bool:
        return self._queue.fail(self.id, reason)

    def cancel(self) -> bool:
        """Remove the job if it waits; stop its handler, wherever it runs, if it runs."""
        return self._queue.cancel(self.id)
