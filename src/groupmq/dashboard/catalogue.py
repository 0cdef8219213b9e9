"""Lists the queues, and opens them with their stored settings without creating any."""

from __future__ import annotations

import asyncio
import time

from groupmq import ConfigurationError, Queue, QueueNotFound
from groupmq.dashboard.options import Options
from groupmq.dashboard.reading import READABLE

_LIST_FOR = 2.0
"""Seconds for which a list of the server's queues is reused."""


class Catalogue:
    """The queues that a dashboard shows. Each is opened when it is first requested, and kept open."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._given = {queue.name: queue for queue in options.queues or () if isinstance(queue, Queue)}
        self._only = None if options.queues is None else [_name(queue) for queue in options.queues]
        self._open: dict[str, Queue] = {}
        self._opening = asyncio.Lock()
        self._listed: list[str] = []
        self._listed_at = -_LIST_FOR

    async def names(self) -> list[str]:
        """The names in the given order, or those of all queues of the server, sorted."""
        if self._only is not None:
            return self._only
        if time.monotonic() - self._listed_at >= _LIST_FOR:
            found = await Queue.list(self._options.redis, prefix=self._options.prefix)
            self._listed = sorted(info.name for info in found)
            self._listed_at = time.monotonic()
        return self._listed

    async def open(self, name: str) -> Queue:
        """The queue. Raises QueueNotFound if there is none, or if this dashboard does not show it."""
        if name in self._given:
            return self._given[name]
        if self._only is not None and name not in self._only:
            raise QueueNotFound(name, "this dashboard")
        async with self._opening:
            if name not in self._open:
                try:
                    self._open[name] = await Queue.open(
                        name, self._options.redis, prefix=self._options.prefix, serializer=READABLE
                    )
                except ConfigurationError:
                    if name in self._listed:
                        raise  # it exists, in a format that this release does not read
                    raise QueueNotFound(name, "this server") from None  # a name that no queue can have
            return self._open[name]

    async def forget(self, name: str) -> None:
        """Close a queue that is gone. If it exists again, the next request opens it."""
        queue = self._open.pop(name, None)
        self._listed_at = -_LIST_FOR
        if queue is not None:
            await queue.close()

    def display_name(self, name: str) -> str:
        return self._options.display_names.get(name, name)

    def description(self, name: str) -> str:
        return self._options.descriptions.get(name, "")

    async def close(self) -> None:
        """Close the queues that were opened here, never those of the host app."""
        queues, self._open = list(self._open.values()), {}
        for queue in queues:
            await queue.close()


def _name(queue: str | Queue) -> str:
    return queue.name if isinstance(queue, Queue) else queue
