# Generated from src/groupmq/client/job_actions.py by `make sync`; do not edit.
"""What a job object does to the stored job: the same in both clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from groupmq.core.durations import Duration
from groupmq.core.pages import Attempt
from groupmq.core.snapshot import Snapshot

if TYPE_CHECKING:
    from groupmq.sync.queue.queue import Queue


class JobActions(Snapshot):
    """The values of a job, and methods that ask its queue to change it."""

    _queue: Queue

    def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the job's end, wherever it runs, and return what its handler returned.

        Raises JobFailed (with reason and stack), JobRemoved, or TimeoutError after `timeout` seconds.
        """
        return self._queue._result_of(self, timeout)

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

    def skip(self) -> bool:
        return self._queue.skip(self.id)

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
