"""Encrypted connections: queue, worker, heartbeat and wake-ups over TLS, and certificates of another authority are
refused."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import redis.asyncio

from groupmq import ConnectionLost, Job, Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.support import keyspace
from tests.support.certificates import make_certificate
from tests.support.servers import Server, available_kinds, free_port

pytestmark = pytest.mark.skipif(
    "redis" not in available_kinds() or shutil.which("openssl") is None,
    reason="needs Debian's redis-server (the embedded Valkey is built without TLS) and openssl",
)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path, Path]]:
    """A server that speaks TLS: its port, its certificate, and a certificate of another authority."""
    folder = tmp_path_factory.mktemp("tls")
    key, cert = make_certificate(folder, "server")
    _, stranger = make_certificate(folder, "stranger")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {"tls-port": port, "tls-cert-file": cert, "tls-key-file": key, "tls-auth-clients": "no"}
    server = Server.start("redis", config=config)
    yield port, cert, stranger
    with redis.Redis.from_url(server.unix_url) as plain:
        keyspace.check(plain)
    server.stop()


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
async def test_a_worker_works_over_tls(tls: tuple[int, Path, Path], scheme: str) -> None:
    port, cert, _ = tls
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)

    async with Queue(f"over-{scheme}", f"{scheme}://127.0.0.1:{port}?ssl_ca_certs={cert}") as queue:
        async with Worker(queue, handle, heartbeat=0.05) as worker:
            await queue.add_many([{"data": n, "group_id": "g"} for n in range(20)])
            assert await queue.wait_for_empty(timeout=20)
        assert worker.get_worker_metrics().connection_errors == 0
    assert seen == list(range(20))


async def test_a_worker_works_with_a_users_tls_client(tls: tuple[int, Path, Path]) -> None:
    port, cert, _ = tls
    client = redis.asyncio.Redis(host="127.0.0.1", port=port, ssl=True, ssl_ca_certs=str(cert))
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)

    async with Queue("users-client", client) as queue, Worker(queue, handle, heartbeat=0.05) as worker:
        await queue.add(1)
        assert await queue.wait_for_empty(timeout=20)
    assert (seen, worker.get_worker_metrics().connection_errors) == ([1], 0)
    await client.aclose()


def test_the_blocking_client_speaks_tls(tls: tuple[int, Path, Path]) -> None:
    port, cert, _ = tls
    with SyncQueue("blocking", f"rediss://127.0.0.1:{port}?ssl_ca_certs={cert}") as queue:
        assert queue.add(1).get_state() == "waiting"


async def test_a_certificate_of_somebody_else_is_refused(tls: tuple[int, Path, Path]) -> None:
    port, _, stranger = tls
    async with Queue("refused", f"rediss://127.0.0.1:{port}?ssl_ca_certs={stranger}") as queue:
        with pytest.raises(ConnectionLost, match=rf"rediss://127\.0\.0\.1:{port} cannot be reached"):
            await queue.add(1)


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path, tuple[Path, Path]]]:
    """A server that requires client certificates: its port, its certificate, and the key and certificate of a
    client."""
    folder = tmp_path_factory.mktemp("mutual")
    key, cert = make_certificate(folder, "server")
    client = make_certificate(folder, "client")
    port = free_port()
    config = {"tls-port": port, "tls-cert-file": cert, "tls-key-file": key, "tls-ca-cert-file": client[1]}
    server = Server.start("redis", config=config)
    yield port, cert, client
    with redis.Redis.from_url(server.unix_url) as plain:
        keyspace.check(plain)
    server.stop()


async def test_a_client_certificate_opens_the_door(mutual: tuple[int, Path, tuple[Path, Path]]) -> None:
    port, cert, (key, own) = mutual
    url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={cert}&ssl_certfile={own}&ssl_keyfile={key}"
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)

    async with Queue("mutual", url) as queue:
        async with Worker(queue, handle, heartbeat=0.05) as worker:
            job = await queue.add(1)
            await job.result(timeout=20)
        assert (seen, worker.get_worker_metrics().connection_errors) == ([1], 0)
    with SyncQueue("mutual", url) as blocking:
        assert blocking.add(2).get_state() == "waiting"


async def test_a_client_without_a_certificate_is_refused(
    mutual: tuple[int, Path, tuple[Path, Path]],
) -> None:
    port, cert, _ = mutual
    async with Queue("refused", f"rediss://127.0.0.1:{port}?ssl_ca_certs={cert}") as queue:
        with pytest.raises(ConnectionLost, match="cannot be reached"):
            await queue.add(1)
