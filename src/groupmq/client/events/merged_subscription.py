"""Following the logs of all partitions of a queue at once. Each log keeps its order; between two there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from groupmq.client.events.subscription import LogSubscription, Subscription
from groupmq.core.events import Event, Position
from groupmq.core.positions import Positions
from groupmq.runtime.tasks import end_tasks

if TYPE_CHECKING:
    from groupmq.client.events.channel import Channel


class MergedSubscription(Subscription):
    """The events of several logs. The id of an event says how far each of them has been read."""

    def __init__(self, channels: Sequence[Channel], since: Positions | None) -> None:
        starts = [None] * len(channels) if since is None else since.each
        self._logs = [LogSubscription(channel, at) for channel, at in zip(channels, starts, strict=True)]
        self._since = since
        self._at: list[str] = []
        self._reads: dict[asyncio.Task[list[Event] | None], int] = {}
        self._closed = False

    async def start(self) -> None:
        await asyncio.gather(*(log.start() for log in self._logs))
        given = [None] * len(self._logs) if self._since is None else self._since.each
        # Until the first event of a log has been read, its position is that at which following began.
        self._at = [str(at or log.begins_at) for log, at in zip(self._logs, given, strict=True)]
        for at in range(len(self._logs)):
            self._read_on(at)

    def _read_on(self, at: int) -> None:
        read = asyncio.get_running_loop().create_task(self._logs[at].next())
        # A follower that has ended does not ask for the result, and asyncio logs an error that is never retrieved.
        read.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._reads[read] = at

    async def next(self) -> list[Event] | None:
        while not self._closed:
            done, _ = await asyncio.wait(self._reads, return_when=asyncio.FIRST_COMPLETED)
            found: list[Event] = []
            for read in done:
                at = self._reads.pop(read)
                events = read.result()
                if events is None:
                    return None
                found += [self._placed(at, event) for event in events]
                self._read_on(at)
            if found:
                return found
        return None

    def _placed(self, at: int, event: Event) -> Event:
        self._at[at] = str(Position.parse(event.id))
        return replace(event, id="~".join(self._at))

    def close(self) -> None:
        self._closed = True
        for log in self._logs:
            log.close()

    async def end(self) -> None:
        await super().end()
        await end_tasks(list(self._reads))


def subscription_of(channels: Sequence[Channel], since: str | None) -> Subscription:
    """A follower of one log, or of those of all partitions of a queue, after the event with id `since`."""
    if len(channels) == 1:
        return LogSubscription(channels[0], None if since is None else Position.parse(since))
    return MergedSubscription(channels, None if since is None else Positions.parse(since, len(channels)))
