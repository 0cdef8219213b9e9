"""Connections for calls of functions: one write, one read, and a timeout around both.

redis-py's client does much more around each command: it looks for a retry, measures, parses, asks its pool, and starts
a task for the write. Together that takes longer than the call itself, and a call of ours needs nothing of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hiredis import pack_command

from groupmq.client.connection.dropping import close_all
from groupmq.client.connection.faults import first_and_last, is_reply, understood
from groupmq.client.connection.finding import is_stale
from groupmq.core.errors import ConnectionLost

_TRUSTED = 1.0
"""Seconds for which an idle connection is taken to be open still; after that it is looked at first."""


class CallPool:
    """The connections of one event loop. The caller bounds their number."""

    def __init__(self, pool: Any) -> None:
        """`pool`: redis-py's, which makes the connections and says how long a call may take."""
        self._pool = pool
        self._timeout: float | None = pool.connection_kwargs.get("socket_timeout")
        self._idle: list[tuple[Any, float]] = []
        self._in_use: set[Any] = set()
        self._closed = False

    def execute(self, *parts: Any) -> Coroutine[Any, Any, Any]:
        """Send one command, and return the reply as it came."""
        return self._exchange(pack_command(parts), _one_reply)

    def execute_and_wait(self, confirmation: tuple[tuple[Any, ...], ...], *parts: Any) -> Coroutine[Any, Any, Any]:
        """Send a command and what waits for it to be durable; the first and the last reply."""
        return self._exchange(b"".join(map(pack_command, (parts, *confirmation))), _first_and_last_of_three)

    def execute_asking(self, *parts: Any) -> Coroutine[Any, Any, Any]:
        """The same of a node that is about to own the key's slot: ASKING holds for the next command only."""
        return self._exchange(pack_command(("ASKING",)) + pack_command(parts), _after_asking)

    async def _exchange(self, packed: bytes, read: Callable[[Any], Awaitable[Any]]) -> Any:
        async with asyncio.timeout(self._timeout):
            connection = await self._connection()
            self._in_use.add(connection)
            try:
                await connection.send_packed_command(packed, check_health=False)
                reply = await read(connection)
            except Exception:
                await self._put_back(connection)  # still connected if the server answered, with an error
                raise
            except BaseException:
                # The reply is still to come, and must not be taken for that of the next call.
                self._in_use.discard(connection)
                await connection.disconnect(nowait=True)
                raise
        await self._put_back(connection)
        return reply

    async def _put_back(self, connection: Any) -> None:
        self._in_use.discard(connection)
        if self._closed:
            await connection.disconnect(nowait=True)
        elif connection.is_connected:
            self._idle.append((connection, time.monotonic()))

    async def _connection(self) -> Any:
        """One that is open: the last that was used, else a new one."""
        while self._idle:
            connection, used = self._idle.pop()
            if not connection.is_connected:
                continue
            if time.monotonic() - used < _TRUSTED:
                return connection
            quiet = False
            try:
                quiet = await _is_quiet(connection)
            finally:
                if not quiet:
                    await connection.disconnect(nowait=True)
            if quiet:
                return connection
        connection = self._pool.make_connection()
        connection.socket_timeout = None  # ours is around the whole call
        try:
            await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def close_stale(self, moves: int, *, in_use: bool = False) -> None:
        """Close what was made before the primary moved for the `moves`-th time; calls under way only if told."""
        idle = self._idle
        self._idle = [entry for entry in idle if not is_stale(entry[0], moves)]
        old = [connection for connection, _ in idle if is_stale(connection, moves)]
        if in_use:
            old += [connection for connection in self._in_use if is_stale(connection, moves)]
        for connection in old:
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Close all connections. A call that is under way fails: nothing would close its connection after it."""
        self._closed = True
        idle, self._idle = self._idle, []
        await close_all((*(connection for connection, _ in idle), *self._in_use))


def _one_reply(connection: Any) -> Awaitable[Any]:
    read: Awaitable[Any] = connection.read_response(disable_decoding=True)
    return read


async def _after_asking(connection: Any) -> Any:
    try:
        await _one_reply(connection)
    except Exception:
        await connection.disconnect(nowait=True)  # another reply is still to come
        raise
    return await _one_reply(connection)


async def _first_and_last_of_three(connection: Any) -> tuple[Any, Any]:
    """All are read, whichever of them is an error: the connection goes on with the next call."""
    replies: list[Any] = []
    while len(replies) < 3:
        try:
            replies.append(await _one_reply(connection))
        except Exception as error:
            if not is_reply(error):
                await connection.disconnect(nowait=True)
                raise
            replies.append(error)
    return first_and_last(replies)


async def _is_quiet(connection: Any) -> bool:
    """Whether a connection is open and has nothing to say, as one must that gets the next command."""
    # redis-py 8 has can_read, and warns of the older name: an error where warnings are errors.
    can_read = getattr(connection, "can_read", None) or connection.can_read_destructive
    try:
        return not await can_read()
    except Exception as error:
        if not isinstance(understood(error, ""), ConnectionLost):
            raise
        return False
