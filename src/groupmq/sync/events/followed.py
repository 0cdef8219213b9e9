# Generated from src/groupmq/client/events/followed.py by `make sync`; do not edit.
"""All events of a queue as an iterator, for `Queue.events`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from groupmq.core.events import Event


class StartedLater(Protocol):
    """What follows the log of a queue, or the logs of its partitions (`Subscription`)."""

    def start(self) -> None: ...
    def next(self) -> list[Event] | None: ...
    def end(self) -> None: ...


def followed(follower: StartedLater) -> Iterator[Event]:
    """Yield all events, for ever, waiting for each."""
    try:
        follower.start()
        while (events := follower.next()) is not None:
            for event in events:
                yield event
    finally:
        follower.end()
