"""Fixtures: real servers, queues on them, and the invariant check after every test that used one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import redis

from groupmq import Queue
from groupmq.core.ids import new_id
from tests.support import keyspace
from tests.support.clusters import ON_CLUSTER, ClusterServer
from tests.support.servers import Kind, Server, available_kinds

MakeQueue = Callable[..., Queue]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a cluster, leave out what looks at one server."""
    if ON_CLUSTER:
        items[:] = [item for item in items if item.get_closest_marker("one_server") is None]


@pytest.fixture(scope="session", params=available_kinds())
def session_server(request: pytest.FixtureRequest) -> Iterator[Server | ClusterServer]:
    """One server of each kind for the whole run; or one cluster (`make test-cluster`)."""
    kind: Kind = request.param
    server = ClusterServer.start(kind) if ON_CLUSTER else Server.start(kind)
    yield server
    server.stop()


@pytest.fixture
def server(session_server: Server) -> Iterator[Server]:
    """An empty server. After the test every queue on it must be consistent."""
    clients = [redis.Redis.from_url(url) for url in session_server.node_urls]
    for client in clients:
        client.flushall()
    yield session_server
    try:
        for client in clients:
            keyspace.check(client)
    finally:
        for client in clients:
            client.flushall()
            client.script_flush()
            client.close()


@pytest.fixture
def url(server: Server) -> str:
    return server.url


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    """A plain client, for looking at the server behind the queue's back."""
    client = server.client()
    yield client
    client.close()


@pytest.fixture
async def make_queue(url: str) -> AsyncIterator[MakeQueue]:
    """Makes queues with a fresh name on the test's server; they are closed at the end."""
    made: list[Queue] = []

    def make(name: str | None = None, **options: Any) -> Queue:
        queue = Queue(name or f"q-{new_id()}", options.pop("redis", url), **options)
        made.append(queue)
        return queue

    yield make
    for queue in made:
        await queue.close()


@pytest.fixture
async def queue(make_queue: MakeQueue) -> Queue:
    """A queue with default settings."""
    return make_queue()
