"""The access rules of docs/security.md in a cluster and behind Sentinel, with the additional rules of its note only."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any

import pytest
import redis

from groupmq import Queue, Worker
from tests.support.clusters import Cluster
from tests.support.permissions import PAGE, RULES
from tests.support.sentinels import SERVICE, Sentinels
from tests.support.servers import Kind, Server, available_kinds
from tests.support.workers import Recorder, looked_once

SPARED = {b"client|setinfo", b"client|id", b"client|unblock"}
"""Commands that are optional: without them the client works in another way."""


def note(before: str) -> list[str]:
    """The rules that the page gives after this text."""
    found = re.search(rf"{re.escape(before)}\s+`([^`]*)`", PAGE.read_text("utf-8"))
    assert found, before
    return found[1].split()


def make(client: Any, kind: Kind, name: str, more: Iterable[str] = ()) -> None:
    rules = [rule for rule in RULES[name] if not (kind == "redis" and rule == "+waitaof")]
    client.execute_command("ACL", "SETUSER", name, *rules, *more)


def refused(client: Any) -> set[bytes]:
    entries: Any = client.execute_command("ACL", "LOG")
    flat = [entry if isinstance(entry, dict) else dict(zip(entry[::2], entry[1::2], strict=True)) for entry in entries]
    return {entry[b"object"] for entry in flat}


async def works(producing: str, working: str, n: int) -> None:
    handler = Recorder()
    async with Queue("orders", working) as queue, Worker(queue, handler, heartbeat=0.2, blocking_timeout=1) as worker:
        await looked_once(worker)
        async with Queue("orders", producing) as other:
            await (await other.add(n, group_id="g")).result(30)
    assert handler.ended == [n]


def at(url: str, name: str) -> str:
    return url.replace("://", f"://{name}:secret@", 1)


@pytest.mark.parametrize("kind", available_kinds())
async def test_in_a_cluster(kind: Kind) -> None:
    with Cluster(kind) as cluster:
        for node in cluster.nodes:
            with node.client() as client:
                for name in RULES:
                    make(client, kind, name, note("In a cluster add"))
        await works(at(cluster.url, "producer"), at(cluster.url, "worker"), 1)
        await asyncio.to_thread(cluster.move, "orders", cluster.other_than(cluster.owner("orders")))
        await works(at(cluster.url, "producer"), at(cluster.url, "worker"), 2)
        assert [one.name for one in await Queue.list(at(cluster.url, "operator"))] == ["orders"]
        async with Queue.attach("orders", at(cluster.url, "viewer")) as queue:
            assert (await queue.get_job_counts()).completed == 2
        async with Queue("orders", at(cluster.url, "operator")) as queue:
            await queue.obliterate()
        for node in cluster.nodes:
            with node.client() as client:
                assert refused(client) <= SPARED


@pytest.mark.parametrize("kind", available_kinds())
async def test_behind_sentinel(kind: Kind) -> None:
    """The servers and the sentinels have users of their own. Both are needed before and after a failover."""
    with Sentinels(kind) as service:
        for server in service.servers:
            with server.client() as client:
                for name in RULES:
                    make(client, kind, name, note("with Sentinel"))
        for sentinel in service.sentinels:
            with redis.Redis(port=sentinel.port) as client:
                rules = note("give the sentinels a user with")
                client.execute_command("ACL", "SETUSER", "watcher", "on", ">secret", "allchannels", *rules)
        more = "?sentinel_username=watcher&sentinel_password=secret"
        url = f"redis+sentinel://{service.addresses}/{SERVICE}/0{more}"
        await works(at(url, "producer"), at(url, "worker"), 1)
        await asyncio.to_thread(service.replicated)
        await asyncio.to_thread(service.demoted, await asyncio.to_thread(service.fail_over))
        await works(at(url, "producer"), at(url, "worker"), 2)
        async with Queue.attach("orders", at(url, "viewer")) as queue:
            assert (await queue.get_job_counts()).completed == 2
        assert {name for one in _all(service) for name in one} <= SPARED


def _all(service: Sentinels) -> list[set[bytes]]:
    found = []
    servers: list[Server] = [*service.servers, *service.sentinels]
    for server in servers:
        with redis.Redis(port=server.port) as client:
            found.append(refused(client))
    return found
