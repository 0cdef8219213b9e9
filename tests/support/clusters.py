"""Real clusters, set up with plain commands, that tests can fail over, reshard and freeze."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import redis
from redis.crc import key_slot

from tests.support.cluster_client import WholeCluster
from tests.support.servers import Kind, Server, free_port
from tests.support.waiting import wait_until

ON_CLUSTER = os.environ.get("GROUPMQ_TEST_SERVER") == "cluster"
"""Whether tests that ask for a server get a cluster."""
SLOTS = 16384
PRIMARIES = 3
CONFIG: dict[str, object] = {
    "cluster-enabled": "yes",
    "cluster-node-timeout": 1000,
    "cluster-replica-validity-factor": 0,
    "cluster-allow-replica-migration": "no",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": 0,
    "repl-ping-replica-period": 1,
}


def start_node(kind: Kind, **config: object) -> Server:
    if "tls-cluster" in config:
        config["tls-port"] = free_port()
    return Server.start(kind, config={**CONFIG, "cluster-port": free_port(), **config})


def run(node: Server, *command: object) -> Any:
    """Execute a command and return the raw reply."""
    with redis.Redis(port=node.port, protocol=2) as client:
        client.response_callbacks.clear()
        return client.execute_command(*command, NEVER_DECODE=True)


class Cluster:
    """Primaries, each with the given number of replicas.

    Example:
        with Cluster("valkey", primaries=3, replicas=1) as cluster:
            use(cluster.url)
            cluster.owner("orders").kill()
    """

    def __init__(self, kind: Kind, *, primaries: int = 3, replicas: int = 0, **config: object) -> None:
        self.kind, self._config = kind, config
        self.nodes: list[Server] = []
        try:
            for _ in range(primaries * (1 + replicas)):
                self.nodes.append(self._start_node())
            self._join(primaries)
        except BaseException:
            self.stop()
            raise

    def _start_node(self) -> Server:
        return start_node(self.kind, **self._config)

    def _join(self, primaries: int) -> None:
        first, *others = self.nodes
        for epoch, node in enumerate(self.nodes, 1):
            run(node, "CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for node in others:
            self.meet(node, first)
        share = SLOTS // primaries
        for at, node in enumerate(self.nodes[:primaries]):
            last = SLOTS - 1 if at == primaries - 1 else (at + 1) * share - 1
            run(node, "CLUSTER", "ADDSLOTSRANGE", at * share, last)
        wait_until(lambda: all(self.is_ok(node) for node in self.nodes), "the nodes have met", 30)
        for at, replica in enumerate(self.nodes[primaries:]):
            run(replica, "CLUSTER", "REPLICATE", self.id_of(self.nodes[at % primaries]))
        wait_until(lambda: all(self.is_linked(replica) for replica in self.nodes[primaries:]), "replicas follow", 30)
        wait_until(self._agree, "every node knows every replica", 30)

    def meet(self, node: Server, other: Server) -> None:
        port = other.option("tls-port") or other.port
        run(node, "CLUSTER", "MEET", "127.0.0.1", port, other.option("cluster-port"))

    def add_node(self) -> Server:
        """A new primary without slots."""
        node = self._start_node()
        self.nodes.append(node)
        self.meet(node, self.nodes[0])
        wait_until(lambda: all(self.is_ok(one) for one in self.nodes if one.runs), "all know the new node", 30)
        return node

    def remove_node(self, node: Server) -> None:
        """Remove a node that no longer owns a slot from the cluster, and stop it."""
        gone = self.id_of(node)
        self.nodes.remove(node)
        for other in self.nodes:
            if other.runs:
                run(other, "CLUSTER", "FORGET", gone)
        node.stop()

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes[:3])}"

    @property
    def running(self) -> list[Server]:
        return [node for node in self.nodes if node.runs]

    def id_of(self, node: Server) -> str:
        return str(run(node, "CLUSTER", "MYID").decode())

    def is_ok(self, node: Server) -> bool:
        info = run(node, "CLUSTER", "INFO").decode()
        return "cluster_state:ok" in info and f"cluster_known_nodes:{len(self.nodes)}" in info

    def is_linked(self, node: Server) -> bool:
        info = run(node, "INFO", "replication").decode()
        return "role:slave" in info and "master_link_status:up" in info

    def _agree(self) -> bool:
        views = [sorted((r[0], r[1], sorted(n[1] for n in r[2:])) for r in self.slots(node)) for node in self.nodes]
        return all(view == views[0] for view in views)

    def slots(self, node: Server) -> list[Any]:
        found: list[Any] = run(node, "CLUSTER", "SLOTS")
        return found

    def owner(self, queue: str, *, seen_by: Server | None = None) -> Server:
        """The primary of a queue's slot, as one node sees it. During a failover a node may see none for a time."""
        found: list[Server] = []

        def listed() -> bool:
            found.extend(self.owners(queue, seen_by or self.running[0]))
            return bool(found)

        wait_until(listed, f"a primary owns the slot of {queue}", 20)
        return found[0]

    def owners(self, queue: str, seen_by: Server) -> list[Server]:
        """The primary of a queue's slot as a node sees it now, in a list that is empty if it sees none."""
        slot = slot_of(queue)
        return [self.node_at(first[1]) for start, end, first, *_ in self.slots(seen_by) if start <= slot <= end]

    def node_at(self, port: int) -> Server:
        return next(node for node in self.nodes if node.port == port)

    def replica_of(self, primary: Server) -> Server:
        """The replica of a primary. After a failover a node lists the new replica a moment after the new primary."""
        found: list[Server] = []

        def listed() -> bool:
            for _, _, first, *others in self.slots(self.running[0]):
                if self.node_at(first[1]) is primary and others:
                    found.append(self.node_at(others[0][1]))
            return bool(found)

        wait_until(listed, "the primary has a replica", 20)
        return found[0]

    def other_than(self, node: Server) -> Server:
        """Another primary."""
        primaries = [self.node_at(entry[2][1]) for entry in self.slots(self.running[0])]
        return next(primary for primary in primaries if primary is not node)

    def replicated(self, primary: Server) -> None:
        """Wait until the replica has everything that the primary has acknowledged before this call."""
        replica = self.replica_of(primary)
        offset = _offset(primary)
        wait_until(lambda: _offset(replica) >= offset, "the replica has everything", 20)

    def fail_over(self, primary: Server) -> Server:
        """CLUSTER FAILOVER: primary and replica swap roles without losing anything."""
        replica = self.replica_of(primary)
        wait_until(lambda: self.is_linked(replica), "the replica follows its primary", 20)
        asked_at = -math.inf

        def promoted() -> bool:
            nonlocal asked_at
            if _role(replica) == "master":
                return True
            # A server gives up silently after 5 s, if it did not get all votes or all data in time.
            if time.monotonic() - asked_at > 7:
                asked_at = time.monotonic()
                run(replica, "CLUSTER", "FAILOVER")
            return False

        wait_until(promoted, "the replica is promoted", 40)
        return replica

    def wait_for_owner(self, queue: str, other_than: Server) -> Server:
        """Wait until all nodes see a new owner of a queue's slot."""

        def moved() -> bool:
            views = [self.owners(queue, node) for node in self.running]
            return all(view == views[0] for view in views) and views[0] not in ([], [other_than])

        wait_until(moved, "the slot has a new owner", 30)
        return self.owner(queue)

    # Moving a slot

    def move(self, queue: str, target: Server) -> None:
        """Move a queue's slot key by key."""
        with self.moving(queue, target) as move:
            move.keys(move.remaining())

    @contextlib.contextmanager
    def moving(self, queue: str, target: Server) -> Iterator[Move]:
        """Begin to move a queue's slot key by key. The move is completed at the end of the context."""
        move = Move(self, queue, target)
        move.begin()
        yield move
        move.keys(move.remaining())
        move.end()

    def move_atomically(self, queue: str, target: Server) -> None:
        """Move a queue's slot with MIGRATESLOTS of Valkey 9."""
        source, slot = self.owner(queue), slot_of(queue)
        run(source, "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", self.id_of(target))
        self.wait_for_owner(queue, source)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class ClusterServer(Server):
    """A cluster of three primaries, each with a replica, in place of the single server of a test."""

    def __init__(self, cluster: Cluster) -> None:
        first = cluster.nodes[0]
        self.kind, self.dir, self.socket_path, self.port = first.kind, first.dir, first.socket_path, first.port
        self._cluster = cluster

    @classmethod
    def start(cls, kind: Kind = "valkey", **_: Any) -> Self:
        return cls(Cluster(kind, primaries=PRIMARIES, replicas=1))

    @property
    def url(self) -> str:
        return self._cluster.url

    def client(self) -> redis.Redis:
        return WholeCluster([node.port for node in self._cluster.nodes[:PRIMARIES]])

    def stop(self) -> None:
        self._cluster.stop()


