"""The job as users see it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol, Self

from groupmq.core.durations import Duration
from groupmq.core.emitter import Listener
from groupmq.core.errors import ConfigurationError
from groupmq.core.pages import Attempt
from groupmq.core.snapshot import Snapshot

_PATIENCE = 30.0
"""Seconds a handler in a thread waits for what it says to be stored."""


class JobActions(Protocol):
    """What a Job needs of the queue it belongs to."""

    def remove(self, job_id: str) -> Awaitable[bool]: ...
    def retry(self, job_id: str) -> Awaitable[bool]: ...
    def promote(self, job_id: str) -> Awaitable[bool]: ...
    def change_delay(self, job_id: str, delay: Any) -> Awaitable[bool]: ...
    def update_data(self, job_id: str, data: Any) -> Awaitable[None]: ...
    def fail(self, job_id: str, reason: str = ...) -> Awaitable[bool]: ...
    def cancel(self, job_id: str) -> Awaitable[bool]: ...
    def require_job(self, job_id: str) -> Awaitable[Job]: ...
    def get_attempts(self, job_id: str) -> Awaitable[list[Attempt]]: ...
    def _result_of(self, job: Job, timeout: Any) -> Awaitable[Any]: ...
    def _listen_to(self, job: Job, event: str, listener: Listener) -> JobListeners: ...
    def _say(self, job: Job, *, progress: Any = ..., line: str | None = ...) -> Awaitable[None]: ...


class JobListeners(Protocol):
    """Who listens to one job; lives as long as the job object does."""

    def off(self, event: str, listener: Listener) -> bool: ...


class _Said:
    """What a thread gets that has waited already: awaiting it, out of habit, does nothing."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class Job(Snapshot):
    """A job, as given to handlers and returned by `add` and the getters. Its methods act on the stored job.

    >>> job = await queue.add({"amount": 999}, group_id="user:42")
    >>> await job.get_state()
    'waiting'
    """

    context: Any = None
    """In a handler: what `on_startup` of its worker returned."""
    _queue: JobActions
    _home: asyncio.AbstractEventLoop | None = None
    _listeners: JobListeners | None = None
    _looked = False
    _stop_event: threading.Event | None = None
    _stopped = False
    _waits_for_end = False
    _tell: Callable[[Job, str, Any], None] | None = None

    # Waiting and listening

    async def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the job's end, wherever it runs, and return what its handler returned.

        Raises JobFailed (with reason and stack), JobRemoved, or TimeoutError after `timeout` seconds.
        """
        return await self._queue._result_of(self, timeout)

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener(event)` for what happens to this job, as long as this object lives."""
        self._listeners = self._queue._listen_to(self, event, listener)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        listeners = self._listeners
        return listeners is not None and listeners.off(event, listener)

    # What a handler says

    def report_progress(self, value: Any) -> Awaitable[None]:
        """Store how far the job is, any JSON, and tell whoever listens. Raises LeaseLost if the run is over.

        In a `def` handler it waits by itself; there is nothing to await.
        """
        return self._say({"progress": value})

    def log(self, text: str) -> Awaitable[None]:
        """Add a line to the job's log; the newest 100 are kept."""
        if not isinstance(text, str):
            raise ConfigurationError.expected("text", "a string", text)
        return self._say({"line": text})

    def _say(self, what: dict[str, Any]) -> Awaitable[None]:
        tell = self._tell
        if tell is not None:
            # In a child process: the parent says it, in this job's name.
            for kind, value in what.items():
                tell(self, kind, value)
            return _Said()
        home = self._home
        if home is None or _running() is not None:
            return self._queue._say(self, **what)
        future = asyncio.run_coroutine_threadsafe(_awaited(self._queue._say(self, **what)), home)
        future.result(_PATIENCE)
        return _Said()

    @property
    def cancelled(self) -> bool:
        """Whether the run is to end: cancelled, out of time, closing, its lease lost. For `def` handlers to look at."""
        # Written by the handler's thread alone, and `_stopped` by the loop alone: neither can undo the other's word.
        self._looked = True
        return self._stopped

    @property
    def cancel_event(self) -> threading.Event:
        """Set when the run is to end; for `def` handlers to wait on."""
        event = self._stop_event
        if event is None:
            event = self._stop_event = threading.Event()
        if self.cancelled:
            event.set()
        return event

    def _end_run(self, *, waits: bool = False) -> None:
        """The run is to end. `waits`: its group waits until the handler has ended, also in a thread."""
        self._waits_for_end = waits
        self._stopped = True
        event = self._stop_event
        if event is not None:
            event.set()

    @property
    def _looks(self) -> bool:
        """Whether the handler looks at `cancelled`, and so may be expected to end by itself."""
        return self._looked

    # Acting

    async def get_state(self) -> str:
        """The state right now. Raises JobNotFound if the job is gone."""
        return (await self._queue.require_job(self.id)).state

    async def refresh(self) -> Self:
        """Read everything about this job anew."""
        self.copy_from(await self._queue.require_job(self.id))
        return self

    async def get_attempts(self) -> list[Attempt]:
        """The runs of this job, oldest first; see `Queue.get_attempts`."""
        return await self._queue.get_attempts(self.id)

    async def remove(self) -> bool:
        return await self._queue.remove(self.id)

    async def retry(self) -> bool:
        return await self._queue.retry(self.id)

    async def promote(self) -> bool:
        return await self._queue.promote(self.id)

    async def change_delay(self, delay: Any) -> bool:
        return await self._queue.change_delay(self.id, delay)

    async def update_data(self, data: Any) -> None:
        """Replace the data; a handler that runs already keeps what it was given."""
        await self._queue.update_data(self.id, data)
        self._data = data

    update = update_data

    async def fail(self, reason: str = "failed by operator") -> bool:
        return await self._queue.fail(self.id, reason)

    async def cancel(self) -> bool:
        """Remove the job if it waits; stop its handler, wherever it runs, if it runs."""
        return await self._queue.cancel(self.id)


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _awaited(what: Awaitable[None]) -> None:
    await what
