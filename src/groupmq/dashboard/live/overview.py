"""The one reader for the page of all queues: it reads the first page of rows, for all tabs together."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from groupmq import GroupMQError
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.queues import MOST
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.live.broadcast import Broadcast, Message, TabFeed
from groupmq.dashboard.live.reader import unreachable

if TYPE_CHECKING:
    from groupmq.dashboard.live.shared_state import SharedState

LOOK_EVERY = 3.0


@record
class AllQueues:
    queues: list[QueueRow]


class Overview:
    """Reads the rows while a tab listens."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._broadcast = Broadcast()
        self._task: asyncio.Task[None] | None = None

    def subscribe(self) -> TabFeed:
        subscription = self._broadcast.add(events=False)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())
        return subscription

    def unsubscribe(self, subscription: TabFeed) -> None:
        self._broadcast.remove(subscription)

    async def close(self) -> None:
        self._broadcast.close()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        before: list[QueueRow] | None = None
        reachable = True
        while len(self._broadcast):
            try:
                names = (await self._shared.catalogue.names())[:MOST]
                rows = [await self._shared.named_row(name) for name in names]
            except GroupMQError as error:
                if reachable:
                    reachable = False
                    self._broadcast.send(Message.of("gone", {"text": unreachable(error)}))
            else:
                if not reachable:
                    reachable = True
                    self._broadcast.send(Message.of("back", {}))
                found = [row for row in rows if row is not None]
                if found != before:
                    before = found
                    self._broadcast.send(Message.of("snapshot", AllQueues(queues=found)))
                    self._broadcast.send(Message.of("changed", {"pages": ["queues"], "jobs": [], "groups": []}))
            await asyncio.sleep(LOOK_EVERY)
