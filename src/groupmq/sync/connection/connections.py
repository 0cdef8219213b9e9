"""The blocking connection: of the blocking client, and of a worker's heartbeat thread."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.faults import understood
from groupmq.client.connection.session import Session
from groupmq.core.options import QueueOptions
from groupmq.sync.connection.function_client import FunctionClient


class BlockingConnection(FunctionClient):
    """The blocking connection of the sync client and of the heartbeat thread. Safe in threads and after a fork."""

    def __init__(
        self, endpoint: Endpoint, options: QueueOptions, *, own: bool = False, timeout: float | None = None
    ) -> None:
        super().__init__(Session(options, endpoint.where))
        self._address = endpoint.address
        self._moves = endpoint.address.moves
        self._own = own or endpoint.client is None or endpoint.own
        if not self._own:
            endpoint.require(asynchronous=False)
        self._client: Any = endpoint.blocking(timeout) if self._own else endpoint.client
        patience = self._client.connection_pool.connection_kwargs.get("socket_timeout") or CALL_TIMEOUT
        self._longest_block = patience / 2

    def wait_for_mail(self, worker: str, timeout: float) -> bool:
        """Block until there is mail for a worker (True), or for some time, at most `timeout` (False)."""
        key = self.session.keys.mail(worker)
        try:
            block = min(timeout, self._longest_block)
            return self.execute("BZPOPMIN", key, block) is not None
        except Exception as error:
            raise understood(error, self.session.where) from error

    def interrupt(self) -> None:
        """End a blocking read of another thread."""
        with contextlib.suppress(Exception):
            self._client.connection_pool.disconnect(inuse_connections=True)

    def execute(self, *parts: Any) -> Any:
        if self._moves != self._address.moves:
            self._moves = self._address.moves
            with contextlib.suppress(Exception):
                self._client.connection_pool.disconnect(inuse_connections=False)
        try:
            return self._client.execute_command(*parts, NEVER_DECODE=True)
        except Exception as error:
            self._address.observe(error)
            raise

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.session.closed = True
        if self._own:
            self._client.close()
