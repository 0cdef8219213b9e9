"""Listening, blocking: threads wait for what an event loop in another thread of this process hears."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from groupmq.client.answers.jobs import job_from
from groupmq.client.connection.connections import Connection
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.session import Session
from groupmq.client.events import Channel, Following, JobListeners
from groupmq.client.events.results import Results
from groupmq.core.checks import Logger
from groupmq.core.errors import ConfigurationError, GroupMQError, said
from groupmq.core.events import KINDS, Event, Position
from groupmq.core.loops import leave_behind
from groupmq.core.record import Stored
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.sync.portal import Portal, Stopped, portal

_logger: Logger = logging.getLogger("groupmq.events")
_PAUSE = 0.5
Listener = Callable[[Event], Any]


class Ears(NamedTuple):
    """What hears for one queue. Lives in the loop of a portal and is used nowhere else."""

    portal: Portal
    connection: Connection
    channel: Channel
    results: Results


class Listening:
    """What one blocking queue hears. All of them in a process share the connection that reads."""

    def __init__(self, endpoint: Endpoint, session: Session) -> None:
        self._endpoint = endpoint
        self._session = session
        self._ears: Ears | None = None
        self._caller: Caller | None = None

    def _open(self) -> Ears:
        here = portal()
        with here.lock:
            if self._ears is None or self._ears.portal is not here:
                if self._ears is not None:
                    leave_behind(self._ears)
                self._ears = here.run(self._make(here))
            return self._ears

    async def _make(self, here: Portal) -> Ears:
        options = self._session.options
        connection = Connection(self._endpoint, options, session=self._session)

        def make(job_id: str, state: str, stored: Stored) -> Snapshot:
            return Snapshot(None, options.serializer, job_id, state, stored, options.max_attempts)

        async def look(job_id: str) -> Snapshot | None:
            (view,) = await connection.call(commands.get([job_id]))
            return None if view is None else job_from(make, job_id, view)

        return Ears(here, connection, Channel(connection, options.serializer), Results(look, listens=options.events))

    def result_of(self, job: Snapshot, timeout: float | None) -> Any:
        ears = self._open()
        return ears.portal.run(ears.results.of(ears.channel, job, timeout))

    def listen_to(self, job: Snapshot, event: str, listener: Listener) -> JobListeners:
        """Call `listener`, in a thread of its own, for what happened to a job since it was made and for what will."""
        ears = self._open()
        if self._caller is None or not self._caller.is_alive():
            self._caller = Caller()
        caller = self._caller

        async def place() -> JobListeners:
            found = ears.channel.listeners_of(job.id, job._created_ms)
            found.on(event, partial(caller.call, listener))
            await ears.channel.ready()
            return found

        return ears.portal.run(place())

    def stop_listening_to(self, listeners: JobListeners, event: str, listener: Listener) -> bool:
        ears = self._open()

        async def leave() -> bool:
            for one in listeners.listening(event):
                if isinstance(one, partial) and one.args == (listener,):
                    return listeners.off(event, one)
            return False

        return ears.portal.run(leave())

    def follow(self, since: str | None) -> Iterator[Event]:
        """All events, for ever; waits in between."""
        tail = self.start(None if since is None else Position.parse(since))
        try:
            while (batch := tail.next()) is not None:
                yield from batch
        finally:
            tail.close()

    def start(self, since: Position | None) -> Tail:
        """From the return of this on nothing is missed."""
        ears = self._open()
        following = Following(ears.channel, since)
        ears.portal.run(following.start())
        return Tail(ears.portal, following)

    def close(self) -> None:
        ears = self._ears
        if ears is not None and ears.portal is portal():
            ears.portal.run(ears.channel.close())
            ears.portal.run(ears.connection.close())


class Caller(threading.Thread):
    """Calls the listeners of jobs one after the other, so that a slow one does not stop the loop that listens."""

    def __init__(self) -> None:
        super().__init__(name="groupmq-job-listeners", daemon=True)
        self._calls: queue.SimpleQueue[tuple[Listener, Event]] = queue.SimpleQueue()
        self.start()

    def call(self, listener: Listener, event: Event) -> None:
        self._calls.put((listener, event))

    def run(self) -> None:
        while True:
            listener, event = self._calls.get()
            try:
                listener(event)
            except Exception as error:
                _logger.error("a listener of %r raised %s: %s", event.kind, type(error).__name__, said(error))


class Tail:
    """The end of a log, for a thread."""

    def __init__(self, here: Portal, following: Following) -> None:
        self._portal = here
        self._following = following

    def next(self) -> list[Event] | None:
        """What happened since, once there is something; None if nothing will be heard any more."""
        return self._portal.run(self._following.next())

    def close(self) -> None:
        self._portal.call(self._following.close)


class Listeners:
    """Callbacks, called in a thread of their own, which lives while there are any."""

    def __init__(self, listening: Listening, name: str) -> None:
        self._listening = listening
        self._name = name
        self._listeners: dict[str, list[Listener]] = {kind: [] for kind in KINDS}
        self._lock = threading.Lock()
        self._tail: Tail | None = None
        self._thread: threading.Thread | None = None

    def on(self, event: str, listener: Listener) -> None:
        if not callable(listener):
            raise ConfigurationError.expected("listener", "a callable", listener)
        with self._lock:
            self._of(event).append(listener)
            if self._tail is None or self._thread is None or not self._thread.is_alive():
                try:
                    self._tail = self._listening.start(None)
                except BaseException:
                    self._of(event).remove(listener)
                    raise
                self._thread = threading.Thread(
                    target=self._run, args=(self._tail,), name=f"{self._name}-events", daemon=True
                )
                self._thread.start()

    def off(self, event: str, listener: Listener) -> bool:
        with self._lock:
            listeners = self._of(event)
            found = listener in listeners
            if found:
                listeners.remove(listener)
            self._end_if_unwanted()
            return found

    def remove_all(self, event: str | None = None) -> None:
        with self._lock:
            for name in [event] if event is not None else list(self._listeners):
                self._of(name).clear()
            self._end_if_unwanted()

    def _end_if_unwanted(self) -> None:
        if self._tail is not None and not any(self._listeners.values()):
            self._tail.close()
            self._tail = None

    def _of(self, event: str) -> list[Listener]:
        try:
            return self._listeners[event]
        except KeyError:
            raise ConfigurationError.expected("event", f"one of {', '.join(sorted(KINDS))}", event) from None

    def _run(self, tail: Tail) -> None:
        while True:
            try:
                batch = tail.next()
            except Stopped:
                return
            except GroupMQError as error:
                _logger.warning("the log of events cannot be read: %s; trying again", error)
                time.sleep(_PAUSE)
                continue
            if batch is None:
                return
            for event in batch:
                self._tell(event)

    def _tell(self, event: Event) -> None:
        for listener in tuple(self._listeners[event.kind]):
            try:
                listener(event)
            except Exception as error:
                _logger.error("a listener of %r raised %s: %s", event.kind, type(error).__name__, said(error))
