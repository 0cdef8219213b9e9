"""The events of a queue, read from the server's log (`lua/lib/events.lua`). No I/O."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from groupmq.core.codec import JSON, Serializer
from groupmq.core.errors import ConfigurationError, message_of

Kind = Literal[
    "added",
    "active",
    "progress",
    "completed",
    "retrying",
    "failed",
    "stalled",
    "removed",
    "drained",
    "paused",
    "resumed",
    "blocked",
    "unblocked",
    "gap",
]
KINDS: tuple[str, ...] = get_args(Kind)
ENDS = frozenset(("completed", "failed", "removed"))
"""Kinds with which a job ends."""
UNREADABLE = -1
"""The number of an entry that cannot be read."""
_STORED = -2
_logger = logging.getLogger("groupmq.events")
_decode = msgspec.msgpack.Decoder().decode
_POSITION = re.compile(r"([0-9]{1,20})-([0-9]{1,20})/(-1|[0-9]{1,20})/(-1|[0-9]{1,20})")


class Position(NamedTuple):
    """A position in the log: just behind event number `at` of an entry, the `entry`-th ever written."""

    stream_id: str
    entry: int
    at: int

    def __str__(self) -> str:
        return f"{self.stream_id}/{self.entry}/{self.at}"

    @classmethod
    def parse(cls, text: object) -> Position:
        """Read an `event.id`. Numbers beyond 64 bits are refused here: a server would refuse a read of several
        logs as a whole."""
        found = _POSITION.fullmatch(str(text))
        if found is None or max(int(found[1]), int(found[2])) >= 2**64:
            raise ConfigurationError.expected("since", "the id of an event", text)
        return cls(f"{int(found[1])}-{int(found[2])}", int(found[3]), int(found[4]))


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a queue. A field that its kind does not have is None.

    `gap` means that events were missed: the log is bounded, and they were deleted before they could be read.
    """

    id: str
    kind: Kind
    job_id: str | None
    group_id: str | None
    at: datetime
    attempt: int | None = None
    """Number of the run that the event is about, from 1."""
    worker: str | None = None
    """active: the worker that runs the job."""
    delay: float | None = None
    """retrying: seconds until the next attempt."""
    reason: str | None = None
    """retrying, failed: why."""
    stacktrace: str | None = None
    final: bool | None = None
    """stalled: True if the job does not run again."""
    progress: Any = None
    raw_result: bytes | None = field(default=None, repr=False)
    stored: bool = field(default=False, repr=False)
    """completed: the result is too large for an event and only stored with the job."""
    serializer: Serializer = field(default=JSON, repr=False, compare=False)

    @property
    def at_ms(self) -> int:
        return round(self.at.timestamp() * 1000)

    @property
    def result(self) -> Any:
        """completed: what the handler returned (None if it is `stored` with the job)."""
        return None if self.raw_result is None else self.serializer.decode(self.raw_result)


class Entry(NamedTuple):
    """One entry of the log: the events of one call."""

    stream_id: str
    number: int
    events: list[Event]


def read(raw: Any, serializer: Serializer) -> Entry:
    """Decode an entry as the server gives it: its id, and its fields and values in one list.

    An entry that cannot be read, or is of a later release, yields no event and does not stop the reader.
    """
    try:
        return _read(raw, serializer)
    except Exception as error:
        text = "entry %s of an event log cannot be read; its events are skipped: %s"
        _logger.warning(text, raw[0].decode(), message_of(error))
        return Entry(raw[0].decode(), UNREADABLE, [])


def _read(raw: Any, serializer: Serializer) -> Entry:
    stream_id, flat = raw
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    number, at_ms, *kinds = _decode(fields[b"e"])
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    name, blob = stream_id.decode(), fields.get(b"b", b"")
    events: list[Event] = []
    for row in _rows(kinds, blob):
        kind, job_id, group_id, rest = row
        where = str(Position(name, number, len(events)))
        if "raw_result" in rest:
            rest["serializer"] = serializer
        events.append(Event(where, kind, job_id or None, group_id or None, at, **rest))
    return Entry(name, number, events)


