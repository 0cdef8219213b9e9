"""The job as users see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from groupmq.client.job_in_handler import JobInHandler
from groupmq.core.durations import Duration, seconds
from groupmq.core.pages import Attempt
from groupmq.runtime.emitter import Listener

if TYPE_CHECKING:
    from groupmq.client.events import JobListeners
    from groupmq.client.queue.queue import Queue


class Job(JobInHandler):
    """A job, as returned by `add` and the getters. Its methods act on the stored job. Handlers get a `groupmq.Job`.

    >>> job = await queue.add({"amount": 999}, group_id="user:42")
    >>> await job.get_state()
    'waiting'
    """

    _queue: Queue
    _listeners: JobListeners | None = None

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener(event)` for each event of this job, as long as this object lives; see `Queue.on`."""
        self._queue._require_events()
        self._listeners = self._queue._listen_to(self, event, listener)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        """Stop calling `listener`; True if it was listening."""
        return self._listeners is not None and self._queue._stop_listening_to(self._listeners, event, listener)

    async def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the job's end, wherever it runs, and return what its handler returned.

        Raises JobFailed (with reason and stack), JobRemoved, or TimeoutError after `timeout` seconds.
        """
        return await self._queue._result_of(self, None if timeout is None else seconds(timeout, "timeout"))

    async def get_state(self) -> str:
        """The state right now. Raises JobNotFound if the job is gone."""
        return (await self._queue.require_job(self.id)).state

    async def refresh(self) -> Self:
        """Read everything about this job again."""
        self._copy_from(await self._queue.require_job(self.id))
        return self

    async def get_attempts(self) -> list[Attempt]:
        """The runs of this job, oldest first; see `Queue.get_attempts`."""
        return await self._queue.get_attempts(self.id)

    async def remove(self) -> bool:
        """See `Queue.remove`."""
        return await self._queue.remove(self.id)

    async def retry(self) -> bool:
        """See `Queue.retry`."""
        return await self._queue.retry(self.id)

    async def skip(self) -> bool:
        """See `Queue.skip`."""
        return await self._queue.skip(self.id)

    async def promote(self) -> bool:
        """See `Queue.promote`."""
        return await self._queue.promote(self.id)

    async def change_delay(self, delay: Any) -> bool:
        """See `Queue.change_delay`."""
        return await self._queue.change_delay(self.id, delay)

    async def update_data(self, data: Any) -> None:
        """Replace the data. A handler that is already running keeps the data it was given."""
        await self._queue.update_data(self.id, data)
        self._data = data

    update = update_data

    async def fail(self, reason: str = "failed by operator") -> bool:
        """See `Queue.fail`."""
        return await self._queue.fail(self.id, reason)

    async def cancel(self) -> bool:
        """Remove the job if it waits. If it runs, stop its handler, in whichever process that is."""
        return await self._queue.cancel(self.id)
