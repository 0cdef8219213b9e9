"""The blocking connection: of the blocking client, and of a worker's heartbeat thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from hiredis import pack_command

from groupmq.client.connection.address import Node
from groupmq.client.connection.cluster import redirection, slot_of
from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.faults import is_refusal, understood
from groupmq.client.connection.finding import stale
from groupmq.client.connection.known import Known, KnownPart
from groupmq.client.connection.session import Session
from groupmq.core.errors import ConnectionLost
from groupmq.core.queue_options import QueueOptions
from groupmq.sync.connection.function_client import FunctionClient
from groupmq.sync.connection.waiting_calls import WaitingCalls

_MOST_REDIRECTIONS = 3


class BlockingConnection(FunctionClient):
    """The blocking connection of the sync client and of the heartbeat thread. Safe in threads and after a fork."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: QueueOptions,
        *,
        own: bool = False,
        timeout: float | None = None,
        known: Known | KnownPart | None = None,
    ) -> None:
        """`known`: what another connection to the same queue or partition knows of it."""
        super().__init__(Session(options, endpoint.where, known), endpoint.patience)
        self._endpoint = endpoint = endpoint.at(self.session.keys.meta)
        self._others: dict[Node, Any] = {}
        """Clients of other nodes of a cluster, for keys that are not of this queue."""
        self._address = endpoint.address
        self._moves = endpoint.address.moves
        self._own = own or endpoint.client is None or endpoint.own
        if not self._own:
            endpoint.require(asynchronous=False)
        self._client: Any = endpoint.blocking(timeout) if self._own else endpoint.client
        patience = self._client.connection_pool.connection_kwargs.get("socket_timeout") or CALL_TIMEOUT
        self._longest_block = patience / 2
        self._blocks = False
        self._waiting: WaitingCalls | None = None
        self._lender: BlockingConnection | None = None
        """Whose connections are used: of a partition on one server those of the queue itself."""
        if self._own:
            self._address.watch(self)

    def share_client_of(self, other: BlockingConnection) -> None:
        """Use the client of another object to the same server, which closes it: partitions need no own."""
        if self._own:
            self._client.close()
        self._client, self._own, self._lender = other._client, False, other

    def wait_for_mail(self, worker: str, timeout: float) -> bool:
        """Block until there is mail for a worker (True), or for some time, at most `timeout` (False)."""
        key = self.session.keys.mail(worker)
        try:
            self._blocks = True
            block = min(timeout, self._longest_block)
            return self.execute("BZPOPMIN", key, block) is not None
        except Exception as error:
            raise understood(error, self.session.where) from error
        finally:
            self._blocks = False

    def interrupt(self) -> None:
        """End a blocking read of another thread."""
        with contextlib.suppress(Exception):
            self._client.connection_pool.disconnect(inuse_connections=True)

    def primary_moved(self, *, failover: bool) -> None:
        """Drop what leads to the old primary: the wait for mail as well, a call under way after a failover only."""
        if self._blocks or failover:
            self._drop_stale(in_use=True)

    def _drop_stale(self, *, in_use: bool) -> None:
        for connection in stale(self._client.connection_pool, self._address.moves, in_use=in_use):
            with contextlib.suppress(Exception):
                connection.disconnect()

    def execute(self, *parts: Any) -> Any:
        return self._execute(self._send, parts)

    def execute_and_wait(self, *parts: Any) -> tuple[Any, Any]:
        # Of a partition too: on one server a write of the queue itself is behind the call as well as one of its own.
        both: tuple[Any, Any] = self._execute(self._waiting_calls().execute, parts)
        return both

    def _waiting_calls(self) -> WaitingCalls:
        if self._lender is not None:
            return self._lender._waiting_calls()
        if self._waiting is None:
            self._waiting = WaitingCalls(self._endpoint, self.session)
        return self._waiting

    def _send(self, *parts: Any) -> Any:
        return self._client.execute_command(*parts, NEVER_DECODE=True)

    def _execute(self, send: Callable[..., Any], parts: tuple[Any, ...]) -> Any:
        if self._moves != self._address.moves:
            self._moves = self._address.moves
            self._drop_stale(in_use=False)
        try:
            return send(*parts)
        except Exception as error:
            if not self._is_redirected(error):
                raise
        # A node of a cluster has said who owns the queue's slot now: ask that one, but follow nobody further.
        self._moves = self._address.moves
        self._drop_stale(in_use=False)
        try:
            return send(*parts)
        except Exception as error:
            self._is_redirected(error)
            raise

    def _is_redirected(self, error: Exception) -> bool:
        moved = self._moves != self._address.moves
        again = self._address.observe(error, self._moves)
        if moved and not again and not is_refusal(error):
            # Another thread has dropped the connection, and the client library stumbles over its remains.
            raise ConnectionLost(f"the primary of {self.session.where} has moved") from error
        return again

    def execute_for(self, key: str, *parts: Any) -> Any:
        slots, finder = self._endpoint.slots, self._endpoint.finder
        if slots is None or finder is None or slot_of(key) == self._endpoint.slot:
            return self.execute(*parts)
        slot = slot_of(key)
        for left in range(_MOST_REDIRECTIONS, -1, -1):
            node = slots.owner(slot) or finder.run_blocking(slots.search(slot))
            try:
                return self.execute_at(node, *parts)
            except Exception as error:
                said = redirection(error, node)
                if said is None or left == 0:
                    raise
            if not said.for_good:
                return self._execute_asking(said.node, parts)
        raise AssertionError("unreachable")

    def whereabouts(self) -> str:
        return self._endpoint.whereabouts()

    def places(self) -> list[Node | None]:
        slots, finder = self._endpoint.slots, self._endpoint.finder
        if slots is None or finder is None:
            return [None]
        finder.run_blocking(slots.search(self._endpoint.slot))
        return [*slots.primaries()]

    def execute_at(self, place: Node | None, *parts: Any) -> Any:
        if place is None:
            return self.execute(*parts)
        try:
            return self._client_of(place).execute_command(*parts, NEVER_DECODE=True)
        except Exception as error:
            self._endpoint.at_node(place).address.observe(error, 0)
            raise

    def _client_of(self, node: Node) -> Any:
        if node not in self._others:
            self._others[node] = self._endpoint.at_node(node).blocking()
        return self._others[node]

    def _execute_asking(self, node: Node, parts: tuple[Any, ...]) -> Any:
        """Send a command about one key to the node that its slot is being moved to.

        ASKING holds for the next command of its connection only, so both go in one write.
        """
        connection = self._client_of(node).connection_pool.make_connection()
        try:
            connection.connect()
            connection.send_packed_command([pack_command(("ASKING",)) + pack_command(parts)], check_health=False)
            connection.read_response(disable_decoding=True)
            return connection.read_response(disable_decoding=True)
        finally:
            connection.disconnect()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.session.closed = True
        if self._own:
            self._client.close()
        if self._waiting is not None:
            self._waiting.close()
        for client in self._others.values():
            client.close()
