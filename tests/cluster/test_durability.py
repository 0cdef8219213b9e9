"""`durability` of a queue with partitions on a cluster: an add waits for the replica of its partition's primary."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis

from groupmq import Durability, NotDurable, Queue
from groupmq.core.partitions import Part, place_of, slot_of_tag, tag_of
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.support import keyspace
from tests.support.clusters import Cluster, run
from tests.support.servers import Server, prefer
from tests.support.waiting import wait_until

P = 12
GROUPS = [f"g{i}" for i in range(24)]
SOON = Durability(replicas=1, timeout=0.5)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(prefer("valkey"), primaries=3, replicas=1, **{"cluster-node-timeout": 30_000}) as cluster:
        yield cluster
        for node in cluster.running:
            if run(node, "ROLE")[0] == b"slave":
                continue
            with redis.Redis(port=node.port) as client:
                keyspace.check(client)


def pair_of(cluster: Cluster, group: str) -> tuple[Server, Server]:
    """The primary that has the group, and its replica."""
    slot = slot_of_tag(tag_of("spread", Part(place_of(group) % P, P)))
    ports = next(
        [int(node[1]) for node in nodes]
        for first, last, *nodes in cluster.slots(cluster.running[0])
        if first <= slot <= last
    )
    by_port = {node.port: node for node in cluster.nodes}
    primary, replica = (by_port[port] for port in ports)
    return primary, replica


def is_on_replica(cluster: Cluster, group: str, job_id: str) -> bool:
    """Whether the replica of the group's primary has the job; READONLY lets it answer."""
    _, replica = pair_of(cluster, group)
    key = Keys("groupmq", "spread", Part(place_of(group) % P, P)).fixed("jobs")
    with redis.Redis(port=replica.port) as client:
        client.execute_command("READONLY")
        return bool(client.hexists(key, job_id))


async def test_adds_return_once_the_replica_of_their_partition_has_them(cluster: Cluster) -> None:
    assert len({pair_of(cluster, g)[0].port for g in GROUPS}) == 3
    async with Queue("spread", cluster.url, partitions=P, durability="replicated") as queue:
        for n, g in enumerate(GROUPS):
            assert is_on_replica(cluster, g, (await queue.add(n, group_id=g)).id)
        together = await asyncio.gather(*(queue.add(n, group_id=g) for n in range(5) for g in GROUPS))
        assert all(is_on_replica(cluster, job.group_id or "", job.id) for job in together)
        added = await queue.add_many({"data": n, "group_id": g} for n in range(5) for g in GROUPS)
        assert all(is_on_replica(cluster, job.group_id or "", job.id) for job in added)


async def test_a_replica_that_is_away_concerns_the_partitions_of_its_primary_only(cluster: Cluster) -> None:
    async with Queue("spread", cluster.url, partitions=P, durability=SOON) as queue:
        await queue.add(0, group_id="g0")
        _, away = pair_of(cluster, "g0")
        away.pause()
        try:
            for g in GROUPS:
                if pair_of(cluster, g)[1] is away:
                    with pytest.raises(NotDurable):
                        await queue.add(1, group_id=g, job_id=f"of-{g}")
                else:
                    assert is_on_replica(cluster, g, (await queue.add(1, group_id=g, job_id=f"of-{g}")).id)
            mixed = [{"data": 2, "group_id": g, "job_id": f"many-{g}"} for g in GROUPS]
            with pytest.raises(NotDurable):
                await queue.add_many(mixed)
        finally:
            away.resume()
        # The jobs exist, and adding them again waits for the replica.
        for g in GROUPS:
            assert (await queue.add(1, group_id=g, job_id=f"of-{g}")).duplicate
            assert is_on_replica(cluster, g, f"of-{g}")
        await queue.add_many(mixed)
        assert all(is_on_replica(cluster, g, f"many-{g}") for g in GROUPS)


def test_the_blocking_client_waits_too(cluster: Cluster) -> None:
    with SyncQueue("spread", cluster.url, partitions=P, durability=SOON) as queue:
        for g in GROUPS:
            assert is_on_replica(cluster, g, queue.add(1, group_id=g).id)
        _, away = pair_of(cluster, "g0")
        away.pause()
        try:
            with pytest.raises(NotDurable):
                queue.add(1, group_id="g0", job_id="late")
        finally:
            away.resume()
        assert queue.add(1, group_id="g0", job_id="late").duplicate
        assert is_on_replica(cluster, "g0", "late")


def owns(cluster: Cluster, seen_by: Server, node: Server) -> int:
    """The number of slot ranges of `node`, as `seen_by` knows them."""
    return sum(primary[1] == node.port for _, _, primary, *_ in cluster.slots(seen_by))


async def test_what_was_acknowledged_survives_the_death_of_a_primary(cluster: Cluster) -> None:
    """The primary is killed right after the adds returned, and its replica takes over without losing any of them."""
    async with Queue("spread", cluster.url, partitions=P, durability="replicated") as queue:
        jobs = await asyncio.gather(*(queue.add(n, group_id=g) for n in range(10) for g in GROUPS))
        primary, replica = pair_of(cluster, "g0")
        primary.kill()
        run(replica, "CLUSTER", "FAILOVER", "TAKEOVER")
        wait_until(lambda: all(owns(cluster, node, primary) == 0 for node in cluster.running), "all nodes know it", 30)
        found = await queue.get_jobs_by_id([job.id for job in jobs])
        assert [job and job.data for job in found] == [job.data for job in jobs]
