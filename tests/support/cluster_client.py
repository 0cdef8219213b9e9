"""A client that shows a cluster as if it were one server, for tests that look behind a queue's back.

A command with a key goes to the primary that has it. A command about a server (KEYS, INFO, CLIENT LIST, CONFIG SET)
goes to every primary, and the answers are added up: the keys that a test counts, or expects to be gone, may be on any
of them. The cluster client of redis-py asks only one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import redis
from redis.crc import key_slot

WIDE = frozenset(
    (
        *("ACL", "BGSAVE", "CLIENT", "CONFIG", "DBSIZE", "FLUSHALL", "FLUSHDB", "FUNCTION", "INFO", "KEYS", "PING"),
        *("SCRIPT", "SLOWLOG"),
    )
)
"""First words of commands about a server."""
LATER_KEYS = {"EVAL": 3, "EVALSHA": 3, "FCALL": 3, "FCALL_RO": 3}
"""The index of the first key, if it is not the first argument."""
EACH = ("DEL", "EXISTS", "UNLINK")
"""Commands with any number of keys, which may be on several primaries."""


class WholeCluster(redis.Redis):
    """The primaries of a cluster whose slots stay where they are."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(port=ports[0])
        self.nodes = [redis.Redis(port=port) for port in ports]
        found = _raw(ports[0], "CLUSTER SLOTS")
        self._slots = [(int(first), int(last), int(primary[1])) for first, last, primary, *_ in found]

    def execute_command(self, *args: Any, **options: Any) -> Any:
        first = str(args[0]).upper().split()[0]
        if first in EACH and len(args) > 2:
            return added_up([self.execute_command(args[0], key, **options) for key in args[1:]])
        nodes: list[Any]
        if first in WIDE:
            nodes = self.nodes
        elif first == "TIME":
            nodes = self.nodes[:1]  # they run on one machine
        else:
            nodes = [self.node_of(args[LATER_KEYS.get(first, 1)])]
        return added_up([node.execute_command(*args, **options) for node in nodes])

    def node_of(self, key: str | bytes) -> redis.Redis:
        """The primary that has a key, or a queue of that name."""
        slot = key_slot(key.encode() if isinstance(key, str) else key)
        port = next(port for first, last, port in self._slots if first <= slot <= last)
        return next(node for node in self.nodes if node.connection_pool.connection_kwargs["port"] == port)

    def scan_iter(self, *args: Any, **options: Any) -> Iterator[Any]:
        for node in self.nodes:
            yield from node.scan_iter(*args, **options)

    def pipeline(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("a pipeline goes to one node: use `node_of(client, queue).pipeline()`")

    def close(self) -> None:
        for node in self.nodes:
            node.close()
        super().close()


def nodes_of(client: redis.Redis) -> list[redis.Redis]:
    """All servers that a client reads."""
    return client.nodes if isinstance(client, WholeCluster) else [client]


def node_of(client: redis.Redis, queue: str) -> redis.Redis:
    """The server that has a queue."""
    return client.node_of(queue) if isinstance(client, WholeCluster) else client


def added_up(answers: Sequence[Any]) -> Any:
    """Merge the answers of all primaries: numbers are added, lists joined, tables added up field by field; otherwise
    the first answer counts."""
    first = answers[0]
    if len(answers) == 1:
        return first
    if isinstance(first, bool):
        return all(answers)
    if isinstance(first, int | float):
        return sum(answers)
    if isinstance(first, list):
        return [one for answer in answers for one in answer]
    if isinstance(first, dict):
        fields = {field: None for answer in answers for field in answer}
        return {field: added_up([answer[field] for answer in answers if field in answer]) for field in fields}
    return first


def _raw(port: int, *command: str) -> Any:
    with redis.Redis(port=port, protocol=2) as client:
        client.response_callbacks.clear()
        return client.execute_command(*command)
