"""Fixtures: real servers, queues on them, and the invariant check after every test that used one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from zlib import crc32

import pytest
import redis

from groupmq import Queue
from groupmq.core.ids import new_id
from tests.support import keyspace
from tests.support.clusters import ON_CLUSTER, ClusterServer
from tests.support.servers import Kind, Server, available_kinds

MakeQueue = Callable[..., Queue]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a cluster, skip tests that start their own servers, and those that are marked with a reason why they need a
    single one."""
    for item in items:
        for marker in item.iter_markers("one_server"):
            if not marker.args:
                raise pytest.UsageError(f'{item.nodeid}: one_server("...") must say why one server is needed')
    if ON_CLUSTER:
        items[:] = [item for item in items if _runs_on_cluster(item)]


def _runs_on_cluster(item: pytest.Item) -> bool:
    """Whether this test runs on a cluster of this kind. Each test runs on one kind only, about half of them on either:
    `make test` runs all of them on a single server of both kinds, and doing that here too would take twice as long."""
    if not isinstance(item, pytest.Function) or "session_server" not in item.fixturenames:
        return False
    if item.get_closest_marker("one_server") is not None:
        return False
    kinds = available_kinds()
    given = [mark for mark in item.iter_markers("parametrize") if "session_server" in mark.args[0]]
    chosen = kinds[crc32(item.function.__name__.encode()) % len(kinds)]
    return bool(given) or item.callspec.params["session_server"] == chosen


@pytest.fixture(scope="session", params=available_kinds())
def session_server(request: pytest.FixtureRequest) -> Iterator[Server | ClusterServer]:
    """One server of each kind for the whole run; or one cluster (`make test-on-cluster`)."""
    kind: Kind = request.param
    server = ClusterServer.start(kind) if ON_CLUSTER else Server.start(kind)
    yield server
    server.stop()


@pytest.fixture
def server(session_server: Server) -> Iterator[Server]:
    """An empty server. After the test every queue on it must be consistent."""
    client = session_server.client()
    client.flushall()
    yield session_server
    try:
        keyspace.check(client)
    finally:
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
