"""The blocking connection: of the blocking client, and of a worker's heartbeat thread."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.faults import is_lost, understood
from groupmq.client.connection.finding import stale
from groupmq.client.connection.session import Session
from groupmq.core.errors import ConnectionLost
from groupmq.core.options import QueueOptions
from groupmq.sync.connection.function_client import FunctionClient


class BlockingConnection(FunctionClient):
    """The blocking connection of the sync client and of the heartbeat thread. Safe in threads and after a fork."""

    def __init__(
        self, endpoint: Endpoint, options: QueueOptions, *, own: bool = False, timeout: float | None = None
    ) -> None:
        super().__init__(Session(options, endpoint.where), endpoint.patience)
        self._address = endpoint.address
        self._moves = endpoint.address.moves
        self._own = own or endpoint.client is None or endpoint.own
        if not self._own:
            endpoint.require(asynchronous=False)
        self._client: Any = endpoint.blocking(timeout) if self._own else endpoint.client
        patience = self._client.connection_pool.connection_kwargs.get("socket_timeout") or CALL_TIMEOUT
        self._longest_block = patience / 2
        self._blocks = False
        if self._own:
            self._address.watch(self)

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
        if self._moves != self._address.moves:
            self._moves = self._address.moves
            self._drop_stale(in_use=False)
        try:
            return self._client.execute_command(*parts, NEVER_DECODE=True)
        except Exception as error:
            if self._moves != self._address.moves and not is_lost(error):
                raise ConnectionLost(f"the primary at {self.session.where} has moved") from error
            self._address.observe(error, self._moves)
            raise

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.session.closed = True
        if self._own:
            self._client.close()
