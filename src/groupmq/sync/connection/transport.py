"""How the commands of a link reach the server: through sockets that block, for any number of threads."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.faults import ClosedHere, is_refusal
from groupmq.client.connection.located import stale
from groupmq.core.durability import Confirmation
from groupmq.core.errors import ConnectionLost
from groupmq.sync.connection.waiting_calls import WaitingCalls


class Transport:
    """A client of the library, and connections for calls of several commands."""

    def __init__(self, endpoint: Endpoint, *, own: bool) -> None:
        self._own = own
        self._where = endpoint.where
        self._address = endpoint.address
        self._client: Any = endpoint.blocking() if own else endpoint.client
        self._waits = WaitingCalls(self._client.connection_pool, self._address)
        self._renewing = threading.Lock()
        self._closings = 0

    def _bound(self, calls: int) -> contextlib.AbstractContextManager[None]:
        # No bound: each thread has one call under way at most, and does not wait for the call of another thread.
        return contextlib.nullcontext()

    def _send(self, parts: tuple[Any, ...], wait: Confirmation) -> Any:
        moves, closings = self._address.moves, self._closings
        try:
            if wait:
                return self._waits.execute(parts, *wait)
            return self._client.execute_command(*parts, NEVER_DECODE=True)
        except Exception as error:
            if closings != self._closings:
                raise ClosedHere from error
            if moves != self._address.moves and not is_refusal(error):
                # Another thread has dropped the connection, and the client library fails on the closed one in some way.
                raise ConnectionLost(f"the primary of {self._where} has moved") from error
            raise

    def _send_asking(self, parts: tuple[Any, ...]) -> Any:
        return self._waits.execute(("ASKING",), parts)[1]

    def interrupt(self) -> None:
        """End a blocking read of another thread."""
        self._closings += 1
        with contextlib.suppress(Exception):
            self._client.connection_pool.disconnect(inuse_connections=True)

    def _drop_soon(self) -> None:
        self._drop_stale(failover=True)

    def _drop_stale(self, *, failover: bool) -> None:
        for connection in stale(self._client.connection_pool, self._address.moves, in_use=failover):
            with contextlib.suppress(Exception):
                connection.disconnect()

    def _end(self) -> None:
        if self._own:
            self._closings += 1
            self._client.close()
            self._waits.close()
