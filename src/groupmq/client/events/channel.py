"""A channel is the log of one queue as this process reads it, with its waiters, its listeners and recent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary, ref

from groupmq.client.connection.connections import Connection
from groupmq.client.events.ends import EndSearches
from groupmq.client.events.hub import Hub, hub_of
from groupmq.client.events.job_listeners import JobListeners, PendingCatchUp
from groupmq.client.events.subscription import PAGE, Feed
from groupmq.client.outage import OutageLog
from groupmq.core import events
from groupmq.core.codec import Serializer
from groupmq.core.errors import GroupMQError
from groupmq.core.events import ENDS, KINDS, UNREADABLE, Entry, Event, LogReader, newer
from groupmq.protocol import commands
from groupmq.runtime.emitter import Emitter
from groupmq.runtime.tasks import end_tasks

_logger = logging.getLogger("groupmq.events")
_SMALL = 4096
_RECENT = 2000
"""Recent last events of jobs, kept for result() calls that come just after the event."""


class Wait(NamedTuple):
    """A waiter for the end of a job that was made at `created_ms`. An earlier job may have had the same id."""

    created_ms: int
    future: asyncio.Future[Event]
    doubt: Callable[[], None]


class Channel:
    """The log of one queue."""

    def __init__(self, connection: Connection, serializer: Serializer) -> None:
        self._hub: Hub | None = None
        self.connection = connection
        self._serializer = serializer
        self.key = connection.session.keys.fixed("events")
        self.position: str | None = None
        self._number: int | None = None
        self.emitter = Emitter(KINDS, _logger)
        self.waiting: dict[str, list[Wait]] = {}
        self.closed = False
        self.idle_since: float | None = None
        self.read_for_nobody = 0
        """Events that were read after the last listener had gone."""
        self._began_ms: int | None = None
        self._recent: dict[str, Event] = {}
        self._forgot_ms = 0
        self._watchers: WeakValueDictionary[str, JobListeners] = WeakValueDictionary()
        self.feeds: WeakSet[Feed] = WeakSet()
        self._recheck: set[Callable[[], None]] = set()
        self._position_task: asyncio.Task[None] | None = None
        self._catch_ups: list[PendingCatchUp] = []
        self._catching_up: asyncio.Task[None] | None = None
        self.ends = EndSearches(self.page)

    # Position

    async def ready(self) -> None:
        """Start to read the log. No event that happens after this has returned is missed."""
        if self.position is None:
            if self._position_task is None:
                self._position_task = asyncio.ensure_future(self._find_position())
            await asyncio.shield(self._position_task)
        if self._hub is None:
            self._hub = hub_of(self.connection)
        self._hub.ensure(self)

    def deliver_to(self, emitter: Emitter) -> None:
        """Pass events on to these listeners."""
        self.emitter = emitter

    def forget_position(self) -> None:
        """Forget the position in the log, since the last listener is gone. It is looked up again for the next one."""
        self.position = self._number = self._began_ms = None
        self._recent.clear()

    async def close(self) -> None:
        """End all waits and feeds: no event will arrive any more."""
        self.closed = True
        await end_tasks([self._catching_up])
        await self.ends.close()
        for waits in self.waiting.values():
            for wait in waits:
                if not wait.future.done():
                    wait.future.set_exception(GroupMQError("the queue was closed while a caller waited for a result"))
        for feed in tuple(self.feeds):
            feed.closed = True
            feed.ready.set()
        if self._hub is not None:
            await self._hub.drop(self)

    async def _find_position(self) -> None:
        try:
            last = await self.connection.call(commands.log_end())
            if self.position is None:
                entry = self._read(last) if last else None
                self.position, self._number = (entry.stream_id, entry.number) if entry else ("0-0", 0)
                if self._number == UNREADABLE:
                    self._number = None
                self._began_ms = int(self.position.split("-")[0])
        finally:
            self._position_task = None

    def _read(self, raw: Any) -> Entry:
        return events.read(raw, self._serializer)

    @property
    def outages(self) -> OutageLog | None:
        """What is logged while the log cannot be read; None before `ready`."""
        return None if self._hub is None else self._hub.outages

    @property
    def wanted(self) -> bool:
        return bool(self.waiting or len(self._watchers) or len(self.feeds) or self.emitter.any)

    def reader(self) -> LogReader:
        """A reader of the log from the current position on."""
        return LogReader(self.position or "0-0", self._number)

    # Receiving

    def feed(self, raw_entries: list[Any]) -> None:
        for raw in raw_entries:
            entry = self._read(raw)
            if self.position is not None and not newer(entry.stream_id, self.position):
                continue  # read for another channel of the same log, which is behind
            if entry.number == UNREADABLE:
                self.position = entry.stream_id
                continue
            if self._number is not None and entry.number != self._number + 1:
                self._deliver_gap(events.gap(entry))
                self._began_ms = int(entry.stream_id.split("-")[0])
                self.check_again()
            self.position, self._number = entry.stream_id, entry.number
            self._deliver(entry)

    def _deliver_gap(self, gap: Event) -> None:
        self.emitter.emit("gap", gap)
        for watcher in tuple(self._watchers.values()):
            watcher.receive(gap)

    def _deliver(self, entry: Entry) -> None:
        self.read_for_nobody += len(entry.events)
        for feed in tuple(self.feeds):
            feed.push(entry)
        for event in entry.events:
            self.emitter.emit(event.kind, event)
            if event.job_id is not None:
                self._deliver_to_job(event.job_id, event)

    def _deliver_to_job(self, job_id: str, event: Event) -> None:
        watcher = self._watchers.get(job_id)
        if watcher is not None:
            watcher.receive(event)
        if event.kind not in ENDS:
            past = self._recent.pop(job_id, None)
            if past is not None:
                # The job was redriven, or a new job has its id: waiters must look at the job.
                self._forgot_ms = max(self._forgot_ms, past.at_ms)
            return
        self._remember(job_id, event)
        for wait in tuple(self.waiting.get(job_id, ())):
            if event.at_ms > wait.created_ms and not wait.future.done():
                wait.future.set_result(event)
            elif event.at_ms == wait.created_ms:
                wait.doubt()  # its own end, or that of an earlier job with the same id: the log shows which

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
        """How the job ended, if that event came recently."""
        event = self._recent.get(job_id)
        return event if event is not None and event.at_ms >= created_ms else None

    def has_received_all(self, created_ms: int) -> bool:
        """Whether every event of a job made at that time came through here, and none of its ends can have been
        forgotten."""
        began = self._began_ms
        return began is not None and began < created_ms and self._forgot_ms < created_ms

    # Waiting

    def wait_for(self, job_id: str, created_ms: int, doubt: Callable[[], None]) -> Wait:
        """Wait for the event that ends the job; `doubt` is called for an event that may have ended it."""
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
        """The listeners of a job. They are called as long as a job object refers to them."""
        found = self._watchers.get(job_id)
        if found is None:
            found = self._watchers[job_id] = JobListeners()
            self._catch_ups.append(PendingCatchUp(ref(found), job_id, created_ms, self.position))
            if self._catching_up is None:
                self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())
        return found

    async def _catch_up(self) -> None:
        """Deliver what happened to jobs from their creation until now; one reading serves all of one loop iteration."""
        try:
            while self._catch_ups:
                await asyncio.sleep(0)
                catch_ups, self._catch_ups = self._catch_ups, []
                past: dict[str, list[Event]] = {one.job_id: [] for one in catch_ups}
                try:
                    await self._read_back(catch_ups, past)
                except GroupMQError as error:
                    _logger.warning(
                        "queue %s: the log of events cannot be read, so listeners of %d jobs miss earlier events: %s",
                        self.connection.session.options.name,
                        len(catch_ups),
                        error,
                    )
                for one in catch_ups:
                    listeners = one.listeners()
                    if listeners is not None:
                        listeners.caught_up(past[one.job_id])
        finally:
            self._catching_up = None

    async def _read_back(self, catch_ups: list[PendingCatchUp], past: dict[str, list[Event]]) -> None:
        await self.ready()
        until = {one.job_id: one.until or self.position or "0-0" for one in catch_ups}
        last = max(until.values(), key=lambda at: tuple(map(int, at.split("-"))))
        async for entry in self.past(f"{max(0, min(one.created_ms for one in catch_ups) - 1)}-0"):
            if newer(entry.stream_id, last):
                return
            for event in entry.events:
                if event.job_id in past and not newer(entry.stream_id, until[event.job_id]):
                    past[event.job_id].append(event)

    def on_doubt(self, callback: Callable[[], None]) -> None:
        """Call `callback` when events may have been missed."""
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
            page = await self.page(f"({since}", PAGE)
            for entry in page:
                since = entry.stream_id
                yield entry
            if len(page) < PAGE:
                return

    async def page(self, since: str, most: int) -> list[Entry]:
        """Entries from a stream id on; after it with a `(` before the id."""
        return [self._read(raw) for raw in await self.connection.call(commands.log(since, most))]
