"""Listening, blocking: the log of events read in the caller's thread, or in one of its own for callbacks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from groupmq import commands, events
from groupmq.checks import Logger
from groupmq.codec import Serializer
from groupmq.connection import BlockingConnection
from groupmq.errors import ConfigurationError, GroupMQError, said
from groupmq.events import ENDS, KINDS, UNREADABLE, EndOf, Event, Position, Reader
from groupmq.faults import is_passing
from groupmq.job import Snapshot
from groupmq.results import Unknown, ended, finished, told

_logger: Logger = logging.getLogger("groupmq.events")
_BLOCK = 5.0
_PAGE = 200
_PAUSE = 0.5


class Log:
    """The log of one queue."""

    def __init__(self, connection: BlockingConnection, serializer: Serializer) -> None:
        self._connection = connection
        self._serializer = serializer

    def end(self) -> Reader:
        """A reader that sees what happens from now on."""
        last = self._connection.call(commands.log_end())
        if not last:
            return Reader("0-0", 0)
        entry = events.read(last, self._serializer)
        return Reader(entry.stream_id, None if entry.number == UNREADABLE else entry.number)

    def read(self, reader: Reader, timeout: float) -> list[Event]:
        """What comes next, waiting for it up to `timeout` seconds; nothing, soon, if the server is away for now."""
        try:
            raw = self._connection.read_log(reader.at, timeout)
        except GroupMQError as error:
            if not is_passing(error) or self._connection.dialogue.closed:
                raise
            time.sleep(min(timeout, _PAUSE))
            return []
        return [event for one in raw for event in reader.take(events.read(one, self._serializer))]

    def since(self, position: Position) -> tuple[Reader, list[Event]]:
        """A reader behind an event, and what follows that event in its own entry."""
        reader = Reader(position.stream_id, position.entry)
        page = self._connection.call(commands.log(position.stream_id, 1))
        if page and page[0][0].decode() == position.stream_id:
            return reader, events.read(page[0], self._serializer).events[position.at + 1 :]
        return reader, []

    def past(self, since: str) -> Iterator[Event]:
        """Everything after a stream id that the log still has."""
        while True:
            page = self._connection.call(commands.log(f"({since}", _PAGE))
            for raw in page:
                entry = events.read(raw, self._serializer)
                since = entry.stream_id
                yield from entry.events
            if len(page) < _PAGE:
                return

    def follow(self, since: str | None) -> Iterator[Event]:
        """All events, for ever; waits in between."""
        if since is None:
            reader = self.end()
        else:
            reader, rest = self.since(Position.parse(since))
            yield from rest
        while True:
            yield from self.read(reader, _BLOCK)


def result_of(
    log: Log, look: Callable[[str], Snapshot | None], job: Snapshot, timeout: float | None, *, listens: bool
) -> Any:
    """Wait for a job's end: where the log is first, then at the job, then at what is new in the log."""
    give_up = None if timeout is None else time.monotonic() + timeout
    created_ms = job._created_ms
    while True:
        reader = log.end() if listens else None
        found = look(job.id)
        if found is None:
            return told(job.id, _find_end(log, EndOf(job.id, created_ms)) if listens else None)
        if found._created_ms != created_ms:  # another job, of the same id
            end = EndOf(job.id, created_ms, found._created_ms)
            return told(job.id, _find_end(log, end) if listens else None)
        if finished(found):
            return found.return_value
        event = _wait(log, reader, job.id, give_up)
        if event is not None:
            try:
                return ended(job.id, event)
            except Unknown:
                continue


def _wait(log: Log, reader: Reader | None, job_id: str, give_up: float | None) -> Event | None:
    """The event that ends the job; None to look again."""
    while True:
        left = _BLOCK if give_up is None else give_up - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"job {job_id!r} has not ended in time")
        if reader is None:
            time.sleep(min(left, 0.05))
            return None
        found = log.read(reader, min(left, _BLOCK))
        for event in found:
            if event.job_id == job_id and event.kind in ENDS:
                return event
            if event.kind == "gap":
                return None
        if not found:
            return None  # nothing for a while: look at the job itself


def _find_end(log: Log, end: EndOf) -> Event | None:
    """How a job ended that is gone, as long as the log goes back."""
    for event in log.past(end.since):
        end.see(event)
        if end.sure:
            break
    return end.found


class Listeners:
    """Callbacks, called in a thread of their own, which lives while there are any."""

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self._name = name
        self._listeners: dict[str, list[Callable[[Event], Any]]] = {kind: [] for kind in KINDS}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def on(self, event: str, listener: Callable[[Event], Any]) -> None:
        if not callable(listener):
            raise ConfigurationError.expected("listener", "a callable", listener)
        with self._lock:
            self._of(event).append(listener)
            if self._thread is None:
                reader = self._log.end()
                self._thread = threading.Thread(
                    target=self._run, args=(reader,), name=f"{self._name}-events", daemon=True
                )
                self._thread.start()

    def off(self, event: str, listener: Callable[[Event], Any]) -> bool:
        with self._lock:
            listeners = self._of(event)
            if listener in listeners:
                listeners.remove(listener)
                return True
            return False

    def remove_all(self, event: str | None = None) -> None:
        with self._lock:
            for name in [event] if event is not None else list(self._listeners):
                self._of(name).clear()

    def close(self) -> None:
        self._closed = True

    def _of(self, event: str) -> list[Callable[[Event], Any]]:
        try:
            return self._listeners[event]
        except KeyError:
            raise ConfigurationError.expected("event", f"one of {', '.join(sorted(KINDS))}", event) from None

    def _run(self, reader: Reader) -> None:
        while self._wanted():
            try:
                found = self._log.read(reader, 1.0)
            except GroupMQError as error:
                if not self._closed:
                    _logger.warning("the log of events cannot be read: %s; trying again", error)
                    time.sleep(_PAUSE)
                continue
            for event in found:
                self._tell(event)

    def _wanted(self) -> bool:
        with self._lock:
            if self._closed or not any(self._listeners.values()):
                self._thread = None
                return False
            return True

    def _tell(self, event: Event) -> None:
        for listener in tuple(self._listeners[event.kind]):
            try:
                listener(event)
            except Exception as error:
                _logger.error("a listener of %r raised %s: %s", event.kind, type(error).__name__, said(error))
