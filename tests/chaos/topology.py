"""The servers of a run: one server here, a cluster in `cluster.py`.

A topology knows the URL of the queues, which server faults it supports, and how to read all of its data. The checker
learns of its faults from the history.
"""

from __future__ import annotations

import contextlib
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import redis

from tests.chaos.schedule import Fault
from tests.support.servers import Kind, Server

Later = Callable[[float, Callable[[], None]], None]
"""Call a function after this many seconds."""


def waited_of(server: Server) -> float:
    """Seconds for which a server was runnable but had no processor; 0 while it is down."""
    try:
        return int(Path(f"/proc/{server.pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, RuntimeError):
        return 0.0


def stolen() -> float:
    """Seconds for which the host of a virtual machine took its processors away, of all of them together."""
    try:
        ticks = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    except (OSError, IndexError):
        return 0.0
    return ticks / os.sysconf("SC_CLK_TCK")


class Topology(ABC):
    NAMES: ClassVar[frozenset[str]] = frozenset()
    """Kinds of faults that strike the servers themselves."""
    HAS_WIRES: ClassVar[bool] = True
    """Whether processes connect through network wires that can be cut. Clients of a cluster connect to its nodes."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL of the queues without a faulty network wire in between."""

    @property
    @abstractmethod
    def port(self) -> int:
        """The port that network wires forward to."""

    @abstractmethod
    def strike(self, fault: Fault) -> Callable[[], None] | None:
        """Begin a fault. Returns a function that ends it, to be called after its length; None if it does not last."""

    @abstractmethod
    def heal(self) -> None:
        """End all faults. Everything works afterwards."""

    @abstractmethod
    def client(self) -> redis.Redis:
        """A plain client for inspecting the data."""

    def nodes(self) -> list[redis.Redis]:
        """Plain clients of all servers with keys of their own. Between two faults a queue is on one of them."""
        return [self.client()]

    @abstractmethod
    def waited(self) -> float:
        """Seconds that the servers have waited for a processor since they started. Decreases after a restart."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """The version of the server."""

    @abstractmethod
    def stop(self) -> None: ...


class SingleServer(Topology):
    """One server that writes every change to disk before it answers."""

    NAMES = frozenset(("functions", "scripts", "clients", "stop", "restart", "memory"))

    def __init__(self, kind: Kind) -> None:
        self._server = Server.start(kind, aof=True, config={"slowlog-log-slower-than": 5000, "slowlog-max-len": 512})
        self._down = False

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def port(self) -> int:
        return self._server.port

    def strike(self, fault: Fault) -> Callable[[], None] | None:
        match fault.kind:
            case "stop":
                self._server.pause()
                return self._server.resume
            case "restart":
                self._server.kill()
                self._down = True
                return self._up
            case "memory":
                self._command("CONFIG", "SET", "maxmemory", "1")
                return lambda: self._command("CONFIG", "SET", "maxmemory", "0")
            case "functions":
                self._command("FUNCTION", "FLUSH")
            case "scripts":
                self._command("SCRIPT", "FLUSH")
            case "clients":
                self._drop_clients(fault.amount)
        return None

    def _up(self) -> None:
        if self._down:
            self._server.restart()
            self._down = False

    def _drop_clients(self, share: float) -> None:
        """Drop about that share of the connections, including blocked ones."""
        with contextlib.suppress(redis.RedisError), self.client() as client:
            c: Any = client
            connections = c.client_list()
            for n, connection in enumerate(connections):
                if n < share * len(connections):
                    with contextlib.suppress(redis.RedisError):
                        c.execute_command("CLIENT", "KILL", "ID", connection["id"], "SKIPME", "yes")

    def _command(self, *words: str) -> None:
        """Best effort: the server may be down because of another fault."""
        with contextlib.suppress(redis.RedisError), self.client() as client:
            c: Any = client
            c.execute_command(*words)

    def heal(self) -> None:
        self._up()
        self._server.resume()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(redis.RedisError), self.client() as client:
                c: Any = client
                c.config_set("maxmemory", "0")
                return
        raise AssertionError("the server did not come back")

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self._server.unix_url, socket_timeout=30)

    def waited(self) -> float:
        return waited_of(self._server)

    def versions(self) -> dict[str, str]:
        with self.client() as client:
            c: Any = client
            info = c.info("server")
        if "valkey_version" in info:
            return {"server": f"Valkey {info['valkey_version']}"}
        return {"server": f"Redis {info['redis_version']}"}

    def stop(self) -> None:
        self._server.stop()
