"""Following the log: all events of a queue from a position on, even for a reader that is slower than the log."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from groupmq.core.events import Entry, Event, LogReader, Position

if TYPE_CHECKING:
    from groupmq.client.events.channel import Channel

PAGE = 200

_ALL = 10**9 - 1
"""An index behind every event of an entry."""
_BUFFER = 1000
"""Entries kept for a reader that is slower than the log; beyond that it reads them from the server."""


class Feed:
    """The entries that a follower of a log has yet to see."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.overflowed = False
        self.closed = False
        self.ready = asyncio.Event()

    def push(self, entry: Entry) -> None:
        if self.overflowed:
            pass
        elif len(self.entries) < _BUFFER:
            self.entries.append(entry)
        else:
            # The follower reads on from the server, at its own position: it would read what is buffered here twice.
            self.entries.clear()
            self.overflowed = True
        self.ready.set()


class Subscription:
    """All events from now on or from a position on, for a reader that asks for them."""

    async def start(self) -> None:
        """Start to follow. No event that happens after this has returned is missed."""
        raise NotImplementedError

    async def next(self) -> list[Event] | None:
        """The next events, once there are any; None if no more will come."""
        raise NotImplementedError

    def close(self) -> None:
        """Wake a pending next(); it returns None."""
        raise NotImplementedError

    async def end(self) -> None:
        """Close, and leave nothing behind in this event loop."""
        self.close()


class LogSubscription(Subscription):
    """The events of one log. A gap is reported as an event."""

    def __init__(self, channel: Channel, since: Position | None) -> None:
        self._channel = channel
        self._since = since
        self._feed = Feed()
        self._reader = LogReader("0-0", None)
        self._first: list[Event] = []

    async def start(self) -> None:
        self._channel.feeds.add(self._feed)
        await self._channel.ready()
        self._reader = self._channel.reader()
        if self._since is not None:
            self._reader = LogReader(self._since.stream_id, self._since.entry)
            self._first = await self._rest_of(self._since)
            self._feed.overflowed = True

    @property
    def begins_at(self) -> Position:
        """The position before the first event that `next` gives."""
        return self._since or Position(self._reader.at, self._reader.number or 0, _ALL)

    async def next(self) -> list[Event] | None:
        found, self._first = self._first, []
        while not found:
            if self._feed.closed:
                return None
            found = [event for entry in await self._entries() for event in self._reader.take(entry)]
        return found

    def close(self) -> None:
        self._feed.closed = True
        self._feed.ready.set()
        self._channel.feeds.discard(self._feed)

    async def _entries(self) -> list[Entry]:
        """The entries that this follower has yet to see, read from the server if it could not keep up."""
        feed = self._feed
        if feed.overflowed:
            feed.overflowed = False
            feed.entries.clear()
            try:
                page = await self._channel.page(f"({self._reader.at}", PAGE)
            except BaseException:
                feed.overflowed = True  # the reader has seen none of these entries
                raise
            feed.overflowed = feed.overflowed or len(page) == PAGE
            return page
        if not feed.entries:
            feed.ready.clear()
            await feed.ready.wait()
        found = list(feed.entries)
        feed.entries.clear()
        return found

    async def _rest_of(self, since: Position) -> list[Event]:
        """The events after an event in its own entry. If that is gone, the number of the next entry shows the gap."""
        page = await self._channel.page(since.stream_id, 1)
        if page and page[0].stream_id == since.stream_id:
            return page[0].events[since.at + 1 :]
        return []
