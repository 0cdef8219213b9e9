"""Partitions: copies the queue into a partition beside it, compares that, and removes it. The queue must not change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import redis

from groupmq.client.connection.endpoint import Endpoint
from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands
from groupmq.protocol.call import Call
from groupmq.sync.connection.connections import BlockingConnection
from tests.model.model import Model
from tests.model.pair import same
from tests.support import meta

COPY = "copy"
FOLLOWED = ("conf", "blocked", "breakers")
"""Keys whose existence is recorded as flags in the numbers."""
KEPT = ("attempts", "loose", "large", "uniques")
"""Flags that the model does not have and that must not get lost: calls would overlook the data they stand for."""


class Partition:
    """A partition beside the queue, used only through functions that do not need an open queue."""

    def __init__(self, client: Any, model: Model) -> None:
        self._client = client
        self._connection = BlockingConnection(Endpoint(client), replace(model.options, name=COPY))
        self.keys = self._connection.session.keys

    def call(self, call: Call[Any]) -> Any:
        return self._connection.call_closed(call)

    def numbers(self) -> dict[str, str]:
        return meta.numbers(self._client.hget(self.keys.meta, "numbers"))

    def remove(self) -> None:
        self._client.unlink(*(self.keys.fixed(name) for name in ("meta", "elsewhere", *FOLLOWED)))


def compare_settings(client: redis.Redis, model: Model, queue: BlockingConnection, was: StoredQueue) -> None:
    """`was`: settings that the queue had before the last change."""
    made = Partition(client, model)
    try:
        is_updated_once(queue, made, was)
        forgets_what_is_as_it_was_read(client, made)
    finally:
        made.remove()


def compare_numbers(client: redis.Redis, model: Model, queue: BlockingConnection) -> None:
    made = Partition(client, model)
    try:
        made.call(commands.open_partition(COPY, queue.call(commands.look_at_queue(), patience=0)))
        goes_on_from(client, model, queue, made)
    finally:
        made.remove()


def is_updated_once(queue: BlockingConnection, made: Partition, was: StoredQueue) -> None:
    """Settings replace those of a partition only if they are as they were read, and never create a partition that is
    gone. A new partition is not in use."""
    name, now = COPY, queue.call(commands.look_at_queue(), patience=0)
    old, other, new = was._replace(revision=b"1"), now._replace(revision=b"2"), was._replace(revision=b"0")
    same(queue.call(commands.open_partition(name, old, was), patience=0), now)
    same(made.call(commands.open_partition(name, now, old._replace(revision=b""))).schema, None)
    same(made.call(commands.open_partition(name, old)), new)
    same(made.call(commands.open_partition(name, other)), new)
    same(made.call(commands.open_partition(name, old, new)), old)
    same(made.call(commands.open_partition(name, now, old)), now)
    same(made.call(commands.open_partition(name, other, old)), now)


def goes_on_from(client: Any, model: Model, queue: BlockingConnection, made: Partition) -> None:
    """A new partition knows the data copied to it and gives no number twice, whatever the order of the copied parts."""
    keys, stored = queue.session.keys, queue.call(commands.look_at_queue(), patience=0)
    raw, empty = client.hget(keys.meta, "numbers"), client.hget(made.keys.meta, "numbers")
    before = meta.numbers(raw)
    for name in FOLLOWED:
        client.copy(keys.fixed(name), made.keys.fixed(name), replace=True)
    for parts in ([raw, empty], [empty, raw]):
        made.call(commands.absorb(parts, COPY, stored))
        found = made.numbers()
        for name, number in {
            "seq": model.arrivals,
            "stamp": model.stamp,
            "order": model.order,
            "epoch": model.turns_begun,
            "limit": model.options.group_concurrency,
            "paused": model.paused,
            "ttls": model.had_ttl,
            "progress": model.had_progress,
            "overrides": bool(model.conf),
            "blocks": bool(model.blocked),
            "breakers": bool(model.breakers),
        }.items():
            same((name, found.get(name, "0")), (name, str(int(number))))
        for name in (*KEPT, "due", "repeat_at", "spared"):
            same((name, found.get(name)), (name, before.get(name)))


def forgets_what_is_as_it_was_read(client: Any, made: Partition) -> None:
    key = made.keys.elsewhere
    client.hset(key, mapping={"gone": "5 1", "back": "5 2"})
    same(made.call(commands.strike(["gone", "back", "never"], ["5 1", "5 1", "5 1"])), 1)
    same(client.hgetall(key), {b"back": b"5 2"})
