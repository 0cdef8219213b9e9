"""The asynchronous connection of a queue, for calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from groupmq.client.connection.address import Node
from groupmq.client.connection.call_pool import CallPool
from groupmq.client.connection.cluster import SlotMap, redirection, slot_of
from groupmq.client.connection.dropping import Dropper, close_client, drop_stale_of
from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.function_client import FunctionClient
from groupmq.client.connection.known import KnownPart
from groupmq.client.connection.session import Session
from groupmq.core.errors import ConfigurationError
from groupmq.core.loops import PerLoop, this_process
from groupmq.core.queue_options import QueueOptions
from groupmq.core.tasks import await_honouring_cancel

Confirmation = tuple[tuple[Any, ...], ...]
_MOST_CALLS = 50
"""Calls of one queue object under way at a time; redis-py 8 allows a pool 100 connections."""
_MOST_SHARED_CALLS = 8
"""The same for all partitions of a queue on one server: their timers fire together, and each call at once would take
a connection that stays."""
_MOST_REDIRECTIONS = 3
_CALLS = frozenset({"FCALL", "FCALL_RO", "EVALSHA", "EVALSHA_RO", "EVAL", "SADD", "EXISTS"})
"""Commands that are sent over the call pool: redis-py does not convert their replies, so they need no client of its."""


class Line(Dropper):
    """The client of one event loop, and how many calls it may have under way."""

    def __init__(self, endpoint: Endpoint, *, own: bool, most_calls: int = _MOST_CALLS) -> None:
        super().__init__()
        self._address = endpoint.address
        self._moves = endpoint.address.moves
        self._client = endpoint.asynchronous() if own else endpoint.client
        self._calls = CallPool(self._client.connection_pool) if own else None
        # A thousand calls at once wait for each other here; in the client library's pool they would fail.
        self._slots = asyncio.Semaphore(most_calls)
        self._renewing = asyncio.Lock()
        self._keeper = self._keep() if own else None
        if own:
            self._address.watch(self)
        if self._keeper is not None:
            with contextlib.suppress(StopIteration):
                self._keeper.asend(None).send(None)

    def limit(self, calls: int) -> None:
        """From now on so many calls may be under way."""
        self._slots = asyncio.Semaphore(calls)

    async def _keep(self) -> AsyncGenerator[None, None]:
        """An event loop that ends closes its asynchronous generators first: our connections end with this one.

        Otherwise a queue that outlives its loop would leave sockets behind that cannot be closed any more.
        """
        try:
            yield
        finally:
            await self._disconnect()

    async def execute(self, *parts: Any, wait: Confirmation = ()) -> Any:
        """Send one command; with `wait`, what is sent behind it to wait for it to be durable: both replies."""
        if self._moves != self._address.moves or self._renewing.locked():
            async with self._renewing:  # a call must not be given a connection that is just being dropped
                if self._moves != self._address.moves:
                    self._moves = self._address.moves
                    await self._drop_stale(failover=False)
        async with self._slots:
            try:
                return await self._send(parts, wait)
            except Exception as error:
                if not self._address.observe(error, self._moves):
                    raise
        return await self._execute_again(parts, wait)

    def _send(self, parts: tuple[Any, ...], wait: Confirmation) -> Coroutine[Any, Any, Any]:
        if self._calls is not None and parts[0] in _CALLS:
            return self._calls.execute_and_wait(wait, *parts) if wait else self._calls.execute(*parts)
        return await_honouring_cancel(self._client.execute_command(*parts, NEVER_DECODE=True))

    async def _execute_again(self, parts: tuple[Any, ...], wait: Confirmation) -> Any:
        """A node of a cluster has named the owner of the queue's slot: ask that one, and no other."""
        await self._drop_stale(failover=False)
        async with self._slots:
            try:
                return await self._send(parts, wait)
            except Exception as error:
                self._address.observe(error, self._address.moves)
                raise

    async def execute_asking(self, *parts: Any) -> Any:
        """Send a command about one key to the node that its slot is being moved to."""
        if self._calls is None:
            raise RuntimeError("only a client of our own is used in a cluster")
        async with self._slots:
            return await self._calls.execute_asking(*parts)

    def primary_moved(self, *, failover: bool) -> None:
        if failover:  # else the next call drops what is idle
            super().primary_moved(failover=True)

    async def _drop_stale(self, *, failover: bool) -> None:
        """Calls under way are dropped after a failover only: else the server answers them, with a refusal."""
        moves = self._address.moves
        if self._calls is not None:
            with contextlib.suppress(Exception):
                await self._calls.close_stale(moves, in_use=failover)
        await drop_stale_of(self._client, moves, in_use=failover)

    async def close(self) -> None:
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


