"""Events for blocking callers: an event loop in a background thread receives them."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from groupmq.client.answers.jobs import job_from
from groupmq.client.connection.connections import Connection
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.session import Session
from groupmq.client.events import Channel, JobListeners, subscription_of
from groupmq.client.events.hub import LONGEST_PAUSE
from groupmq.client.events.results import Results
from groupmq.core.checks import Logger
from groupmq.core.errors import GroupMQError
from groupmq.core.events import KINDS, Event
from groupmq.core.record import Stored
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.runtime.emitter import Emitter, Listener, call_listener
from groupmq.runtime.loops import leave_behind
from groupmq.runtime.pauses import growing
from groupmq.sync.portal import Portal, Stopped, portal

_logger: Logger = logging.getLogger("groupmq.events")
_PAUSE = 0.5
_CATCH_UP = "catch up with the log of events"


class QueueSubscription(NamedTuple):
    """The objects that receive the events of one queue. They live in the loop of a portal and are used nowhere else."""

    portal: Portal
    connection: Connection
    channel: Channel
    results: Results


class Listening:
    """The events of one blocking queue. All queues of a process share the connection that reads them."""

    def __init__(self, endpoint: Endpoint, session: Session) -> None:
        self._endpoint = endpoint
        self._session = session
        self._subscription: QueueSubscription | None = None
        self._caller: ListenerThread | None = None

    def _open(self) -> QueueSubscription:
        here = portal()
        with here.lock:
            if self._subscription is None or self._subscription.portal is not here:
                if self._subscription is not None:
                    leave_behind(self._subscription)
                self._subscription = here.run(self._make(here))
            return self._subscription

    async def _make(self, here: Portal) -> QueueSubscription:
        options = self._session.options
        connection = Connection(self._endpoint.beside(), options, session=self._session)

        def make(job_id: str, state: str, stored: Stored) -> Snapshot:
            attempts = self._session.options.max_attempts
            return Snapshot(None, options.serializer, job_id, state, stored, attempts)

        async def look(job_id: str) -> Snapshot | None:
            (view,) = await connection.call(commands.get([job_id]))
            return None if view is None else job_from(make, job_id, view)

        results = Results(look, listens=lambda: self._session.options.events)
        return QueueSubscription(here, connection, Channel(connection, options.serializer), results)

    def result_of(self, job: Snapshot, timeout: float | None) -> Any:
        subscription = self._open()
        return subscription.portal.run(subscription.results.of(subscription.channel, job, timeout))

    def listen_to(self, job: Snapshot, event: str, listener: Listener) -> JobListeners:
        """Call `listener`, in a thread of its own, for everything that happens to a job, from its creation on."""
        subscription = self._open()
        if self._caller is None or not self._caller.is_alive():
            self._caller = ListenerThread()
        caller = self._caller

        async def place() -> JobListeners:
            found = subscription.channel.listeners_of(job.id, job._created_ms)
            found.on(event, partial(caller.call, listener))
            await subscription.channel.ready()
            return found

        return subscription.portal.run(place())

    def stop_listening_to(self, listeners: JobListeners, event: str, listener: Listener) -> bool:
        subscription = self._open()

        async def leave() -> bool:
            for one in listeners.listening(event):
                if isinstance(one, partial) and one.args == (listener,):
                    return listeners.off(event, one)
            return False

        return subscription.portal.run(leave())

    def close(self) -> None:
        subscription = self._subscription
        if subscription is not None and subscription.portal is portal():
            subscription.portal.run(subscription.channel.close())
            subscription.portal.run(subscription.connection.close())


class ListenerThread(threading.Thread):
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
            call_listener(_logger, event.kind, listener, event)


class BlockingSubscription:
    """A follower that lives in the loop of a portal, for a thread."""

    def __init__(self, logs: Sequence[Listening], since: str | None) -> None:
        subscriptions = [log._open() for log in logs]
        self._portal, self._channel = subscriptions[0].portal, subscriptions[0].channel
        self._follower = subscription_of([subscription.channel for subscription in subscriptions], since)

    def start(self) -> None:
        self._portal.run(self._follower.start())

    def next(self) -> list[Event] | None:
        return self._portal.run(self._follower.next())

    def failed(self, error: GroupMQError) -> None:
        """Report a failure to the outage log of the connection that reads events: both notice the same outage."""
        if (outages := self._channel.outages) is not None:
            outages.failed(_CATCH_UP, error)

    def answered(self, began: float) -> None:
        if (outages := self._channel.outages) is not None:
            outages.answered(_CATCH_UP, began)

    def end(self) -> None:
        # Without waiting: a generator that is collected is closed in any thread, even in that of the portal's loop.
        self._portal.call(self._follower.close)


class Listeners:
    """Listeners that are called in a thread of their own, which lives while there are any."""

    def __init__(self, listening: Listening, name: str) -> None:
        self._listening = listening
        self._name = name
        self._emitter = Emitter(KINDS, _logger)
        self._lock = threading.Lock()
        self._tail: BlockingSubscription | None = None
        self._thread: threading.Thread | None = None

    def on(self, event: str, listener: Listener) -> None:
        with self._lock:
            self._emitter.on(event, listener)
            if self._tail is None or self._thread is None or not self._thread.is_alive():
                try:
                    self._tail = BlockingSubscription([self._listening], None)
                    self._tail.start()
                except BaseException:
                    self._emitter.off(event, listener)
                    raise
                self._thread = threading.Thread(
                    target=self._run, args=(self._tail,), name=f"{self._name}-events", daemon=True
                )
                self._thread.start()

    def off(self, event: str, listener: Listener) -> bool:
        with self._lock:
            found = self._emitter.off(event, listener)
            self._end_if_unwanted()
            return found

    def remove_all(self, event: str | None = None) -> None:
        with self._lock:
            self._emitter.remove_all(event)
            self._end_if_unwanted()

    def _end_if_unwanted(self) -> None:
        if self._tail is not None and not self._emitter.any:
            self._tail.end()
            self._tail = None

    def _run(self, tail: BlockingSubscription) -> None:
        pauses = growing(_PAUSE, LONGEST_PAUSE)
        while True:
            began = time.monotonic()
            try:
                batch = tail.next()
            except Stopped:
                return
            except GroupMQError as error:
                tail.failed(error)
                time.sleep(next(pauses))
                continue
            tail.answered(began)
            pauses = growing(_PAUSE, LONGEST_PAUSE)
            if batch is None:
                return
            for event in batch:
                for listener in tuple(self._emitter.listeners(event.kind)):
                    call_listener(_logger, event.kind, listener, event)
