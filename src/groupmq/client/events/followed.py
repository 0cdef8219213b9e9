"""All events of a queue as an iterator, for `Queue.events`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from groupmq.core.events import Event


class StartedLater(Protocol):
    """What follows the log of a queue, or the logs of its partitions (`Subscription`)."""

    async def start(self) -> None: ...
    async def next(self) -> list[Event] | None: ...
    async def end(self) -> None: ...


async def followed(follower: StartedLater) -> AsyncGenerator[Event, None]:
    """Yield all events, for ever, waiting for each."""
    try:
        await follower.start()
        while (events := await follower.next()) is not None:
            for event in events:
                yield event
    finally:
        await follower.end()
