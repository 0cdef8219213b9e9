"""How the commands of a link reach the server: through sockets of one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from groupmq.client.connection.call_pool import CallPool
from groupmq.client.connection.dropping import Dropper, close_client, drop_stale_of
from groupmq.client.connection.endpoint import Endpoint
from groupmq.core.durability import Confirmation
from groupmq.runtime.tasks import await_honouring_cancel, run_to_first_yield

_CALLS = frozenset({"FCALL", "FCALL_RO", "EVALSHA", "EVALSHA_RO", "EVAL", "SADD", "EXISTS"})
"""Commands that are sent over the call pool: redis-py does not convert their replies, so they do not need its
client."""


class Transport(Dropper):
    """A client of the library in one event loop, and the connections for calls beside it."""

    def __init__(self, endpoint: Endpoint, *, own: bool) -> None:
        super().__init__()
        self._address = endpoint.address
        self._client = endpoint.asynchronous() if own else endpoint.client
        self._calls = CallPool(self._client.connection_pool) if own else None
        self._renewing = asyncio.Lock()
        self._keeper = self._keep() if own else None
        if self._keeper is not None:
            run_to_first_yield(self._keeper)

    def _bound(self, calls: int) -> asyncio.Semaphore:
        # A thousand calls at once wait for each other here; in the client library's pool they would fail.
        return asyncio.Semaphore(calls)

    async def _keep(self) -> AsyncGenerator[None, None]:
        """Close our connections when the event loop ends: it closes asynchronous generators, such as this one, first.

        Otherwise a queue that outlives its loop would leave sockets behind that cannot be closed any more.
        """
        try:
            yield
        finally:
            await self._disconnect()

    def _send(self, parts: tuple[Any, ...], wait: Confirmation) -> Coroutine[Any, Any, Any]:
        if self._calls is not None and parts[0] in _CALLS:
            return self._calls.execute_and_wait(wait, *parts) if wait else self._calls.execute(*parts)
        return await_honouring_cancel(self._client.execute_command(*parts, NEVER_DECODE=True))

    def _send_asking(self, parts: tuple[Any, ...]) -> Coroutine[Any, Any, Any]:
        if self._calls is None:
            raise RuntimeError("only a client of our own is used in a cluster")
        return self._calls.execute_asking(*parts)

    def _drop_soon(self) -> None:
        super().primary_moved(failover=True)

    async def _drop_stale(self, *, failover: bool) -> None:
        moves = self._address.moves
        if self._calls is not None:
            with contextlib.suppress(Exception):
                await self._calls.close_stale(moves, in_use=failover)
        await drop_stale_of(self._client, moves, in_use=failover)

    async def _end(self) -> None:
        if self._keeper is not None:
            await self._disconnect()
            await self._keeper.aclose()

    async def _disconnect(self) -> None:
        try:
            if self._calls is not None:
                await self._calls.close()
        finally:
            await close_client(self._client)
        await self._client.aclose()
