"""Connections for calls of functions and for reads that block: one write, one read, and a timeout around both.

redis-py's client does much more around each command: it sets up retries, measures, parses, asks its pool, and starts a
task for the write. Together that takes longer than the call itself, and a call of ours needs none of it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from hiredis import pack_command

from groupmq.client.connection.dropping import close_all
from groupmq.client.connection.exchange import Exchange
from groupmq.client.connection.faults import ClosedHere, first_and_last
from groupmq.client.connection.located import is_stale

_TRUSTED = 1.0
"""Seconds for which an idle connection is assumed to be still open; after that it is checked before use."""


class CallPool:
    """The connections of one event loop. The caller bounds their number."""

    def __init__(self, pool: Any) -> None:
        """`pool`: a pool of redis-py, which makes the connections and has the timeout of a call."""
        self._pool = pool
        self._timeout: float | None = pool.connection_kwargs.get("socket_timeout")
        self._idle: list[Exchange] = []
        self._in_use: set[Exchange] = set()
        self._closed = False
        self._drops = 0
        self.made = 0
        """Connections made so far. When it changes, anything learned about the last connection is outdated."""

    async def execute(self, *parts: Any) -> Any:
        """Send one command, and return the reply as it came."""
        (reply,) = await self._exchange(pack_command(parts), 1)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def execute_and_wait(self, confirmation: tuple[tuple[Any, ...], ...], *parts: Any) -> tuple[Any, Any]:
        """Send a command and those that wait until it is durable; returns the first and the last reply."""
        commands = (parts, *confirmation)
        return first_and_last(await self._exchange(b"".join(map(pack_command, commands)), len(commands)))

    async def execute_asking(self, *parts: Any) -> Any:
        """Send one command to a node that is about to own the key's slot: ASKING holds for the next command only."""
        _, reply = first_and_last(await self._exchange(pack_command(("ASKING",)) + pack_command(parts), 2))
        return reply

    async def _exchange(self, packed: bytes, count: int) -> list[Any]:
        exchange = self._trusted() or await self._connection()
        self._in_use.add(exchange)
        drops = self._drops
        try:
            return await exchange.run(packed, count, self._timeout)
        except Exception as error:
            if drops != self._drops:
                raise ClosedHere from error
            raise
        finally:
            self._in_use.discard(exchange)
            if exchange.is_open and not self._closed:
                exchange.used = time.monotonic()
                self._idle.append(exchange)
            else:
                await exchange.connection.disconnect(nowait=True)

    def _trusted(self) -> Exchange | None:
        """The connection that was used last, if it was used a moment ago."""
        if self._idle and self._idle[-1].is_open and time.monotonic() - self._idle[-1].used < _TRUSTED:
            return self._idle.pop()
        return None

    async def _connection(self) -> Exchange:
        """An open connection: the one that was used last, else a new one."""
        while self._idle:
            exchange = self._idle.pop()
            if exchange.is_quiet():
                return exchange
            await exchange.connection.disconnect(nowait=True)
        connection = self._pool.make_connection()
        self.made += 1
        # Our timeout covers all of it. With a timeout of its own, redis-py would send through `wait_for`, which loses
        # cancellations on Python 3.11.
        connection.socket_timeout = None
        try:
            async with asyncio.timeout(self._timeout):
                await connection.connect()
            return Exchange(connection)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    async def close_stale(self, moves: int, *, in_use: bool = False) -> None:
        """Close connections made before the primary moved for the `moves`-th time; with `in_use`, those in use too."""
        old = [exchange for exchange in self._idle if is_stale(exchange.connection, moves)]
        self._idle = [exchange for exchange in self._idle if not is_stale(exchange.connection, moves)]
        if in_use:
            old += [exchange for exchange in self._in_use if is_stale(exchange.connection, moves)]
        for exchange in old:
            await exchange.connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Close all connections. A call under way fails, because nothing would close its connection after it."""
        self._closed = True
        await self.drop()

    async def drop(self) -> None:
        """Close all connections as `close` does; the next call makes a new one."""
        self._drops += 1
        idle, self._idle = self._idle, []
        await close_all(exchange.connection for exchange in (*idle, *self._in_use))
