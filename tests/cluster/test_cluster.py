"""Clusters: a queue is found by its slot, and again after the slot has moved or its primary has failed over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.cluster
import valkey
import valkey.asyncio
import valkey.cluster

from groupmq import Queue, Worker
from groupmq.errors import ConfigurationError, ConnectionLost, ServerRefused
from groupmq.sync import Queue as SyncQueue
from tests.support import keyspace
from tests.support.clusters import Cluster, run
from tests.support.load import all_done, in_order, working
from tests.support.servers import Kind, available_kinds, prefer
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Recorder, add_and_obliterate, looked_once, works

NAMES = ("orders", "mails", "b", "x1", "x2")
"""Queues that are on several nodes."""


@pytest.fixture(scope="module")
def calm() -> Iterator[Cluster]:
    """Three primaries without failures, shared by several tests."""
    with Cluster(prefer("valkey")) as cluster:
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three primaries with a replica each, for one test. Every queue must be consistent after it."""
    kind: Kind = getattr(request, "param", prefer("valkey"))
    with Cluster(kind, replicas=1) as cluster:
        yield cluster
        check(cluster)


@pytest.fixture
def bare(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The same without replicas."""
    kind: Kind = getattr(request, "param", prefer("valkey"))
    with Cluster(kind) as cluster:
        yield cluster
        check(cluster)


def check(cluster: Cluster) -> None:
    for port in {entry[2][1] for entry in cluster.slots(cluster.running[0])}:
        with redis.Redis(port=port) as client:
            keyspace.check(client)


each_kind = pytest.mark.parametrize("cluster", available_kinds(), indirect=True)
each_bare = pytest.mark.parametrize("bare", available_kinds(), indirect=True)


# Connecting


async def test_queues_are_found_wherever_they_are_and_listed_together(calm: Cluster) -> None:
    owners = {calm.owner(name).port for name in NAMES}
    assert len(owners) > 1
    for name in NAMES:
        async with Queue(name, calm.url) as queue:
            await works(queue)
            assert queue.address == calm.url
            assert queue.calls_by == "function"
    assert [info.name for info in await Queue.list(calm.url)] == sorted(NAMES)
    for name in NAMES:
        async with Queue(name, calm.url) as queue:
            await queue.obliterate()
    assert await Queue.list(calm.url) == []


@pytest.mark.parametrize("library", [redis, valkey], ids=["redis-py", "valkey-py"])
@pytest.mark.parametrize("asynchronous", [True, False], ids=["asyncio", "blocking"])
async def test_a_cluster_client_describes_the_nodes(calm: Cluster, library: Any, asynchronous: bool) -> None:
    name = "RedisCluster" if library is redis else "ValkeyCluster"
    kind = getattr(library.asyncio if asynchronous else library, name)
    client = kind(host="127.0.0.1", port=calm.nodes[0].port)
    async with Queue("by-client", client) as queue:
        await works(queue)
        assert queue.address.startswith("redis+cluster://127.0.0.1:")
    await asyncio.to_thread(add_and_obliterate, "by-client", client)
    if asynchronous:
        await client.aclose()
    else:
        client.close()


def test_the_blocking_client_finds_its_queues_and_lists_them(calm: Cluster) -> None:
    for name in NAMES:
        with SyncQueue(name, calm.url) as queue:
            queue.add(1)
            assert queue.get_waiting_count() == 1
    assert [info.name for info in SyncQueue.list(calm.url)] == sorted(NAMES)
    for name in NAMES:
        with SyncQueue(name, calm.url) as queue:
            queue.obliterate()
    assert SyncQueue.list(calm.url) == []


@pytest.mark.parametrize("announced", ["hostname", "unknown-endpoint"])
async def test_nodes_may_announce_a_name_or_nothing_at_all(announced: str) -> None:
    config: dict[str, Any] = {"cluster-preferred-endpoint-type": announced, "cluster-announce-hostname": "localhost"}
    with Cluster(prefer("redis"), **config) as cluster:
        for name in NAMES:
            async with Queue(name, cluster.url) as queue:
                await works(queue)
                await asyncio.to_thread(cluster.move, name, cluster.other_than(cluster.owner(name)))
                await works(queue, 2)


async def test_libraries_of_other_releases_are_removed_from_every_primary(calm: Cluster) -> None:
    old = "#!lua name=groupmq_00000000\nredis.register_function('groupmq_00000000_x', function() return 1 end)"
    for node in calm.nodes:
        run(node, "FUNCTION", "LOAD", "REPLACE", old)
    assert await Queue.prune_libraries(calm.url) == ["groupmq_00000000"]
    assert not any("groupmq_00000000" in str(run(node, "FUNCTION", "LIST")) for node in calm.nodes)


async def test_a_plain_url_of_a_node_is_refused_with_the_right_form(calm: Cluster) -> None:
    other = calm.other_than(calm.owner("orders"))
    async with Queue("orders", other.url) as queue:
        with pytest.raises(ServerRefused, match=r"write redis\+cluster:// instead of redis://") as caught:
            await queue.add(1)
    assert caught.value.kind == "MOVED"


async def test_a_server_that_is_no_cluster_is_named_so(server: Any) -> None:
    began = time.monotonic()
    for scheme, path, told in (("cluster", "", "cluster support disabled"), ("sentinel", "/mymaster", "SENTINEL")):
        url = f"redis+{scheme}://127.0.0.1:{server.port}{path}"
        queue = Queue.attach("q", url, patience=60)
        with pytest.raises(ConfigurationError, match=rf"{told}.*; this is not a {scheme}: write redis:// for a single"):
            await queue.get_job_counts()
        await queue.close()
        with SyncQueue("q", url) as blocking, pytest.raises(ConfigurationError, match=told):
            blocking.add(1)
    assert time.monotonic() - began < 10, "waiting cannot help, so the call must fail at once"


@pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster", "rediss+sentinel"])
async def test_a_port_without_tls_is_said_to_be_a_possible_reason(server: Any, scheme: str) -> None:
    path = "/mymaster" if scheme.endswith("sentinel") else ""
    url = f"{scheme}://127.0.0.1:{server.port}{path}?socket_timeout=0.2&socket_connect_timeout=0.2"
    queue = Queue.attach("q", url, patience=0.0)
    with pytest.raises(ConnectionLost, match=r"; does that port speak TLS\?"):
        await queue.get_job_counts()
    await queue.close()


@each_bare
async def test_a_database_that_a_cluster_does_not_have_is_a_mistake_of_the_url(bare: Cluster) -> None:
    async with Queue("q", f"{bare.url}/1") as queue:
        with pytest.raises(ConfigurationError, match=r"has database 0 only|has no database of this number"):
            await queue.add(1)


async def test_a_check_says_which_primary_it_has_looked_at(calm: Cluster) -> None:
    async with Queue("orders", calm.url) as queue:
        findings = {finding.name: finding.detail for finding in await queue.check()}
        here = f"127.0.0.1:{calm.owner('orders').port}"
        assert findings["topology"] == f"cluster of 3 primaries: this is {here}, the owner of slot 105"
        await queue.obliterate()


@pytest.mark.parametrize("partitions", [1, 12])
async def test_what_this_process_closes_itself_is_not_taken_for_a_primary_that_is_away(
    calm: Cluster, partitions: int
) -> None:
    async def primaries(queue: Queue) -> str:
        [found] = [finding.detail for finding in await queue.check() if finding.name == "topology"]
        return found.partition(",")[0]

    name = f"closing-{partitions}"
    async with Queue(name, calm.url, partitions=partitions) as queue:
        found = await primaries(queue)
        assert "cluster of 3 primaries: this is 127.0.0.1:" in found
        await works(queue)
        assert await primaries(queue) == found
        async with Queue(name, calm.url, events=True) as listening:
            await listening.add(3)
        assert await primaries(queue) == found
        await queue.obliterate()


# Failing over


@each_kind
async def test_nothing_replicated_is_lost_when_the_primary_is_killed_under_load(cluster: Cluster) -> None:
    async with working(cluster.url, "orders", job_timeout=5) as (load, handler):
        await load.goes_on(100)
        owner = await asyncio.to_thread(cluster.owner, "orders")
        safe = tuple(load.added)
        await asyncio.to_thread(cluster.replicated, owner)
        owner.kill()
        await load.goes_on(200)
        await all_done(load, handler, (*safe, *load.added[-100:]))
        assert in_order(handler.started) == {}
        assert set(handler.started) <= set(load.added)


@each_kind
async def test_an_orderly_failover_loses_nothing(cluster: Cluster) -> None:
    async with working(cluster.url, "orders", job_timeout=5) as (load, handler):
        for _ in range(2):  # there and back; Redis 7 reverts a third one
            await load.goes_on(100)
            owner = await asyncio.to_thread(cluster.owner, "orders")
            await asyncio.to_thread(cluster.fail_over, owner)
            await asyncio.to_thread(cluster.wait_for_owner, "orders", owner)
        await load.goes_on(100)
        await all_done(load, handler, load.added)
        assert load.refused == 0
        assert in_order(handler.started) == {}


async def test_a_frozen_primary_is_left(cluster: Cluster) -> None:
    """For the other nodes it is down, and its replica takes over, but its connections stay open."""
    handler = Recorder()
    queue = Queue("orders", f"{cluster.url}?socket_timeout=1")
    async with queue, Worker(queue, handler, heartbeat=0.5, blocking_timeout=30):
        await (await queue.add("before")).result(20)
        owner = await asyncio.to_thread(cluster.owner, "orders")
        await asyncio.to_thread(cluster.replicated, owner)
        owner.pause()
        try:
            assert await (await queue.add("after")).result(30) is None
        finally:
            owner.resume()
    assert handler.ended == ["before", "after"]


async def test_a_cluster_that_is_down_is_waited_for(bare: Cluster) -> None:
    """The owner of the queue is in the minority, and refuses all calls until the others are back."""
    owner = await asyncio.to_thread(bare.owner, "orders")
    others = [node for node in bare.nodes if node is not owner]
    async with Queue("orders", bare.url) as queue:
        await queue.add("before")
        for node in others:
            node.pause()
        try:
            await asyncio.to_thread(
                wait_until, lambda: b"cluster_state:fail" in run(owner, "CLUSTER", "INFO"), "it is down", 20
            )
            impatient = Queue.attach("orders", bare.url, patience=0.0)
            with pytest.raises((ServerRefused, ConnectionLost)):
                await impatient.get_waiting_count()
            await impatient.close()
            late = asyncio.ensure_future(queue.add("after"))
        finally:
            for node in others:
                node.resume()
        await late
        assert await queue.get_waiting_count() == 2


# Moving the slot


@pytest.mark.parametrize(
    ("bare", "move"),
    [
        *(pytest.param(kind, Cluster.move, id=f"{kind}-key-by-key") for kind in available_kinds()),
        # Only Valkey 9 has CLUSTER MIGRATESLOTS.
        *(pytest.param(kind, Cluster.move_atomically, id="at-once") for kind in available_kinds() if kind == "valkey"),
    ],
    indirect=["bare"],
)
async def test_a_slot_that_is_moved_under_load_loses_nothing_and_fails_no_add(
    bare: Cluster, move: Callable[[Cluster, str, Any], object]
) -> None:
    async with working(bare.url, "orders", job_timeout=5) as (load, handler):
        for _ in range(3):
            await load.goes_on(100)
            owner = await asyncio.to_thread(bare.owner, "orders")
            await asyncio.to_thread(move, bare, "orders", await asyncio.to_thread(bare.other_than, owner))
        await load.goes_on(100)
        await all_done(load, handler, load.added)
        assert load.refused == 0
        assert in_order(handler.started) == {}
        assert sorted(handler.started) == load.added  # each ran once, since there was no failover


async def test_an_idle_worker_and_a_listener_follow_the_slot_though_they_are_blocked(bare: Cluster) -> None:
    handler, heard = Recorder(), list[Any]()
    async with Queue("orders", bare.url) as queue, Queue("orders", bare.url) as listener:
        listener.on("completed", lambda event: heard.append(event.job_id))
        await listener.get_waiting_count()  # from now on it is subscribed
        async with Worker(queue, handler, heartbeat=20, blocking_timeout=60) as worker:
            await (await queue.add("before")).result(20)
            await looked_once(worker)
            owner = await asyncio.to_thread(bare.owner, "orders")
            await asyncio.to_thread(bare.move, "orders", await asyncio.to_thread(bare.other_than, owner))
            job = await queue.add("after")
            assert await job.result(20) is None
            await eventually(lambda: job.id in heard, "the listener receives the event", 20)
    assert handler.ended == ["before", "after"]


@each_bare
async def test_the_blocking_client_and_what_it_listens_to_follow_the_slot(bare: Cluster) -> None:
    def use() -> int:
        heard: list[Any] = []
        with SyncQueue("orders", bare.url) as queue:
            queue.on("added", lambda event: heard.append(event.job_id))
            before = queue.add("before")
            wait_until(lambda: heard == [before.id], "the first event is received")
            bare.move("orders", bare.other_than(bare.owner("orders")))
            after = queue.add("after")
            assert after.duplicate is False
            wait_until(lambda: heard == [before.id, after.id], "the second event is received", 20)
            return queue.get_waiting_count()

    assert await asyncio.to_thread(use) == 2


async def test_a_node_may_be_added_take_the_queue_and_be_removed_again(bare: Cluster) -> None:
    home = await asyncio.to_thread(bare.owner, "orders")
    async with working(bare.url, "orders", job_timeout=5) as (load, handler):
        await load.goes_on(50)
        new = await asyncio.to_thread(bare.add_node)
        await asyncio.to_thread(bare.move, "orders", new)
        await load.goes_on(50)
        assert new is await asyncio.to_thread(bare.owner, "orders")
        await asyncio.to_thread(bare.move, "orders", home)
        await load.goes_on(50)
        await asyncio.to_thread(bare.remove_node, new)
        await load.goes_on(50)
        await all_done(load, handler, load.added)
        assert sorted(handler.started) == load.added


async def test_the_list_of_queues_is_reached_while_its_slot_moves(bare: Cluster) -> None:
    """The list is one key, so the node that imports the slot can already serve it."""
    registry = "groupmq:queues"
    async with Queue("one", bare.url) as one, Queue("two", bare.url) as two:
        await one.add(1)
        target = await asyncio.to_thread(lambda: bare.other_than(bare.owner(registry)))
        with bare.moving(registry, target) as move:
            move.keys([registry.encode()])
            assert registry.encode() not in move.remaining()
            await two.add(1)
            assert [info.name for info in await Queue.list(bare.url)] == ["one", "two"]
            assert [info.name for info in await asyncio.to_thread(SyncQueue.list, bare.url)] == ["one", "two"]
        assert [info.name for info in await Queue.list(bare.url)] == ["one", "two"]
