"""A topology with three primaries and three replicas: failovers that lose nothing, and slots that move.

A failover by kill -9 loses writes that were not replicated, the event log included; `tests/chaos/failovers.py` measures
that loss separately. The faults here are those that an operator requests from a working cluster: CLUSTER FAILOVER,
which lets the replica catch up first, and moving the slot of a queue, key by key or, on Valkey 9, atomically.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import redis
import redis.cluster

from tests.chaos.cast import QUEUES, tags_of
from tests.chaos.schedule import Fault
from tests.chaos.topology import Topology, waited_of
from tests.support.clusters import Cluster
from tests.support.servers import Kind, Server

TAGS = [tag for role in QUEUES for tag in tags_of(role.name)]
"""All hash tags; each has a slot that can move."""


class ClusterServers(Topology):
    NAMES = frozenset(("functions", "scripts", "clients", "failover", "move"))
    HAS_WIRES = False

    def __init__(self, kind: Kind) -> None:
        slow = {"slowlog-log-slower-than": 5000, "slowlog-max-len": 512}
        self._cluster = Cluster(kind, primaries=3, replicas=1, **slow)
        self._moves = 0

    @property
    def url(self) -> str:
        return self._cluster.url

    @property
    def port(self) -> int:
        return self._cluster.nodes[0].port

    def strike(self, fault: Fault) -> Callable[[], None] | None:
        tag = TAGS[int(fault.amount * len(TAGS)) % len(TAGS)]
        owner = self._cluster.owner(tag)
        match fault.kind:
            case "failover":
                self._cluster.fail_over(owner)
                self._cluster.wait_for_owner(tag, owner)
            case "move":
                self._move(tag, owner)
            case "functions":
                self._command(owner, "FUNCTION", "FLUSH")
            case "scripts":
                self._command(owner, "SCRIPT", "FLUSH")
            case "clients":
                self._command(owner, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        return None

    def _move(self, tag: str, owner: Server) -> None:
        target = self._cluster.other_than(owner)
        self._moves += 1
        if self._cluster.kind == "valkey" and self._moves % 2:
            self._cluster.move_atomically(tag, target)
        else:
            self._cluster.move(tag, target)
            self._cluster.wait_for_owner(tag, owner)

    def _command(self, node: Server, *words: str) -> None:
        with contextlib.suppress(redis.RedisError), node.client() as client:
            c: Any = client
            c.execute_command(*words)

    def heal(self) -> None:
        """Nothing to do: no fault of a cluster lasts."""

    def client(self) -> redis.Redis:
        """A client that reads keys of any slot."""
        client: Any = redis.cluster.RedisCluster.from_url(self._cluster.running[0].url)
        return client  # type: ignore[no-any-return]

    def nodes(self) -> list[redis.Redis]:
        ports = {entry[2][1] for entry in self._cluster.slots(self._cluster.running[0])}
        return [redis.Redis(port=port, socket_timeout=30) for port in sorted(ports)]

    def waited(self) -> float:
        return sum(waited_of(node) for node in self._cluster.running)

    def versions(self) -> dict[str, str]:
        with redis.Redis(port=self.port) as client:
            c: Any = client
            info = c.info("server")
        name = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
        return {"server": f"{name}, a cluster of 3 primaries and 3 replicas"}

    def stop(self) -> None:
        self._cluster.stop()
