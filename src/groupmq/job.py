"""The job as users see it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self

from groupmq.backoff import Backoff
from groupmq.codec import Serializer
from groupmq.durations import Duration, moment
from groupmq.emitter import Listener
from groupmq.errors import ConfigurationError
from groupmq.record import Stored, parts, place


class LogLine(NamedTuple):
    """A line that a handler has logged."""

    at: datetime
    text: str


_UNREAD: Any = object()
_NO_LOGS: list[LogLine] = []
_NO_HEADERS: dict[str, str] = {}
_PATIENCE = 30.0
"""Seconds a handler in a thread waits for what it says to be stored."""


class _Place:
    """An attribute that is read with its neighbours when one of them is asked for first. Most handlers never do."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, job: Snapshot | None, owner: type) -> Any:
        if job is None:
            return self
        job.priority, job.order_ms, job._created_ms = place(job._head)
        return getattr(job, self._name)


def _place(name: str) -> Any:
    return _Place(name)


class Snapshot:
    """A job as it was when it was read: plain values, no I/O. Data and result are decoded when first asked for."""

    # What most jobs do not have is said once here and stored with the others only: thousands are made in a second. What
    # each job that runs gets is set from the start: setting it later for the first time costs ten times as much.
    id: str
    group_id: str | None
    state: str
    priority: int = _place("priority")
    order_ms: int = _place("order_ms")
    max_attempts: int
    attempts_made: int
    timeout: float | None = None
    backoff: Backoff | None = None
    on_retry: str | None = None
    failed_reason: str | None = None
    stacktrace: str | None = None
    progress: Any = None
    logs: list[LogLine] = _NO_LOGS
    headers: dict[str, str] = _NO_HEADERS
    worker: str | None
    fence: int
    stalls: int = 0
    duplicate: bool = False
    _queue: Any
    _heard: Callable[[Any, Any], None] | None
    _serializer: Serializer
    _head: bytes = b""
    _created_ms: int = _place("_created_ms")
    _raw_data: bytes
    _data: Any
    _result: Any = _UNREAD
    _raw_result: bytes | None
    _run_at_ms: int = 0
    _started_ms: int
    _finished_ms: int
    _expires_ms: int = 0

    def __init__(
        self, queue: Any, serializer: Serializer, job_id: str, state: str, stored: Stored, max_attempts: int
    ) -> None:
        """`stored`: the record, or its bytes."""
        self._queue = queue
        self._serializer = serializer
        self.id = job_id
        self.state = state
        self.attempts_made = self.fence = self._started_ms = self._finished_ms = 0
        self.worker = self._raw_result = self._heard = None
        self._data = _UNREAD
        if isinstance(stored, bytes):
            own_max, self.group_id, options, self._raw_data, self._head = parts(stored)
        else:
            self.priority, self.order_ms, _, self._created_ms, own_max, _, self.group_id, options, data = stored
            self._raw_data = data
        self.max_attempts = own_max or max_attempts
        if options:
            self._read_options(options)

    def _read_options(self, options: dict[str, Any]) -> None:
        if "t" in options:
            self.timeout = options["t"] / 1000
        if "b" in options:
            self.backoff = Backoff.unpacked(options["b"])
        if "y" in options:
            self.on_retry = "yield" if options["y"] else "hold"
        if "h" in options:
            self.headers = options["h"]

    @property
    def data(self) -> Any:
        """What was passed to `add`."""
        if self._data is _UNREAD:
            self._data = self._serializer.decode(self._raw_data)
        return self._data

    @property
    def return_value(self) -> Any:
        """What the handler returned; None until then."""
        if self._result is _UNREAD:
            self._result = None if self._raw_result is None else self._serializer.decode(self._raw_result)
        return self._result

    @property
    def attempt(self) -> int:
        """Number of the current run, from 1; of the next one for a job that does not run."""
        return self.attempts_made + 1

    @property
    def created_at(self) -> datetime | None:
        return moment(self._created_ms)

    @property
    def run_at(self) -> datetime | None:
        """When a delayed job, or one in its back-off, may start."""
        return moment(self._run_at_ms)

    @property
    def expires_at(self) -> datetime | None:
        """When a job with a ttl fails unless it has started."""
        return moment(self._expires_ms)

    @property
    def started_at(self) -> datetime | None:
        """When the newest attempt started."""
        return moment(self._started_ms)

    @property
    def finished_at(self) -> datetime | None:
        return moment(self._finished_ms)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        times = ("created_at", "run_at", "expires_at", "started_at", "finished_at")
        plain = (
            "id group_id data state priority order_ms attempts_made attempt max_attempts return_value "
            "failed_reason stacktrace progress worker fence duplicate timeout headers"
        ).split()
        found = {name: getattr(self, name) for name in plain}
        for name in times:
            value = getattr(self, name)
            found[name] = None if value is None else value.isoformat()
        found["logs"] = [{"at": line.at.isoformat(), "text": line.text} for line in self.logs]
        return found

    def copy_from(self, other: Snapshot) -> None:
        for name in Snapshot.__annotations__:
            if name not in ("duplicate", "_heard"):
                setattr(self, name, getattr(other, name))

    def __repr__(self) -> str:
        group = f" of {self.group_id!r}" if self.group_id is not None else ""
        return f"<{type(self).__name__} {self.id!r}{group} {self.state}>"


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
    def result_of(self, job: Job, timeout: Any) -> Awaitable[Any]: ...
    def listen_to(self, job: Job, event: str, listener: Listener) -> JobListeners: ...
    def say(self, job: Job, *, progress: Any = ..., line: str | None = ...) -> Awaitable[None]: ...


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

    _queue: JobActions
    _home: asyncio.AbstractEventLoop | None = None
    _listeners: JobListeners | None = None
    _looked = False
    _stop_event: threading.Event | None = None
    _stopped = False
    _tell: Callable[[Job, str, Any], None] | None = None

    # Waiting and listening

    async def result(self, timeout: Duration | None = None) -> Any:
        """Wait for the job's end, wherever it runs, and return what its handler returned.

        Raises JobFailed (with reason and stack), JobRemoved, or TimeoutError after `timeout` seconds.
        """
        return await self._queue.result_of(self, timeout)

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener(event)` for what happens to this job, as long as this object lives."""
        self._listeners = self._queue.listen_to(self, event, listener)
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
            return self._queue.say(self, **what)
        future = asyncio.run_coroutine_threadsafe(_awaited(self._queue.say(self, **what)), home)
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

    def _end_run(self) -> None:
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
