"""The asynchronous connections that block: one waits for work, one reads events.

Each has its own call pool and at most one command under way, so the pool has one connection.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from groupmq.client.connection.call_pool import CallPool
from groupmq.client.connection.connections import Connection
from groupmq.client.connection.dropping import Dropper
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.faults import is_denied, understood
from groupmq.runtime.tasks import await_honouring_cancel

_BLOCK_MARGIN = 2.0
_SHORT_BLOCK_MS = 100


class Popped(NamedTuple):
    """A marker, or a job that an add has granted to this worker."""

    key: str
    member: bytes


class BlockingRead(Dropper):
    """A connection of our own with at most one command under way, which may block."""

    def __init__(self, endpoint: Endpoint, timeout: float) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._client = endpoint.asynchronous(timeout)
        self._calls = CallPool(self._client.connection_pool)
        endpoint.address.watch(self)

    async def _drop_stale(self, *, failover: bool) -> None:
        with contextlib.suppress(Exception):  # a connection that cannot be closed is dropped when it is used
            await self._calls.close_stale(self._endpoint.address.moves, in_use=True)

    async def close(self) -> None:
        await self._calls.close()
        with contextlib.suppress(Exception):
            await self._client.aclose()


class WakeConnection(BlockingRead):
    """The one connection of a worker that blocks. It pops a hint, or a job that the server gives again if this reply is
    lost, so losing a reply loses nothing."""

    def __init__(self, endpoint: Endpoint, keys: Sequence[str], timeout: float) -> None:
        """`keys`: the marker for all workers, then those for this worker alone."""
        # redis-py 8 gives up after 5 s by default; the timeout must be longer than the block.
        super().__init__(endpoint, timeout + _BLOCK_MARGIN)
        self._keys = keys
        self._popped = keys[0]
        self._timeout = timeout

    async def wait(self) -> Popped | None:
        """Block until one of the keys exists, and pop it; None if `timeout` has passed.

        A read that never returns (a half-open connection) is ended by the watchdog, and the connection replaced.
        """
        address = self._endpoint.address
        moves = address.moves
        try:
            async with asyncio.timeout(self._timeout + 2 * _BLOCK_MARGIN):
                reply = await await_honouring_cancel(self._calls.execute("BZPOPMIN", *self._keys, self._timeout))
        except Exception as error:
            known = address.moves != moves or address.observe(error, moves)
            await self.drop()
            if known:
                return None  # the primary has moved, and the worker asks the new one for work
            raise understood(error, self._endpoint.where) from error
        if reply is None:
            return None
        self._popped = reply[0].decode()
        return Popped(self._popped, reply[1])

    async def pass_on(self) -> None:
        """Put the marker back for another worker, if it was meant for all."""
        if self._popped == self._keys[0]:
            await self.put_back(self._popped)

    async def put_back(self, marker: str) -> None:
        """Put a marker back for another worker."""
        try:
            await self._calls.execute("ZADD", marker, 0, "0")
        except Exception as error:
            await self.drop()
            raise understood(error, self._endpoint.where) from error

    async def drop(self) -> None:
        await self._calls.drop()


class StreamConnection(BlockingRead):
    """The connection that reads the event logs of any number of queues."""

    def __init__(self, endpoint: Endpoint, block: float = 5.0) -> None:
        super().__init__(endpoint, block + _BLOCK_MARGIN)
        self._block_ms = int(block * 1000)
        self._timeout = block + 2 * _BLOCK_MARGIN
        self._moves = endpoint.address.moves
        self._id: int | None = None
        self._made = 0
        """How many connections had been made when the id was read: it is the id of the last one."""
        self._nudges: set[asyncio.Task[None]] = set()

    async def read(self, positions: dict[str, str], *, wait: bool = True) -> dict[str, list[Any]]:
        """New entries by key, after each key's position; empty if none came for a while, or if `unblock` was called."""
        if self._moves != self._endpoint.address.moves:
            self._moves = self._endpoint.address.moves
            await self._drop()
        try:
            async with asyncio.timeout(self._timeout):
                if self._id is None or self._made != self._calls.made:
                    self._id = await self._find_id()
                    self._made = self._calls.made
                block = ("BLOCK", self._block_ms if self._id else _SHORT_BLOCK_MS) if wait else ()
                reply = await self._command(
                    "XREAD", "COUNT", 500, *block, "STREAMS", *positions.keys(), *positions.values()
                )
        except Exception as error:
            moved = self._endpoint.address.observe(error, self._moves)
            await self._drop()
            if moved:
                return {}  # the next read goes to the node that has the log now
            raise understood(error, self._endpoint.where) from error
        pairs = reply.items() if isinstance(reply, dict) else reply or ()
        return {key.decode(): entries for key, entries in pairs}

    async def _find_id(self) -> int:
        """The id by which this connection can be unblocked; 0 if this user may not unblock connections. Then it reads
        in short blocks, so that a new listener need not wait for the end of a long one."""
        try:
            await self._command("CLIENT", "UNBLOCK", 0)
            return int(await self._command("CLIENT", "ID"))
        except Exception as error:
            if not is_denied(error):
                raise
            return 0

    async def _command(self, *parts: Any) -> Any:
        return await await_honouring_cancel(self._calls.execute(*parts))

    def unblock(self, via: Connection) -> None:
        """Let the read under way return, since there is another log to read; `via` reaches the same server."""
        task = asyncio.get_running_loop().create_task(self._unblock(via))
        self._nudges.add(task)
        task.add_done_callback(self._nudges.discard)

    async def _unblock(self, via: Connection) -> None:
        # If this fails, the read ends with its timeout.
        with contextlib.suppress(Exception):
            if self._id:
                await via.execute("CLIENT", "UNBLOCK", self._id)

    async def _drop(self) -> None:
        self._id = None
        await self._calls.drop()

    async def close(self) -> None:
        for task in tuple(self._nudges):
            task.cancel()
        self._id = None
        await super().close()
