"""The class `Queue`: all methods of a queue, with listening and closing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

from groupmq.client.queue.runtime import QueueRuntime
from groupmq.core.events import Event
from groupmq.runtime.emitter import Listener


class Queue(QueueRuntime):
    """A queue of jobs. Jobs of one group run strictly in order, one at a time; groups run in parallel.

    >>> async with Queue("orders") as queue:
    ...     await queue.add({"amount": 999}, group_id="user:42", max_attempts=5)
    """

    _closed = False

    def events(self, since: str | None = None) -> AsyncGenerator[Event, None]:
        """The events of this queue, of all processes, from now on or after the event with id `since`.

        >>> async for event in queue.events():
        ...     print(event.kind, event.job_id)
        """
        return self._events(since)

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener(event)` for events of all workers in all processes.

        It receives the events of everything that is done through this queue object from now on. `groupmq.Queue` calls
        it in the event loop, where it may be async, and `groupmq.sync.Queue` in a separate thread. An error that it
        raises is logged.
        """
        self._require_events()
        self._listen(event, listener)
        return listener

    def off(self, event: str, listener: Listener) -> bool:
        """Stop calling `listener`; True if it was listening."""
        found = [queue._listeners.off(event, listener) for queue in (self, *(self._parts or ()))]
        return any(found)

    def remove_all_listeners(self, event: str | None = None) -> None:
        """Stop calling all listeners, or those of one event."""
        for queue in (self, *(self._parts or ())):
            queue._listeners.remove_all(event)

    async def close(self) -> None:
        """Send the adds that still wait, end workers and listeners, and close the connections (never the user's)."""
        if self._closed:
            return
        self._closed = True
        await self._end()
        for part in self._parts or ():
            await part.close()
        await self._connection.close()

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
