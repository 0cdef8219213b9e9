"""A job as it was when it was read: what async and blocking clients share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from groupmq.core.backoff import Backoff
from groupmq.core.codec import Serializer
from groupmq.core.durations import moment
from groupmq.core.job_options import STORED_OPTIONS
from groupmq.core.record import Stored, parts, read_sort_key


class LogLine(NamedTuple):
    """A line that a handler logged."""

    at: datetime
    text: str


GONE = "gone"
"""The state of a job that is no longer stored: it ended and is not kept, or it was removed."""
_FINISHED = ("completed", "failed")
_UNREAD: Any = object()
_NO_LOGS: list[LogLine] = []
_NO_HEADERS: dict[str, str] = {}


class _SortKeyField:
    """An attribute that is decoded, with its neighbours, at the first read of one. Most handlers read none."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, job: Snapshot | None, owner: type) -> Any:
        if job is None:
            return self
        job.priority, job.order_ms, job._created_ms = read_sort_key(job._raw_sort_key)
        return getattr(job, self._name)


def _sort_key_field(name: str) -> Any:
    return _SortKeyField(name)


class Snapshot:
    """A job as it was when it was read: plain values, no I/O. Data and result are decoded when first asked for."""

    # Attributes that most jobs lack have a default here and are set on the others only: thousands of jobs are made in a
    # second. Those of every running job are set from the start: setting one later would cost ten times as much.
    id: str
    group_id: str | None
    state: str
    priority: int = _sort_key_field("priority")
    order_ms: int = _sort_key_field("order_ms")
    max_attempts: int
    attempts_made: int
    timeout: float | None = None
    backoff: Backoff | None = None
    on_retry: str | None = None
    on_failed: str | None = None
    failed_reason: str | None = None
    stacktrace: str | None = None
    error_class: str | None = None
    progress: Any = None
    logs: list[LogLine] = _NO_LOGS
    headers: dict[str, str] = _NO_HEADERS
    worker: str | None
    fence: int
    stalls: int = 0
    duplicate: bool = False
    _queue: Any
    _on_progress: Callable[[Any, Any], None] | None
    _serializer: Serializer
    _raw_sort_key: bytes = b""
    _created_ms: int = _sort_key_field("_created_ms")
    _raw_data: bytes
    _data: Any
    _result: Any = _UNREAD
    _raw_result: bytes | None
    _run_at_ms: int = 0
    _started_ms: int
    _finished_ms: int
    _expires_ms: int = 0
    _blocks_ms: int = 0
    _sets_attempts: bool = False
    """Whether the job has a `max_attempts` of its own."""
    _named: bool = False
    """Whether its id was given to `add`, so that other jobs may have had it before."""

    def __init__(
        self,
        queue: Any,
        serializer: Serializer,
        job_id: str,
        state: str,
        stored: Stored,
        max_attempts: int,
        on_progress: Callable[[Any, Any], None] | None = None,
    ) -> None:
        """`stored`: the record, or its bytes. `on_progress`: called in a worker when the handler reports progress."""
        self._queue = queue
        self._serializer = serializer
        self.id = job_id
        self.state = state
        self.attempts_made = self.fence = self._started_ms = self._finished_ms = 0
        self.worker = self._raw_result = None
        self._on_progress = on_progress
        self._data = _UNREAD
        if isinstance(stored, bytes):
            own_max, self.group_id, options, self._raw_data, self._raw_sort_key = parts(stored)
        else:
            self.priority, self.order_ms, _, self._created_ms, own_max, _, self.group_id, options, data = stored
            self._raw_data = data
        if own_max:
            self.max_attempts, self._sets_attempts = own_max, True
        else:
            self.max_attempts = max_attempts
        if options:
            self._read_options(options)

    def _read_options(self, options: dict[str, Any]) -> None:
        for short, value in options.items():
            if short in STORED_OPTIONS:
                name, read = STORED_OPTIONS[short]
                setattr(self, name, read(value))
        if "h" in options:
            self.headers = options["h"]
        if "n" in options:
            self._named = True

    @property
    def data(self) -> Any:
        """The data that was passed to `add`."""
        if self._data is _UNREAD:
            self._data = self._serializer.decode(self._raw_data)
        return self._data

    @property
    def return_value(self) -> Any:
        """The value that the handler returned; None until then."""
        if self._result is _UNREAD:
            self._result = None if self._raw_result is None else self._serializer.decode(self._raw_result)
        return self._result

    @property
    def attempt(self) -> int:
        """Number of the current run, from 1; of the last run if the job has ended (0 = none); else of the next run."""
        return self.attempts_made if self.state in _FINISHED else self.attempts_made + 1

    @property
    def own_max_attempts(self) -> int | None:
        """The `max_attempts` that the job itself was given; None = that of the worker or the queue applies."""
        return self.max_attempts if self._sets_attempts else None

    @property
    def created_at(self) -> datetime | None:
        return moment(self._created_ms)

    @property
    def run_at(self) -> datetime | None:
        """When a delayed job, or one in its back-off, may start."""
        return moment(self._run_at_ms)

    @property
    def expires_at(self) -> datetime | None:
        """The time at which a job with a ttl fails unless it has started."""
        return moment(self._expires_ms)

    @property
    def started_at(self) -> datetime | None:
        """When the newest attempt started."""
        return moment(self._started_ms)

    @property
    def finished_at(self) -> datetime | None:
        return moment(self._finished_ms)

    @property
    def blocks_since(self) -> datetime | None:
        """Since when this failed job blocks its group (`on_failed="hold"`); None if it does not."""
        return moment(self._blocks_ms)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        times = ("created_at", "run_at", "expires_at", "started_at", "finished_at", "blocks_since")
        plain = (
            "id group_id data state priority order_ms attempts_made attempt max_attempts return_value "
            "failed_reason error_class stacktrace progress worker fence duplicate timeout headers"
        ).split()
        found = {name: getattr(self, name) for name in plain}
        for name in times:
            value = getattr(self, name)
            found[name] = None if value is None else value.isoformat()
        found["logs"] = [{"at": line.at.isoformat(), "text": line.text} for line in self.logs]
        return found

    def _copy_from(self, other: Snapshot) -> None:
        for name in Snapshot.__annotations__:
            if name not in ("duplicate", "_on_progress"):
                setattr(self, name, getattr(other, name))

    def __repr__(self) -> str:
        group = f" of {self.group_id!r}" if self.group_id is not None else ""
        return f"<{type(self).__name__} {self.id!r}{group} {self.state}>"
