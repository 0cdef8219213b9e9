"""The one reader of a queue in this process: it follows the events and reads the numbers, for all tabs together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from groupmq import ConfigurationError, GroupMQError, Queue
from groupmq.dashboard.documents.event_row import EventRow, event_row
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.live.broadcast import Broadcast, Message, TabFeed
from groupmq.dashboard.live.changes import Changes, all_changed
from groupmq.dashboard.live.notify_rate import NotifyRate
from groupmq.dashboard.live.recent import RecentEvents

if TYPE_CHECKING:
    from groupmq import Event
    from groupmq.dashboard.documents.queue_row import QueueRow
    from groupmq.dashboard.live.shared_state import SharedState

SNAPSHOT_EVERY = 2.0
CHANGES_EVERY = 1.0
ROWS_EVERY = 0.25
MOST_EVENTS = 2000
"""Events per second that are read while no tab shows them: a busy queue writes many times as many."""
SKIPS = 60
"""Checks without reading events, after which the reader reads again to see whether the queue is still that busy."""
LINGER = 30.0
"""Seconds for which the reader goes on after the last tab has left: tabs reconnect."""
MOST_ROWS = 200
"""Events in one message; a page shows no more."""
_AGAIN_AFTER = 2.0
_NEWS = ("changed", "missed", "back", "task")
_ONE = r"\d{1,19}-\d{1,19}/\d{1,19}/-?\d{1,9}"
_POSITION = re.compile(rf"{_ONE}(?:~{_ONE}){{0,1023}}")
"""A position in one log, or in the log of each partition of a queue."""
_logger = logging.getLogger("groupmq.dashboard")


@record
class EventRows:
    events: list[EventRow]
    missed: bool


class Reader:
    """Reads one queue for all of its tabs: ten tabs cost as much as one. It starts with the first subscription and ends
    a while after the last."""

    def __init__(self, queue: Queue, shared: SharedState) -> None:
        self.queue = queue
        self.recent = RecentEvents()
        self.notify_rate = NotifyRate()
        self._shared = shared
        self._broadcast = Broadcast()
        self._changes = Changes()
        self._new: list[Event] = []
        self._dropped = False
        self._row: QueueRow | None = None
        self._reachable = True
        self._has_events = True
        self._seen = 0
        self._busy = False
        self._since: str | None = None
        """The newest event that was read."""
        self._starting = asyncio.Lock()
        self._idle_since = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def running(self) -> bool:
        return any(not task.done() for task in self._tasks)

    async def subscribe(self, last_id: str, *, events: bool) -> tuple[TabFeed, bool]:
        """Subscribe a tab that has seen the events up to `last_id`. Also returns whether it missed later events."""
        known = bool(_POSITION.fullmatch(last_id))
        await self._ensure_started(last_id if known else None)
        subscription = self._broadcast.add(events=events)
        self._shared.acted()  # a new tab fetches its page again, and must not get an older one
        if self._row is not None:
            subscription.push(Message.of("snapshot", self._row, self._since))
        if not last_id:
            # Something may have happened since the page was made.
            subscription.push(Message.of("changed", all_changed(), self._since))
            return subscription, False
        events_since, missed = self.recent.since(last_id)
        if not missed and events_since:
            changes = Changes()
            for event in events_since:
                changes.see(event)
            subscription.push(Message.of("changed", changes.take(), self._since))
            subscription.push(self._rows(events_since, missed=False))
        return subscription, missed or not known

    async def watch(self, last_id: str = "") -> None:
        """Read for a while, without a tab: for a page without JavaScript, or a script that asks again."""
        self._idle_since = time.monotonic()
        await self._ensure_started(last_id if _POSITION.fullmatch(last_id) else None)

    async def _ensure_started(self, since: str | None) -> None:
        async with self._starting:
            if self.running:
                return
            # With a position nothing is missed from here on, however long it takes until the first event is read. The
            # position that a tab brings is better than the newest one: no reader ran meanwhile, but the log
            # has the events. It must not lie ahead of the log, or all tabs would wait until the log reaches it.
            newest = await self.queue.get_last_event_id()
            self._since = newest if since is None or lies_ahead(since, newest) else since
            self.recent = RecentEvents(self._since)
            self._row = None
            self._idle_since = time.monotonic()
            self._tasks = [
                asyncio.ensure_future(self._follow()),
                asyncio.ensure_future(self._every(SNAPSHOT_EVERY, self._look)),
                asyncio.ensure_future(self._every(CHANGES_EVERY, self._publish_changes)),
                asyncio.ensure_future(self._every(ROWS_EVERY, self._publish_rows)),
            ]

    @property
    def last_id(self) -> str | None:
        """The newest event that it has read; None if it does not read. A page that is made now subscribes from
        there."""
        return self._since if self.running else None

    def unsubscribe(self, subscription: TabFeed) -> None:
        self._broadcast.remove(subscription)
        self._idle_since = time.monotonic()

    def publish(self, name: str, data: Any) -> None:
        """Send a message to all tabs of this queue. A tab that then asks for its page must not get an older one."""
        if name in _NEWS:
            self._shared.acted()
        self._broadcast.send(Message.of(name, data, self._since))

    async def close(self) -> None:
        self._broadcast.close()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while not self._is_idle():
            try:
                await work()
            except Exception:
                _logger.exception(
                    "queue %s: a step of the dashboard's reader failed; the reader goes on", self.queue.name
                )
            await asyncio.sleep(seconds)
        self._end()

    def _is_idle(self) -> bool:
        return not len(self._broadcast) and time.monotonic() - self._idle_since > LINGER

    def _end(self) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    async def _follow(self) -> None:
        """Read events for as long as this runs, whatever happens to the server."""
        while True:
            try:
                if self._busy:
                    await self._skip()
                    continue
                await self._read()
            except ConfigurationError:
                self._has_events = False  # only the numbers show now that something happened
                return
            except GroupMQError:
                self._changes.see_all()
            if not self._busy:
                await asyncio.sleep(_AGAIN_AFTER)

    async def _read(self) -> None:
        async with contextlib.aclosing(self.queue.events(since=self._since)) as events:
            async for event in events:
                self._since = event.id
                self._see(event)
                if self._busy:
                    return

    async def _skip(self) -> None:
        """Check only whether anything happened: reading it all would slow down the workers, and no tab shows it."""
        for _ in range(SKIPS):
            await asyncio.sleep(CHANGES_EVERY)
            newest = await self.queue.get_last_event_id()
            if newest == self._since or self._broadcast.wants_events:
                break
            self._since, self.recent = newest, RecentEvents(newest)
            self._changes.see_all()
        self._busy = False

    def _see(self, event: Event) -> None:
        self._seen += 1
        self._busy = self._busy or (self._seen > MOST_EVENTS * CHANGES_EVERY and not self._broadcast.wants_events)
        self.recent.add(event)
        if event.kind == "gap":
            self._changes.see_all()
            self.publish("missed", {})
            return
        self._changes.see(event)
        if len(self._new) < MOST_ROWS:
            self._new.append(event)
        else:
            self._dropped = True

    async def _publish_changes(self) -> None:
        self._seen = 0
        if self._changes and self.notify_rate.is_due:
            self.notify_rate.notified()
            self.publish("changed", self._changes.take())

    async def _publish_rows(self) -> None:
        if not self._new:
            return
        new, self._new = self._new, []
        missed, self._dropped = self._dropped, False
        if self._broadcast.wants_events:
            self._broadcast.send(self._rows(new, missed=missed))

    def _rows(self, events: list[Event], *, missed: bool) -> Message:
        redactor = self._shared.options.redactor
        rows = [event_row(event, redactor) for event in events[-MOST_ROWS:]]
        shown = EventRows(events=rows, missed=missed or len(events) > MOST_ROWS)
        return Message.of("events", shown, events[-1].id)

    async def _look(self) -> None:
        """Read the numbers, for all tabs at once, and notice whether the server answers at all."""
        if not len(self._broadcast):
            return
        try:
            row = await self._shared.queue_row(self.queue)
        except GroupMQError as error:
            if self._reachable:
                self._reachable = False
                self.publish("gone", {"text": unreachable(error)})
            return
        if not self._reachable:
            self._reachable = True
            self._changes.see_all()
            self.publish("back", {})
        if row != self._row:
            self._row = row
            self.publish("snapshot", row)
            if not self._has_events:
                self._changes.see_all()


def lies_ahead(since: str, newest: str) -> bool:
    """Whether a position is beyond the newest event of a log, or belongs to another number of logs."""
    ours, theirs = newest.split("~"), since.split("~")
    return len(ours) != len(theirs) or any(log_position(a) > log_position(b) for a, b in zip(theirs, ours, strict=True))


def log_position(event_id: str) -> tuple[int, int]:
    """The position of an event in one log."""
    milliseconds, _, number = event_id.partition("/")[0].partition("-")
    return int(milliseconds), int(number)


def unreachable(error: GroupMQError) -> str:
    """The message for readers about a server that does not answer. It never contains the address."""
    if type(error).__name__ == "QueueNotFound":
        return "This queue does not exist any more."
    return "The server that holds the queues does not answer. The page goes on as soon as it does."
