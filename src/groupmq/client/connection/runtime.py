"""The part of a connection that depends on the event loops in which it is used."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.function_client import FunctionClient
from groupmq.client.connection.locating import Locator
from groupmq.core.errors import ConfigurationError
from groupmq.runtime.loops import this_process


class ConnectionRuntime(FunctionClient):
    """The connection of a queue object in any number of event loops, each with its own client."""

    _users: tuple[asyncio.AbstractEventLoop, object] | None = None
    """Where the user's own client is in use: event loop and process."""

    def _require_kind(self, endpoint: Endpoint) -> None:
        endpoint.require(asynchronous=True)

    def _claim(self, client: Any) -> None:
        """Claim the user's own client for this event loop. Raises if it is still connected in another one."""
        here = asyncio.get_running_loop(), this_process()
        if self._users not in (None, here) and _has_connections(client):
            raise ConfigurationError(
                "redis: this client belongs to the event loop and process that used it first; give the Queue a "
                "URL, so that it can connect wherever it is used, or make a client and a Queue there"
            )
        self._users = here

    def _locator_of(self, endpoint: Endpoint) -> Locator | None:
        return endpoint.locator

    def _sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        return asyncio.sleep(seconds)


def _has_connections(client: Any) -> bool:
    """Whether a client has open connections; one without any can go on in another event loop."""
    pool = client.connection_pool
    both = (*getattr(pool, "_available_connections", ()), *getattr(pool, "_in_use_connections", ()))
    return any(connection.is_connected for connection in both)
