"""The part of a connection that depends on the threads in which it is used."""

from __future__ import annotations

import time
from typing import Any

from groupmq.client.connection.blocking_finding import BlockingFinder
from groupmq.client.connection.endpoint import Endpoint
from groupmq.sync.connection.function_client import FunctionClient


class ConnectionRuntime(FunctionClient):
    """The connection of a queue object in any number of threads, and in forked processes."""

    def _require_kind(self, endpoint: Endpoint) -> None:
        endpoint.require(asynchronous=False)

    def _claim(self, client: Any) -> None:
        """Do nothing: a blocking client of the user's serves all threads, and reconnects in a forked process."""

    def _finder_of(self, endpoint: Endpoint) -> BlockingFinder | None:
        return endpoint.blocking_finder

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)
