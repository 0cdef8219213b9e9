"""The events that a reader has seen lately, so that a tab which was away for a moment can catch up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groupmq import Event

MOST = 1000
LONGEST_POSITION = 30_000
"""Characters of a position in the log: one of a queue with partitions has a part for each of them."""


class RecentEvents:
    """A bounded list of events, oldest first. `before`: the event in front of the oldest."""

    def __init__(self, before: str | None = None, most: int = MOST) -> None:
        self._events: deque[Event] = deque()
        self._before = before
        self._most = most

    def add(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) > self._most:
            self._before = self._events.popleft().id

    @property
    def last(self) -> str | None:
        """The id of the newest event; without events, `before`."""
        return self._events[-1].id if self._events else self._before

    def since(self, event_id: str) -> tuple[list[Event], bool]:
        """Events after this one, and whether some of them are not known any more. Without an id: all, none missed."""
        events = list(self._events)
        if event_id in ("", self._before):
            return events, False
        for i in range(len(events) - 1, -1, -1):
            if events[i].id == event_id:
                return events[i + 1 :], False
        return events, True
