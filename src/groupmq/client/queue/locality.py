"""The part of a queue that belongs to one event loop, and the choice of the loop that calls its listeners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from groupmq.client.connection.connections import Connection
from groupmq.client.events import Channel
from groupmq.client.events.results import Results
from groupmq.client.job import Job
from groupmq.client.queue.joining import Joiner
from groupmq.core.drafts import Draft
from groupmq.core.errors import GroupFull
from groupmq.core.events import KINDS
from groupmq.runtime.emitter import Emitter, Listener
from groupmq.runtime.loops import PerLoop, this_process

_logger = logging.getLogger("groupmq.events")
SendAdds = Callable[[Sequence[Draft]], Awaitable[Sequence[Job | GroupFull]]]
SendGets = Callable[[Sequence[str]], Awaitable[Sequence[Job | Exception | None]]]


class InLoop:
    """The adds and reads of one loop iteration, and the events received: futures and tasks of one event loop."""

    def __init__(self, connection: Connection, send_adds: SendAdds, send_gets: SendGets) -> None:
        self.adds: Joiner[Draft, Job] = Joiner(send_adds, lambda d: len(d.body))
        self.gets: Joiner[str, Job | None] = Joiner(send_gets, lambda _: 0)
        self.channel = Channel(connection, connection.session.options.serializer)
        self.opening: asyncio.Future[None] | None = None
        """The call that opens the queue, for all callers that wait for it."""
        self.adding: set[asyncio.Future[None]] = set()
        """Adds that first have to find out where their job goes; each future ends with its add."""
        self.results = Results(self.gets.add, listens=lambda: connection.session.options.events)


class Locality:
    """One `InLoop` for each event loop. Listeners of the queue are called in one loop at a time."""

    def __init__(self, connection: Connection, send_adds: SendAdds, send_gets: SendGets) -> None:
        self._parts = connection, send_adds, send_gets
        self._loops = PerLoop(self._make)
        self.listeners = Emitter(KINDS, _logger)
        self._delivers_in: tuple[asyncio.AbstractEventLoop, object] | None = None
        self.waiting = False
        """Whether a listener was registered that does not receive events yet."""

    def here(self) -> InLoop:
        return self._loops.here()

    def _make(self) -> InLoop:
        # Listeners that were called in a loop that has ended are called in this one.
        self.waiting = self.waiting or self.listeners.any
        return InLoop(*self._parts)

    def listen(self, event: str, listener: Listener) -> None:
        self.listeners.on(event, listener)
        self.waiting = True

    async def subscribe(self) -> None:
        """Make sure that listeners registered so far receive the events that the next call causes."""
        if not self.waiting:
            return
        channel, here = self.here().channel, (asyncio.get_running_loop(), this_process())
        if self._delivers_in is None or self._delivers_in[0].is_closed() or self._delivers_in[1] is not here[1]:
            self._delivers_in = here
        if self._delivers_in == here:
            channel.deliver_to(self.listeners)
            await channel.ready()
        self.waiting = False
