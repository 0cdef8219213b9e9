"""Listening: one connection per server and event loop reads the logs of every queue that somebody listens to.

A channel is the log of one queue as this process sees it. Whoever waits for a job registers with it first and looks at
the job after that, so nothing can fall in between.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, WeakValueDictionary, ref

from groupmq import commands, events
from groupmq.codec import Serializer
from groupmq.connection import Connection, StreamConnection
from groupmq.emitter import Emitter, Listener
from groupmq.errors import GroupMQError
from groupmq.events import ENDS, KINDS, UNREADABLE, Entry, Event, Position, Reader, newer
from groupmq.tasks import end_tasks

_logger = logging.getLogger("groupmq.events")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_PAGE = 200
_LINGER = 5.0
"""Seconds that a log is read on after the last listener has gone."""
_SMALL = 4096
_RECENT = 2000
"""Ends of jobs that are remembered for whoever asks for a result a moment later."""
_TOLD = 100
"""Events of a job that are remembered for whoever begins to listen to it later."""
_BUFFER = 1000
"""Entries kept for a reader that is slower than the log; beyond that it reads them from the server."""


class JobListeners(Emitter):
    """Who listens to one job. Held by the job object alone: when that goes, so does this.

    Whoever comes is told first what has happened before.
    """

    def __init__(self) -> None:
        super().__init__(KINDS, _logger)
        self._before: list[Event] | None = []
        self._told: deque[Event] = deque(maxlen=_TOLD)
        self._newcomers: list[tuple[str, Listener]] = []

    def heard(self, event: Event) -> None:
        if self._before is None:
            self._tell(event)
        else:
            self._before.append(event)

    def caught_up(self, past: list[Event]) -> None:
        """What had happened before anybody listened comes first."""
        later, self._before = self._before or [], None
        for event in [*past, *later]:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self._admit()
        self._told.append(event)
        self.emit(event.kind, event)

    def on(self, event: str, listener: Listener) -> Listener:
        if not self._told:
            return super().on(event, listener)
        Emitter(KINDS, _logger).on(event, listener)  # refuses what is wrong, here and now
        self._newcomers.append((event, listener))
        asyncio.get_running_loop().call_soon(self._admit)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        if (event, listener) in self._newcomers:
            self._newcomers.remove((event, listener))
            return True
        return super().off(event, listener)

    def _admit(self) -> None:
        """Tell newcomers what the others have heard already; from now on they hear with them."""
        newcomers, self._newcomers = self._newcomers, []
        for kind, listener in newcomers:
            alone = Emitter(KINDS, _logger)
            alone.on(kind, listener)
            for event in self._told:
                alone.emit(event.kind, event)
            super().on(kind, listener)


class Feed:
    """The entries an `events()` loop has yet to see."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.behind = False
        self.closed = False
        self.ready = asyncio.Event()

    def push(self, entry: Entry) -> None:
        if self.behind:
            pass
        elif len(self.entries) < _BUFFER:
            self.entries.append(entry)
        else:
            # It reads on from the server, from where it is; what is buffered here would only be read twice.
            self.entries.clear()
            self.behind = True
        self.ready.set()


class Behind(NamedTuple):
    """Listeners of a job that have yet to hear what happened to it before, up to a position of the log."""

    listeners: ReferenceType[JobListeners]
    job_id: str
    created_ms: int
    until: str | None


class Wait(NamedTuple):
    """Somebody waits for the end of a job that was made at that time; an earlier one may have had the same id."""

    created_ms: int
    future: asyncio.Future[Event]
    doubt: Callable[[], None]


