"""A primary, its replicas and three sentinels as real processes, with failovers that tests trigger."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import redis

from tests.support.servers import Kind, Server
from tests.support.waiting import wait_until

SERVICE = "mymaster"
# Replicas synchronise at once, and failovers may follow each other quickly.
REPLICATION = {"repl-diskless-sync-delay": 0, "repl-diskless-sync": "yes", "repl-ping-replica-period": 1}
_DOWN_AFTER_MS, _FAILOVER_TIMEOUT_MS = 500, 3000


class SentinelServer(Server):
    """One sentinel. It keeps its state in its configuration file."""

    def __init__(self, kind: Kind, primary: Server, *, password: str = "", server_password: str = "") -> None:
        super().__init__(kind, {})
        self._primary = primary.port
        self.password, self._server_password = password, server_password

    @classmethod
    def watching(cls, primary: Server, **passwords: str) -> Self:
        sentinel = cls(primary.kind, primary, **passwords)
        sentinel._start_on_free_port()
        return sentinel

    def _command(self) -> list[str]:
        config = self.dir / "sentinel.conf"
        if not config.exists() or f"port {self.port}\n" not in config.read_text():
            config.write_text("\n".join((*self._lines(), "")))
        return [super()._command()[0], str(config), "--sentinel"]

    def _lines(self) -> list[str]:
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"unixsocket {self.socket_path}",
            f"dir {self.dir}",
            f"sentinel monitor {SERVICE} 127.0.0.1 {self._primary} 2",
            f"sentinel down-after-milliseconds {SERVICE} {_DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} {_FAILOVER_TIMEOUT_MS}",
        ]
        if self._server_password:
            lines.append(f"sentinel auth-pass {SERVICE} {self._server_password}")
        if self.password:
            lines += [f"requirepass {self.password}", f"sentinel sentinel-pass {self.password}"]
        return lines


class Sentinels:
    """Servers of one service, watched by three sentinels.

    Example:
        with Sentinels("valkey") as service:
            use(service.url)
            service.kill_primary()
            service.heal()
    """

    def __init__(self, kind: Kind, *, replicas: int = 1, password: str = "", sentinel_password: str = "") -> None:
        self.kind, self.password, self.sentinel_password = kind, password, sentinel_password
        options: dict[str, Any] = dict(REPLICATION)
        if password:
            options |= {"requirepass": password, "masterauth": password}
        self.servers: list[Server] = []
        self.sentinels: list[SentinelServer] = []
        try:
            self._start(options, replicas)
        except BaseException:
            self.stop()
            raise

    def _start(self, options: Mapping[str, object], replicas: int) -> None:
        self.servers += [Server.start(self.kind, config=options) for _ in range(replicas + 1)]
        primary, *others = self.servers
        for replica in others:
            with self.client(replica) as client:
                client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        self._await_links(primary)
        passwords = {"password": self.sentinel_password, "server_password": self.password}
        self.sentinels += [SentinelServer.watching(primary, **passwords) for _ in range(3)]
        wait_until(self._agree, "the sentinels know the service and each other", 30)

    @property
    def addresses(self) -> str:
        return ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)

    @property
    def url(self) -> str:
        return f"redis+sentinel://{self.addresses}/{SERVICE}/0"

    def client(self, server: Server) -> redis.Redis:
        return redis.Redis(port=server.port, password=self.password or None)

    def _ask(self, sentinel: SentinelServer, *command: object) -> Any:
        with redis.Redis(port=sentinel.port, password=self.sentinel_password or None) as client:
            client.response_callbacks.clear()
            return client.execute_command(*command, NEVER_DECODE=True)

    def _agree(self) -> bool:
        """Every sentinel knows the two others and every replica, and could start a failover."""
        return all(self._is_ready(sentinel) for sentinel in self.sentinels)

    def _is_ready(self, sentinel: SentinelServer) -> bool:
        try:
            self._ask(sentinel, "SENTINEL", "CKQUORUM", SERVICE)
            replicas = self._ask(sentinel, "SENTINEL", "REPLICAS", SERVICE)
            flags = [_fields(replica)["flags"] for replica in replicas]
            return len(flags) >= len(self.servers) - 1 and not any("down" in flag for flag in flags)
        except redis.exceptions.RedisError:
            return False

    def named(self) -> int:
        """The port of the primary that most sentinels name."""
        ports = []
        for sentinel in self.sentinels:
            reply = self._ask(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
            ports.append(int(reply[1]))
        return max(set(ports), key=ports.count)

    @property
    def primary(self) -> Server:
        return next(server for server in self.servers if server.port == self.named())

    @property
    def replicas(self) -> list[Server]:
        primary = self.primary
        return [server for server in self.servers if server is not primary]

    def replicated(self) -> None:
        """Wait until the replicas have everything that the primary has acknowledged before this call."""
        primary = self.primary
        offset = self._offset(primary)
        replicas = self.replicas
        wait_until(lambda: all(self._offset(r) >= offset for r in replicas), "the replicas have everything", 20)

    def _offset(self, server: Server) -> int:
        with self.client(server) as client:
            return int(client.info("replication")["master_repl_offset"])

    def kill_primary(self) -> Server:
        """Kill the primary with SIGKILL; a replica takes over within seconds."""
        primary = self.primary
        primary.kill()
        return primary

    def fail_over(self) -> Server:
        """Ask for a failover, after which the old primary is a replica. Returns once a new primary is named."""
        primary = self.primary
        wait_until(self._asked_for_failover, "a sentinel starts a failover", 20)
        wait_until(lambda: self.named() != primary.port, "a new primary is named", 20)
        return primary

    def demoted(self, server: Server) -> None:
        """Wait until an old primary is a replica. Until then it takes writes, which are lost when it becomes one."""
        wait_until(lambda: self._role(server) == "slave", "the old primary is a replica", 20)

    def _asked_for_failover(self) -> bool:
        try:
            self._ask(self.sentinels[0], "SENTINEL", "FAILOVER", SERVICE)
        except redis.exceptions.ResponseError:  # NOGOODSLAVE or INPROG: too soon after the last one
            return False
        return True

    def heal(self) -> None:
        """Restart dead processes and wait until everything is as at the start, except for which server is primary."""
        for server in (*self.servers, *self.sentinels):
            if not server.runs:
                server.restart()
        primary = self.primary
        wait_until(lambda: self._role(primary) == "master", "the new primary has the role of one", 20)
        self._await_links(primary)
        wait_until(self._agree, "the sentinels know the service and each other", 30)

    def _await_links(self, primary: Server) -> None:
        others = [server for server in self.servers if server is not primary]
        wait_until(lambda: all(self._follows(server, primary) for server in others), "the replicas follow", 40)

    def _follows(self, server: Server, primary: Server) -> bool:
        try:
            with self.client(server) as client:
                found = client.info("replication")
        except redis.exceptions.RedisError:
            return False
        return (found.get("master_port"), found.get("master_link_status")) == (primary.port, "up")

    def _role(self, server: Server) -> str:
        with self.client(server) as client:
            return str(client.info("replication")["role"])

    def stop(self) -> None:
        for server in (*self.sentinels, *self.servers):
            server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _fields(flat: list[bytes] | dict[bytes, bytes]) -> dict[str, str]:
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {name.decode(): value.decode() for name, value in pairs}