class Move:
    """One slot that is being moved; the test decides how far."""

    def __init__(self, cluster: Cluster, queue: str, target: Server) -> None:
        self._cluster, self._slot = cluster, slot_of(queue)
        self.source, self.target = cluster.owner(queue), target

    def begin(self) -> None:
        source, target = self._cluster.id_of(self.source), self._cluster.id_of(self.target)
        run(self.target, "CLUSTER", "SETSLOT", self._slot, "IMPORTING", source)
        run(self.source, "CLUSTER", "SETSLOT", self._slot, "MIGRATING", target)

    def remaining(self) -> list[bytes]:
        """Keys that are still at the source."""
        found: list[bytes] = run(self.source, "CLUSTER", "GETKEYSINSLOT", self._slot, 100_000)
        return sorted(found)

    def arrived(self) -> list[bytes]:
        """Keys that are already at the target."""
        found: list[bytes] = run(self.target, "CLUSTER", "GETKEYSINSLOT", self._slot, 100_000)
        return sorted(found)

    def keys(self, keys: Sequence[bytes]) -> None:
        """Move these keys. A key that no longer exists is skipped."""
        for key in keys:
            run(self.source, "MIGRATE", "127.0.0.1", self.target.port, key, 0, 5000)

    def end(self) -> None:
        while rest := self.remaining():
            self.keys(rest)
        target = self._cluster.id_of(self.target)
        run(self.target, "CLUSTER", "SETSLOT", self._slot, "NODE", target)
        run(self.source, "CLUSTER", "SETSLOT", self._slot, "NODE", target)
        for node in self._cluster.running:
            if _role(node) == "master":
                run(node, "CLUSTER", "SETSLOT", self._slot, "NODE", target)


def slot_of(queue: str) -> int:
    return int(key_slot(queue.encode()))


def _offset(node: Server) -> int:
    return int(_replication(node)["master_repl_offset"])


def _role(node: Server) -> str:
    return _replication(node)["role"]


def _replication(node: Server) -> dict[str, str]:
    lines = run(node, "INFO", "replication").decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