class Channel:
    """The log of one queue."""

    def __init__(self, connection: Connection, serializer: Serializer) -> None:
        self._hub: Hub | None = None
        self.connection = connection
        self._serializer = serializer
        self.key = connection.dialogue.keys.fixed("events")
        self.position: str | None = None
        self._number: int | None = None
        self.emitter = Emitter(KINDS, _logger)
        self.waiting: dict[str, list[Wait]] = {}
        self.closed = False
        self.idle_since: float | None = None
        self._began_ms: int | None = None
        self._recent: dict[str, Event] = {}
        self._forgot_ms = 0
        self._watchers: WeakValueDictionary[str, JobListeners] = WeakValueDictionary()
        self._feeds: WeakSet[Feed] = WeakSet()
        self._recheck: set[Callable[[], None]] = set()
        self._place: asyncio.Task[None] | None = None
        self._behind: list[Behind] = []
        self._catching_up: asyncio.Task[None] | None = None

    # Position

    async def ready(self) -> None:
        """From the return of this on nothing is missed."""
        if self.position is None:
            if self._place is None:
                self._place = asyncio.ensure_future(self._find_place())
            await asyncio.shield(self._place)
        if self._hub is None:
            self._hub = hub_of(self.connection)
        self._hub.ensure(self)

    def rest(self) -> None:
        """Nobody listens for now; where the log is then is found out then."""
        self.position = self._number = self._began_ms = None
        self._recent.clear()

    async def close(self) -> None:
        """End whatever waits here: nothing will be heard any more."""
        self.closed = True
        await end_tasks([self._catching_up])
        for waits in self.waiting.values():
            for wait in waits:
                if not wait.future.done():
                    wait.future.set_exception(GroupMQError("the queue was closed while somebody waited for a result"))
        for feed in tuple(self._feeds):
            feed.closed = True
            feed.ready.set()
        if self._hub is not None:
            await self._hub.drop(self)

    async def _find_place(self) -> None:
        try:
            last = await self.connection.call(commands.log_end())
            if self.position is None:
                entry = self._read(last) if last else None
                self.position, self._number = (entry.stream_id, entry.number) if entry else ("0-0", 0)
                if self._number == UNREADABLE:
                    self._number = None
                self._began_ms = int(self.position.split("-")[0])
        finally:
            self._place = None

    def _read(self, raw: Any) -> Entry:
        return events.read(raw, self._serializer)

    @property
    def wanted(self) -> bool:
        return bool(self.waiting or len(self._watchers) or len(self._feeds) or self.emitter.any)

    # Hearing

    def feed(self, raw_entries: list[Any]) -> None:
        for raw in raw_entries:
            entry = self._read(raw)
            if self.position is not None and not newer(entry.stream_id, self.position):
                continue  # read for another channel of the same log, which was not as far
            if entry.number == UNREADABLE:
                self.position = entry.stream_id
                continue
            if self._number is not None and entry.number != self._number + 1:
                self._tell_of_gap(events.gap(entry))
                self._began_ms = int(entry.stream_id.split("-")[0])
                self.check_again()
            self.position, self._number = entry.stream_id, entry.number
            self._deliver(entry)

    def _tell_of_gap(self, gap: Event) -> None:
        self.emitter.emit("gap", gap)
        for watcher in tuple(self._watchers.values()):
            watcher.heard(gap)

    def _deliver(self, entry: Entry) -> None:
        for feed in tuple(self._feeds):
            feed.push(entry)
        for event in entry.events:
            self.emitter.emit(event.kind, event)
            if event.job_id is not None:
                self._tell(event.job_id, event)

    def _tell(self, job_id: str, event: Event) -> None:
        watcher = self._watchers.get(job_id)
        if watcher is not None:
            watcher.heard(event)
        if event.kind not in ENDS:
            past = self._recent.pop(job_id, None)
            if past is not None:
                # An operator runs it again, or there is a new job of that id: whoever asks for the old one must look.
                self._forgot_ms = max(self._forgot_ms, past.at_ms)
            return
        self._remember(job_id, event)
        for wait in tuple(self.waiting.get(job_id, ())):
            if event.at_ms > wait.created_ms and not wait.future.done():
                wait.future.set_result(event)
            elif event.at_ms == wait.created_ms:
                wait.doubt()  # its own end, or that of a job before it with the same id: the log knows

    def _remember(self, job_id: str, event: Event) -> None:
        self._recent.pop(job_id, None)
        forgotten = event
        if len(event.raw_result or b"") <= _SMALL:
            self._recent[job_id] = event
            if len(self._recent) <= _RECENT:
                return
            forgotten = self._recent.pop(next(iter(self._recent)))
        self._forgot_ms = max(self._forgot_ms, forgotten.at_ms)

    def recent_end(self, job_id: str, created_ms: int) -> Event | None:
        """How the job ended, if that was heard lately."""
        event = self._recent.get(job_id)
        return event if event is not None and event.at_ms >= created_ms else None

    def has_heard_all(self, created_ms: int) -> bool:
        """Whether every event of a job made at that time came by here, and none of its ends can be forgotten."""
        began = self._began_ms
        return began is not None and began < created_ms and self._forgot_ms < created_ms

    # Waiting

    def wait_for(self, job_id: str, created_ms: int, doubt: Callable[[], None]) -> Wait:
        """The event that will end the job; `doubt` is called when one came that may have."""
        wait = Wait(created_ms, asyncio.get_running_loop().create_future(), doubt)
        self.waiting.setdefault(job_id, []).append(wait)
        return wait

    def give_up(self, job_id: str, wait: Wait) -> None:
        waits = self.waiting.get(job_id)
        if waits and wait in waits:
            waits.remove(wait)
            if not waits:
                del self.waiting[job_id]

    def listeners_of(self, job_id: str, created_ms: int) -> JobListeners:
        """Who listens to a job; whoever holds on to this hears of it."""
        found = self._watchers.get(job_id)
        if found is None:
            found = self._watchers[job_id] = JobListeners()
            self._behind.append(Behind(ref(found), job_id, created_ms, self.position))
            if self._catching_up is None:
                self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())
        return found

    async def _catch_up(self) -> None:
        """Tell of what happened to jobs between their making and now, one reading for all that asked in this tick."""
        try:
            while self._behind:
                await asyncio.sleep(0)
                batch, self._behind = self._behind, []
                past: dict[str, list[Event]] = {one.job_id: [] for one in batch}
                try:
                    await self._read_back(batch, past)
                except GroupMQError as error:
                    _logger.warning("what happened to %d jobs before is not known: %s", len(batch), error)
                for one in batch:
                    listeners = one.listeners()
                    if listeners is not None:
                        listeners.caught_up(past[one.job_id])
        finally:
            self._catching_up = None

    async def _read_back(self, batch: list[Behind], past: dict[str, list[Event]]) -> None:
        await self.ready()
        until = {one.job_id: one.until or self.position or "0-0" for one in batch}
        last = max(until.values(), key=lambda at: tuple(map(int, at.split("-"))))
        async for entry in self.past(f"{max(0, min(one.created_ms for one in batch) - 1)}-0"):
            if newer(entry.stream_id, last):
                return
            for event in entry.events:
                if event.job_id in past and not newer(entry.stream_id, until[event.job_id]):
                    past[event.job_id].append(event)

    def on_doubt(self, callback: Callable[[], None]) -> None:
        """Call when events may have been missed."""
        self._recheck.add(callback)

    def off_doubt(self, callback: Callable[[], None]) -> None:
        self._recheck.discard(callback)

    def check_again(self) -> None:
        for callback in tuple(self._recheck):
            callback()

    # Reading back

    async def past(self, since: str) -> AsyncIterator[Entry]:
        """The entries after `since` (a stream id), as far as the log still has them."""
        while True:
            page = await self.connection.call(commands.log(f"({since}", _PAGE))
            for raw in page:
                entry = self._read(raw)
                since = entry.stream_id
                yield entry
            if len(page) < _PAGE:
                return

    async def iterate(self, since: Position | None) -> AsyncIterator[Event]:
        """All events from a position on, for ever. A gap is an event of its own."""
        feed = Feed()
        self._feeds.add(feed)
        try:
            await self.ready()
            reader = Reader(self.position or "0-0", self._number)
            if since is not None:
                reader = Reader(since.stream_id, since.entry)
                for event in await self._rest_of(since):
                    yield event
                feed.behind = True
            while not feed.closed:
                for entry in await self._next(feed, reader.at):
                    for event in reader.take(entry):
                        yield event
        finally:
            self._feeds.discard(feed)

    async def _next(self, feed: Feed, since: str) -> list[Entry]:
        """What a reader has yet to see, from the server if it could not keep up."""
        if feed.behind:
            feed.behind = False
            feed.entries.clear()
            page = await self.connection.call(commands.log(f"({since}", _PAGE))
            feed.behind = feed.behind or len(page) == _PAGE
            return [self._read(raw) for raw in page]
        if not feed.entries:
            feed.ready.clear()
            await feed.ready.wait()
        found = list(feed.entries)
        feed.entries.clear()
        return found

    async def _rest_of(self, since: Position) -> list[Event]:
        """What follows an event in its own entry. If the entry is gone, the count of the next one tells."""
        page = await self.connection.call(commands.log(since.stream_id, 1))
        if page and page[0][0].decode() == since.stream_id:
            return self._read(page[0]).events[since.at + 1 :]
        return []


