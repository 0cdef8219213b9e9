"""The part of a connection that depends on the threads in which it is used."""

from __future__ import annotations

import time
from typing import Any

from groupmq.client.connection.blocking_locating import BlockingLocator
from groupmq.client.connection.endpoint import Endpoint
from groupmq.sync.connection.function_client import FunctionClient


class ConnectionRuntime(FunctionClient):
    """The connection of a queue object in any number of threads, and in forked processes."""

    def _require_kind(self, endpoint: Endpoint) -> None:
        endpoint.require(asynchronous=False)

    def _claim(self, client: Any) -> None:
        """Do nothing: a blocking client of the user's serves all threads, and reconnects in a forked process."""

    def _locator_of(self, endpoint: Endpoint) -> BlockingLocator | None:
        return endpoint.blocking_locator

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)
