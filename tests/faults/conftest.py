"""Separate servers for a test to kill, freeze and fill up. Their queues must be consistent at the end of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from tests.support import keyspace
from tests.support.servers import Server

StartServer = Callable[..., Server]


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Starts servers that are stopped after the test, once every queue on them has been checked."""
    started: list[Server] = []

    def start(*args: Any, **options: Any) -> Server:
        server = Server.start(*args, **options)
        started.append(server)
        return server

    yield start
    try:
        for server in started:
            with redis.Redis.from_url(server.url) as client:
                keyspace.check(client)
    finally:
        for server in started:
            server.stop()