class Connection(FunctionClient):
    """The asynchronous connection of one queue object, in any number of event loops, each with a client of its own."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: QueueOptions,
        *,
        session: Session | None = None,
        known: KnownPart | None = None,
    ) -> None:
        """`session`: that of a blocking queue, for which this connection reads events. `known`: of a partition."""
        if session is None:
            endpoint.require(asynchronous=True)
        super().__init__(Session(options, endpoint.where, known) if session is None else session, endpoint.patience)
        self.endpoint = endpoint = endpoint.at(self.session.keys.meta)
        self._own = session is not None or endpoint.client is None or endpoint.own
        self._lines = PerLoop(self._make_line)
        self._borrows = False
        self._most_calls = _MOST_CALLS
        self._waiting = PerLoop(self._make_waiting_line)
        """Lines whose calls wait for replicas or a disk; other calls must not wait for theirs."""
        self._others: PerLoop[dict[Node, Line]] = PerLoop(dict)
        """Lines to other nodes of a cluster, for keys that are not of this queue."""
        self._users: tuple[asyncio.AbstractEventLoop, object] | None = None
        """Where the user's own client is in use: event loop and process."""

    def share_lines_of(self, other: Connection) -> None:
        """Use the connections of another object to the same server, which closes them: partitions need no own."""
        self._lines, self._waiting, self._others, self._borrows = other._lines, other._waiting, other._others, True
        other._most_calls = _MOST_SHARED_CALLS
        line = other._lines.made_here()
        if line is not None:
            line.limit(_MOST_SHARED_CALLS)

    def _make_line(self) -> Line:
        if not self._own:
            here = asyncio.get_running_loop(), this_process()
            if self._users not in (None, here) and _has_connections(self.endpoint.client):
                raise ConfigurationError(
                    "redis: this client belongs to the event loop and process that used it first; give the Queue a "
                    "URL, and it connects by itself wherever it is used, or make a client and a Queue there"
                )
            self._users = here
        return Line(self.endpoint, own=self._own, most_calls=self._most_calls)

    def _make_waiting_line(self) -> Line:
        durability = self.session.options.durability
        wait = 0.0 if durability is None else durability.timeout_ms / 1000
        return Line(self.endpoint.beside(wait + CALL_TIMEOUT), own=True)

    def execute_and_wait(self, *parts: Any) -> Coroutine[Any, Any, Any]:
        return self._waiting.here().execute(*parts, wait=self.session.confirmation())

    def execute(self, *parts: Any) -> Coroutine[Any, Any, Any]:
        """Send one command. A cancelled one drops its connection: a late reply must not reach the next call."""
        return self._lines.here().execute(*parts)

    def execute_for(self, key: str, *parts: Any) -> Coroutine[Any, Any, Any]:
        """Send one command about one key, which in a cluster may live on another node than the queue."""
        slots = self.endpoint.slots
        if slots is None or slot_of(key) == self.endpoint.slot:
            return self.execute(*parts)
        return self._execute_elsewhere(slots, slot_of(key), parts)

    async def _execute_elsewhere(self, slots: SlotMap, slot: int, parts: tuple[Any, ...]) -> Any:
        for left in range(_MOST_REDIRECTIONS, -1, -1):
            node = slots.owner(slot)
            if node is None and self.endpoint.finder is not None:
                node = await self.endpoint.finder.run(slots.search(slot))
            try:
                return await self._line_to(node).execute(*parts)
            except Exception as error:
                said = redirection(error, node)
                if said is None or left == 0:
                    raise
            if not said.for_good:
                return await self._line_to(said.node).execute_asking(*parts)
        raise AssertionError("unreachable")

    def _line_to(self, node: Node | None) -> Line:
        lines = self._others.here()
        if node is None:
            return self._lines.here()
        if node not in lines:
            lines[node] = Line(self.endpoint.at_node(node), own=True)
        return lines[node]

    def whereabouts(self) -> str:
        return self.endpoint.whereabouts()

    async def places(self) -> list[Node | None]:
        slots, finder = self.endpoint.slots, self.endpoint.finder
        if slots is None or finder is None:
            return [None]
        await finder.run(slots.search(self.endpoint.slot))
        return [*slots.primaries()]

    def execute_at(self, place: Node | None, *parts: Any) -> Coroutine[Any, Any, Any]:
        return self._line_to(place).execute(*parts)

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close what this event loop has open. What others have open ends with them."""
        self.session.closed = True
        if self._borrows:
            return
        others = self._others.known()
        for known in (self._lines.known(), self._waiting.known(), *(others or {}).values()):
            if known is not None:
                await known.close()


def _has_connections(client: Any) -> bool:
    """Whether a client has open connections; one without any can go on in another event loop."""
    pool = client.connection_pool
    both = (*getattr(pool, "_available_connections", ()), *getattr(pool, "_in_use_connections", ()))
    return any(connection.is_connected for connection in both)
