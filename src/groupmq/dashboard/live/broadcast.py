"""One sender, many tabs: each message is encoded once, and a tab that falls behind is notified that it missed some."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

_MOST_PENDING = 200


@dataclass(frozen=True, slots=True)
class Message:
    """A server-sent event, ready to be written."""

    name: str
    raw: bytes

    @classmethod
    def of(cls, name: str, data: Any, event_id: str | None = None) -> Message:
        # JSON of msgspec is one line, so it cannot end the event early; ids of events are made by groupmq.
        identity = f"id: {event_id}\n" if event_id else ""
        return cls(name, f"{identity}event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n")


class TabFeed:
    """The messages that one tab has yet to be sent."""

    def __init__(self, *, events: bool) -> None:
        self.wants_events = events
        self._pending: deque[Message] = deque()
        self._ready = asyncio.Event()
        self._overflowed = False
        self.closed = False

    def push(self, message: Message) -> None:
        if message.name == "events" and not self.wants_events:
            return
        if len(self._pending) >= _MOST_PENDING:
            self._pending.clear()
            self._overflowed = True
        self._pending.append(message)
        self._ready.set()

    async def take(self, timeout: float) -> list[Message]:
        """The pending messages, as soon as there are any; none after `timeout` seconds."""
        if not self._pending and not self.closed:
            self._ready.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._ready.wait()
            except TimeoutError:
                return []
        found = list(self._pending)
        self._pending.clear()
        if self._overflowed:
            self._overflowed = False
            return [Message.of("missed", {}), *found]
        return found

    def close(self) -> None:
        self.closed = True
        self._ready.set()


class Broadcast:
    """The tabs that listen to one sender."""

    def __init__(self) -> None:
        self._subscriptions: set[TabFeed] = set()

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def wants_events(self) -> bool:
        return any(one.wants_events for one in self._subscriptions)

    def add(self, *, events: bool) -> TabFeed:
        subscription = TabFeed(events=events)
        self._subscriptions.add(subscription)
        return subscription

    def remove(self, subscription: TabFeed) -> None:
        self._subscriptions.discard(subscription)

    def send(self, message: Message) -> None:
        for subscription in self._subscriptions:
            subscription.push(message)

    def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.close()
