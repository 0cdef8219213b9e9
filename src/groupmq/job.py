"""The job as users see it."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Protocol, Self

from groupmq.backoff import Backoff
from groupmq.codec import Serializer
from groupmq.durations import moment
from groupmq.record import Record

_UNREAD: Any = object()


class Snapshot:
    """A job as it was when it was read: plain values, no I/O. Data and result are decoded when first asked for."""

    __slots__ = (
        "_created_ms",
        "_data",
        "_finished_ms",
        "_queue",
        "_raw_data",
        "_raw_result",
        "_result",
        "_run_at_ms",
        "_serializer",
        "_started_ms",
        "attempts_made",
        "backoff",
        "duplicate",
        "failed_reason",
        "fence",
        "group_id",
        "id",
        "max_attempts",
        "on_retry",
        "order_ms",
        "priority",
        "progress",
        "stacktrace",
        "stalls",
        "state",
        "timeout",
        "worker",
    )

    id: str
    group_id: str | None
    state: str
    priority: int
    order_ms: int
    attempts_made: int
    max_attempts: int
    timeout: float | None
    backoff: Backoff | None
    on_retry: str | None
    failed_reason: str | None
    stacktrace: str | None
    progress: Any
    worker: str | None
    fence: int
    stalls: int
    duplicate: bool

    def __init__(
        self, queue: Any, serializer: Serializer, job_id: str, state: str, stored: Record, max_attempts: int
    ) -> None:
        self._queue = queue
        self._serializer = serializer
        self.id = job_id
        self.state = state
        self.priority, self.order_ms, _, self._created_ms, own_max, _, self.group_id, options, raw = stored
        self.max_attempts = own_max or max_attempts
        self._raw_data = raw
        self._data = _UNREAD
        self._raw_result: bytes | None = None
        self._result = _UNREAD
        self._run_at_ms = self._started_ms = self._finished_ms = 0
        self.attempts_made = self.stalls = self.fence = 0
        self.failed_reason = self.stacktrace = self.worker = self.progress = None
        self.duplicate = False
        self.timeout = self.backoff = self.on_retry = None
        if options:
            self._read_options(options)

    def _read_options(self, options: dict[str, Any]) -> None:
        if "t" in options:
            self.timeout = options["t"] / 1000
        if "b" in options:
            self.backoff = Backoff.unpacked(options["b"])
        if "y" in options:
            self.on_retry = "yield" if options["y"] else "hold"

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
    def started_at(self) -> datetime | None:
        """When the newest attempt started."""
        return moment(self._started_ms)

    @property
    def finished_at(self) -> datetime | None:
        return moment(self._finished_ms)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        times = ("created_at", "run_at", "started_at", "finished_at")
        plain = (
            "id group_id data state priority order_ms attempts_made attempt max_attempts return_value "
            "failed_reason stacktrace progress worker fence duplicate timeout"
        ).split()
        found = {name: getattr(self, name) for name in plain}
        for name in times:
            value = getattr(self, name)
            found[name] = None if value is None else value.isoformat()
        return found

    def copy_from(self, other: Snapshot) -> None:
        for name in Snapshot.__slots__:
            if name != "duplicate":
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
    def require_job(self, job_id: str) -> Awaitable[Job]: ...


class Job(Snapshot):
    """A job, as given to handlers and returned by `add` and the getters. Its methods act on the stored job.

    >>> job = await queue.add({"amount": 999}, group_id="user:42")
    >>> await job.get_state()
    'waiting'
    """

    __slots__ = ()

    _queue: JobActions

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
