"""Closing connections: all of a client, or those that lead to a server which is no longer the primary."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from groupmq.client.connection.located import made_by, stale


class Dropper:
    """Closes connections of an event loop that lead to the wrong server. Any thread may request it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._dropping: set[asyncio.Task[None]] = set()

    def primary_moved(self, *, failover: bool) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and its connections with it
            self._loop.call_soon_threadsafe(self._start_dropping, failover)

    def _start_dropping(self, failover: bool) -> None:
        task = self._loop.create_task(self._drop_stale(failover=failover))
        self._dropping.add(task)
        task.add_done_callback(self._dropping.discard)

    async def _drop_stale(self, *, failover: bool) -> None:
        raise NotImplementedError


async def drop_stale_of(client: Any, moves: int, *, in_use: bool) -> None:
    """Close connections of a client of the library that were made before the last move."""
    for connection in stale(client.connection_pool, moves, in_use=in_use):
        with contextlib.suppress(Exception):  # a connection that cannot be closed is dropped when it is used
            await connection.disconnect(nowait=True)


async def close_client(client: Any) -> None:
    """Close every connection of a client of the library, those in use too.

    The pool's own method is not used: it starts a task for each connection, and a cancellation that comes before these
    tasks have begun leaves the connections open.
    """
    await close_all(made_by(client.connection_pool, in_use=True))


async def close_all(connections: Iterable[Any]) -> None:
    """Close connections, all of them, even if this is cancelled meanwhile.

    It waits for each: with TLS a last message is sent first, and if the event loop ended before that, the connection
    would stay open.
    """
    left = list(connections)
    try:
        while left:
            with contextlib.suppress(Exception):
                await left.pop().disconnect()
    finally:
        for connection in left:
            with contextlib.suppress(Exception):
                await connection.disconnect(nowait=True)
