"""A failover behind one address that cuts no connection: the old primary becomes a replica and refuses writes.

Connections that were open before still lead to the old primary, new ones to the new primary.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
import redis.asyncio

from groupmq import Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.faults.conftest import StartServer
from tests.support.proxy import Proxy
from tests.support.servers import Kind, Server, available_kinds, prefer
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Recorder

# The failover itself loses nothing: the tests are about finding the new primary.
AT_ONCE = {"repl-diskless-sync-delay": 0, "repl-diskless-sync": "yes"}
STALE = {"replica-serve-stale-data": "no"}


def follow(server: Server, primary: Server) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", primary.port)
        wait_until(lambda: linked(client), "the replica follows", 30)


def linked(client: redis.Redis) -> bool:
    try:
        return bool(client.info("replication")["master_link_status"] == "up")
    except redis.exceptions.BusyLoadingError:
        return False


class Pair:
    """A primary and its replica behind one address."""

    def __init__(self, old: Server, new: Server, proxy: Proxy) -> None:
        self.old, self.new, self._proxy = old, new, proxy
        self.url = proxy.url

    def fail_over(self) -> None:
        with redis.Redis.from_url(self.old.url) as old, redis.Redis.from_url(self.new.url) as new:
            wait_until(lambda: offset(old) == offset(new), "the replica has everything")
            new.execute_command("REPLICAOF", "NO", "ONE")
        self._proxy.lead_to(self.new.port)
        follow(self.old, self.new)


def offset(client: redis.Redis) -> int:
    return int(client.info("replication")["master_repl_offset"])


@contextmanager
def two_servers(start_server: StartServer, kind: Kind, **more: Any) -> Iterator[Pair]:
    old, new = (start_server(kind, config={**AT_ONCE, **more}) for _ in range(2))
    follow(new, old)
    with Proxy(old.port) as proxy:
        yield Pair(old, new, proxy)


@pytest.mark.parametrize("kind", available_kinds())
async def test_producers_and_workers_go_on_with_the_new_primary(start_server: StartServer, kind: Kind) -> None:
    handler = Recorder()
    with two_servers(start_server, kind) as pair:
        worker_queue = Queue("orders", pair.url, job_timeout=60)
        async with worker_queue, Queue("orders", pair.url, job_timeout=60) as queue:
            async with Worker(worker_queue, handler, concurrency=4, heartbeat=0.2, blocking_timeout=1):
                assert await (await queue.add("before", group_id="g")).result(20) is None
                # Several connections, all opened before the failover.
                await asyncio.gather(*(queue.get_job_counts() for _ in range(10)))
                await asyncio.to_thread(pair.fail_over)
                for i in range(3):
                    assert await (await queue.add(i, group_id="g")).result(30) is None
            assert handler.ended == ["before", 0, 1, 2]
            assert (await queue.get_metrics()).stalled == 0


@pytest.mark.parametrize("own", [True, False], ids=["url", "client"])
async def test_a_blocking_producer_goes_on_with_the_new_primary(start_server: StartServer, own: bool) -> None:
    with two_servers(start_server, prefer("valkey")) as pair:
        client = redis.Redis.from_url(pair.url)
        with SyncQueue("orders", pair.url if own else client) as queue:
            queue.add("before")
            await asyncio.to_thread(pair.fail_over)
            assert (await asyncio.to_thread(queue.add, "after")).duplicate is False
            assert queue.get_waiting_count() == 2
        client.close()


async def test_a_client_of_the_users_connects_anew(start_server: StartServer) -> None:
    with two_servers(start_server, prefer("redis")) as pair:
        client: Any = redis.asyncio.Redis.from_url(pair.url)
        async with Queue("orders", client) as queue:
            await queue.add("before")
            await asyncio.to_thread(pair.fail_over)
            await queue.add("after")
            assert await queue.get_waiting_count() == 2
        await client.aclose()


async def test_a_refused_write_leads_readers_to_the_new_primary_as_well(start_server: StartServer) -> None:
    """Reading works on a replica, so a connection that only reads is never refused by the old primary."""
    with two_servers(start_server, prefer("valkey")) as pair:
        async with Queue("orders", pair.url) as writer, Queue("orders", pair.url) as reader:
            heard: list[Any] = []
            reader.on("added", heard.append)
            await reader.get_waiting_count()  # from now on it is subscribed
            await writer.add("before")
            await eventually(lambda: heard, "the first event is received")
            await asyncio.to_thread(pair.fail_over)
            await writer.add("after")
            with redis.Redis.from_url(pair.old.url) as old:
                old.execute_command("REPLICAOF", "127.0.0.1", 1)  # it receives no more writes
                await writer.add("unheard of there")
                await eventually(lambda: len(heard) == 3, "events of the new primary are received", 20)
                assert await reader.get_waiting_count() == 3


async def test_a_replica_that_lost_its_primary_is_left(start_server: StartServer) -> None:
    """It refuses even reads with MASTERDOWN while it has no link to a primary."""
    with two_servers(start_server, prefer("redis"), **STALE) as pair:
        async with Queue("orders", pair.url) as queue:
            await queue.add("before")
            with redis.Redis.from_url(pair.new.url) as new, redis.Redis.from_url(pair.old.url) as old:
                wait_until(lambda: offset(old) == offset(new), "the replica has everything")
                new.execute_command("REPLICAOF", "NO", "ONE")
                old.execute_command("REPLICAOF", "127.0.0.1", 1)
                pair._proxy.lead_to(pair.new.port)
                assert await queue.get_waiting_count() == 1
                await queue.add("after")
                assert await queue.get_waiting_count() == 2
                old.config_set("replica-serve-stale-data", "yes")  # for the check at the end