class Hub:
    """Reads for all channels of one server, over one connection, while anybody listens."""

    def __init__(self) -> None:
        self._channels: set[Channel] = set()
        self._task: asyncio.Task[None] | None = None
        self._stream: StreamConnection | None = None

    def ensure(self, channel: Channel) -> None:
        """See to it that this channel is read."""
        new = channel not in self._channels
        self._channels.add(channel)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._read(StreamConnection(channel.connection.endpoint))
            )
        elif new and self._stream is not None:
            self._stream.unblock(channel.connection)

    async def _read(self, stream: StreamConnection) -> None:
        self._stream = stream
        pause = 0.0
        try:
            while self._forget_unwanted():
                try:
                    found = await stream.read(self._positions(), wait=not pause)
                except GroupMQError as error:
                    _logger.warning("the log of events cannot be read: %s; trying again", error)
                    pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
                    await asyncio.sleep(pause * (0.75 + 0.5 * random.random()))  # noqa: S311
                    continue
                if pause:
                    # What happened meanwhile the log says; but a server that lost its data has no log to say it.
                    pause = 0.0
                    for channel in tuple(self._channels):
                        channel.check_again()
                for channel in tuple(self._channels):
                    channel.feed(found.get(channel.key, []))
        finally:
            if self._stream is stream:
                self._task = self._stream = None
            await stream.close()

    def _positions(self) -> dict[str, str]:
        """Where to read on in each log: where the channel is that has seen the least of it."""
        found: dict[str, str] = {}
        for channel in self._channels:
            at = channel.position or "0-0"
            if channel.key not in found or newer(found[channel.key], at):
                found[channel.key] = at
        return found

    def _forget_unwanted(self) -> bool:
        now = asyncio.get_running_loop().time()
        for channel in tuple(self._channels):
            if channel.wanted:
                channel.idle_since = None
            elif channel.idle_since is None:
                # Whoever asks for one result after the other must not pay for a new connection each time.
                channel.idle_since = now
            elif now - channel.idle_since >= _LINGER:
                channel.rest()
                self._channels.discard(channel)
        if not self._channels:
            self._task = self._stream = None
        return bool(self._channels)

    async def drop(self, channel: Channel) -> None:
        """A queue is closed: nobody listens to its log any more."""
        self._channels.discard(channel)
        if not self._channels:
            task, self._task, self._stream = self._task, None, None
            await end_tasks([task])


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[object, Hub]] = WeakKeyDictionary()


def hub_of(connection: Connection) -> Hub:
    """The hub of this event loop for the server behind a connection."""
    return _hubs.setdefault(asyncio.get_running_loop(), {}).setdefault(connection.endpoint.identity, Hub())
