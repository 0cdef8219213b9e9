"""Sentinel and clusters over TLS: the sentinels or nodes that are asked for the address, and the servers themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from groupmq import Queue
from groupmq.errors import ConnectionLost
from groupmq.sync import Queue as SyncQueue
from tests.support.certificates import make_certificate
from tests.support.clusters import Cluster
from tests.support.sentinels import SERVICE, SentinelServer
from tests.support.servers import Server, available_kinds, free_port
from tests.support.waiting import eventually, wait_until

pytestmark = pytest.mark.skipif(
    "redis" not in available_kinds() or shutil.which("openssl") is None,
    reason="needs Debian's redis-server (the embedded Valkey is built without TLS) and openssl",
)


def encrypted(folder: Path) -> dict[str, Any]:
    key, cert = make_certificate(folder, "server")
    return {"tls-cert-file": cert, "tls-key-file": key, "tls-ca-cert-file": cert, "tls-auth-clients": "no"}


class EncryptedSentinel(SentinelServer):
    """A sentinel that uses TLS and watches the TLS port of a server."""

    def __init__(self, primary: Server, config: dict[str, Any], watched: int) -> None:
        super().__init__("redis", primary)
        self._primary, self._config, self.tls_port = watched, config, free_port()

    def _lines(self) -> list[str]:
        given = {**self._config, "tls-port": self.tls_port, "tls-replication": "yes"}
        return [*(f"{name} {value}" for name, value in given.items()), *super()._lines()]


async def test_a_service_of_sentinel_is_reached_by_tls_alone(tmp_path: Path) -> None:
    config, tls_port = encrypted(tmp_path), free_port()
    server = Server.start("redis", config={**config, "tls-port": tls_port})
    sentinel = EncryptedSentinel(server, config, tls_port)
    try:
        sentinel._start_on_free_port()
        nodes = f"127.0.0.1:{sentinel.tls_port}"
        url = f"rediss+sentinel://{nodes}/{SERVICE}?ssl_ca_certs={config['tls-ca-cert-file']}"
        async with Queue("orders", url) as queue:
            await queue.add(1)
            assert queue.address == f"rediss+sentinel://{nodes}/{SERVICE}"
        with SyncQueue("orders", url) as blocking:
            assert blocking.get_waiting_count() == 1
        stranger = Queue.attach("orders", f"rediss+sentinel://{nodes}/{SERVICE}", patience=0.0)

        async def is_told_why() -> bool:
            """Whether the error names the certificate. On a busy machine a sentinel may time out before that check."""
            with pytest.raises(ConnectionLost) as caught:
                await stranger.get_waiting_count()
            return "certificate" in str(caught.value)

        await eventually(is_told_why, "the certificate is refused", 30)
        await stranger.close()
    finally:
        sentinel.stop()
        server.stop()


async def test_a_cluster_is_reached_by_tls(tmp_path: Path) -> None:
    config = encrypted(tmp_path) | {"tls-cluster": "yes", "tls-replication": "yes"}
    with Cluster("redis", **config) as cluster:
        nodes = ",".join(f"127.0.0.1:{node.option('tls-port')}" for node in cluster.nodes)
        url = f"rediss+cluster://{nodes}?ssl_ca_certs={config['tls-ca-cert-file']}"
        for name in ("orders", "mails", "b"):
            async with Queue(name, url) as queue:
                await queue.add(1)
            with SyncQueue(name, url) as blocking:
                assert blocking.get_waiting_count() == 1
        wait_until(lambda: len(SyncQueue.list(url)) == 3, "all queues are listed")