# The columns of each kind, behind ids and groups.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "active": ("attempt", "worker"),
    "begun": ("attempt", "worker"),
    "completed": ("attempt", "size", "prefetched", "worker"),
    "retrying": ("attempt", "delay", "reason"),
    "failed": ("attempt", "reason", "stacktrace"),
    "stalled": ("attempt", "final"),
    "progress": ("progress",),
}
_ORDER = {
    name: at
    for at, name in enumerate(
        (
            *("completed", "begun", "stalled", "retrying", "failed", "blocked"),
            *("removed", "unblocked", "added", "active"),
        )
    )
}


def _rows(kinds: list[list[Any]], blob: bytes) -> Iterator[tuple[Any, str, str, dict[str, Any]]]:
    """The events of an entry, one by one: ends of runs before new runs, as they happened."""
    for kind, ids, groups, *columns in sorted(kinds, key=lambda columns: _ORDER.get(columns[0], len(_ORDER))):
        if kind not in KINDS and kind != "begun":
            continue  # of a later release
        names, at = _COLUMNS.get(kind, ()), 0
        for i in range(len(ids)):
            rest = {
                name: column[i] if isinstance(column, list) else column
                for name, column in zip(names, columns, strict=False)
            }
            if kind == "completed":
                size, worker = rest.pop("size"), rest.pop("worker", None)
                if rest.pop("prefetched", 0):
                    # It was prefetched, so no `active` was published: this column stands for both events.
                    yield "active", ids[i], groups[i], {"attempt": rest["attempt"], "worker": worker}
                if size >= 0:
                    rest["raw_result"] = blob[at : at + size]
                    at += size
                rest["stored"] = size == _STORED
            elif kind == "retrying":
                rest["delay"] /= 1000
            elif kind == "progress":
                rest["progress"] = json.loads(rest["progress"])
            yield "active" if kind == "begun" else kind, ids[i], groups[i], rest


def gap(entry: Entry) -> Event:
    """The event which says that events before this entry were missed."""
    at = entry.events[0].at if entry.events else datetime.now(UTC)
    return Event(str(Position(entry.stream_id, entry.number, -1)), "gap", None, None, at)


class LogReader:
    """A position in the log that moves on entry by entry, and notices when one was missed."""

    def __init__(self, at: str, number: int | None) -> None:
        self.at = at
        self.number = number

    def take(self, entry: Entry) -> list[Event]:
        """The events of the next entry; none if it was seen already."""
        if not newer(entry.stream_id, self.at):
            return []
        if entry.number == UNREADABLE:
            self.at = entry.stream_id
            return []
        missed = self.number is not None and entry.number != self.number + 1
        self.at, self.number = entry.stream_id, entry.number
        return [gap(entry), *entry.events] if missed else entry.events


class EndOf:
    """Finds in the log how one job ended. Other jobs, made before and after it, may have had the same id."""

    def __init__(self, job_id: str, created_ms: int, next_ms: int | None = None) -> None:
        self.job_id = job_id
        self.created_ms = created_ms
        self._next_ms = next_ms
        """When the next job of that id was made, if there is one."""
        self.found: Event | None = None
        self.sure = False

    @property
    def since(self) -> str:
        """The position in the log at which to begin."""
        return f"{max(0, self.created_ms - 1)}-0"

    def see(self, event: Event) -> None:
        """Take in one event. Events must come in the order of the log, until `sure` is set."""
        if event.job_id != self.job_id or self.sure:
            return
        if event.kind == "added" and event.at_ms == self.created_ms:
            self.found = None  # the job begins here: an end in this millisecond was that of an earlier job
        elif event.kind == "added" and (event.at_ms == self._next_ms or event.at_ms > self.created_ms > 0):
            self.sure = True  # another job with that id begins, so this one had ended
        elif event.kind in ENDS and event.at_ms >= self.created_ms:
            self.found = event
            # After a failure an operator may let it run again; after the others the id is free for a new job.
            # If the time of creation is not known, the last end counts: the caller has just seen the job.
            self.sure = event.kind != "failed" and event.at_ms > self.created_ms > 0


def newer(one: str, other: str) -> bool:
    return tuple(map(int, one.split("-"))) > tuple(map(int, other.split("-")))
