"""A queue with partitions uses every primary of a cluster, and works on the others while one is down."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from groupmq import ConnectionLost, Job, Queue, Worker
from groupmq.core.partitions import Part, place_of, slot_of_tag, tag_of
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from groupmq.worker.fetching.fetcher import LATE
from tests.partitions.killing import check_order, kill_and_go_on
from tests.support import keyspace
from tests.support.clusters import Cluster
from tests.support.servers import prefer
from tests.support.waiting import eventually

P = 12
GROUPS = [f"g{i}" for i in range(60)]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(prefer("valkey")) as cluster:
        yield cluster
        for node in cluster.running:
            with redis.Redis(port=node.port) as client:
                keyspace.check(client)


def owner_of(cluster: Cluster, part: int) -> int:
    slot = slot_of_tag(tag_of("spread", Part(part, P)))
    ports: list[int] = [
        primary[1] for first, last, primary, *_ in cluster.slots(cluster.running[0]) if first <= slot <= last
    ]
    return ports[0]


async def test_jobs_run_in_order_on_every_primary(cluster: Cluster) -> None:
    assert sorted(Counter(owner_of(cluster, i) for i in range(P)).values()) == [4, 4, 4]
    ran: dict[str, list[int]] = defaultdict(list)

    async def handle(job: Job) -> Any:
        ran[job.group_id or ""].append(job.data)
        return job.data

    async with Queue("spread", cluster.url, partitions=P) as queue:
        jobs = await queue.add_many({"data": i, "group_id": g} for i in range(5) for g in GROUPS)
        assert len({owner_of(cluster, place_of(g) % P) for g in GROUPS}) == 3
        async with Worker(queue, handle, concurrency=8):
            assert await jobs[-1].result(20) == 4
            assert await queue.wait_for_empty(20)
        assert ran == {g: list(range(5)) for g in GROUPS}
        assert (await queue.get_job_counts()).completed > 0
        assert (await queue.search(state="completed", limit=5)).jobs
        assert [info.name for info in await Queue.list(cluster.url)] == ["spread"]
        given = await queue.add(1, group_id="g1", job_id="given")
        assert (await queue.require_job("given")).group_id == given.group_id

    def blocking() -> int:
        with SyncQueue("spread", cluster.url) as other:
            return other.get_job_counts().waiting

    assert await asyncio.to_thread(blocking) == 1
    async with Queue("spread", cluster.url) as queue:
        await queue.obliterate()
        assert await Queue.list(cluster.url) == []


@pytest.mark.parametrize(("how", "concurrency"), [("pause", 4), ("kill", 1), ("kill", 32)])
async def test_a_primary_that_is_away_does_not_stop_the_others(
    cluster: Cluster, how: str, concurrency: int, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []

    async def handle(job: Job) -> None:
        ended.append(job.group_id or "")

    for node in cluster.nodes:
        with redis.Redis(port=node.port) as client:
            client.config_set("cluster-require-full-coverage", "no")
    by_port = defaultdict(list)
    for g in GROUPS:
        by_port[owner_of(cluster, place_of(g) % P)].append(g)
    home = cluster.owner("spread")
    away = next(node for node in cluster.nodes if node.port != home.port)
    lost = {part for part in range(P) if owner_of(cluster, part) == away.port}
    async with Queue("spread", cluster.url, partitions=P) as queue:
        await queue.get_job_counts()
        async with Worker(queue, handle, concurrency=concurrency, blocking_timeout=1):
            await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
            await eventually(lambda: len(ended) == len(GROUPS), "all partitions are served")
            away.kill() if how == "kill" else away.pause()
            reachable = [g for port, groups in by_port.items() if port != away.port for g in groups]
            for _ in range(3):  # calls to the dead primary fail, or are late, from the first round on
                ended.clear()
                for g in reachable:
                    await queue.add(2, group_id=g)
                await eventually(lambda: sorted(ended) == sorted(reachable), "the others go on", timeout=20)
                await asyncio.sleep(LATE)
            away.restart() if how == "kill" else away.resume()
            ended.clear()
            await eventually(
                lambda: all(cluster.is_ok(node) for node in cluster.nodes), "all nodes are back", timeout=40
            )
            for g in by_port[away.port]:
                await queue.add(3, group_id=g)
            served = by_port[away.port]
            await eventually(lambda: sorted(ended) == sorted(served), "it is served when it is back", timeout=40)
    if how == "kill":
        told = re.findall(r"of queue spread in partition (\d+) of 12 cannot take jobs", caplog.text)
        assert {int(part) - 1 for part in told} == lost, "the log names the partitions that are not served"


def settings_of(cluster: Cluster) -> list[list[bytes]]:
    """The fields config, handling and revision of the queue itself and of each partition."""
    found = []
    with redis.RedisCluster(host="127.0.0.1", port=cluster.running[0].port) as client:
        for part in (None, *(Part(i, P) for i in range(P))):
            found.append(client.hmget(Keys("groupmq", "spread", part).meta, "config", "handling", "revision"))
    return found


async def test_settings_are_the_same_on_every_primary_also_if_one_was_away_when_they_changed(cluster: Cluster) -> None:
    for node in cluster.nodes:
        with redis.Redis(port=node.port) as client:
            client.config_set("cluster-require-full-coverage", "no")
    home = cluster.owner("spread")
    away = next(node for node in cluster.nodes if node.port != home.port)
    async with Queue("spread", cluster.url, partitions=P) as queue, Queue("spread", cluster.url) as other:
        await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
        await other.reconfigure(max_attempts=5, group_concurrency=2)
        found = settings_of(cluster)
        assert all(one == found[0] for one in found)
        away.pause()
        other._connection.patience = 0.5
        for part in await other._learn():
            part._connection.patience = 0.5
        with pytest.raises(ConnectionLost):
            await other.reconfigure(max_attempts=9)
        away.resume()
        # Partitions that have the new settings refuse the call, and this process passes them on to the others.
        assert (await queue.get_job_counts()).waiting == len(GROUPS)
        assert (await queue.get_job_counts()).waiting == len(GROUPS)
        assert queue.options.max_attempts == 9
        found = settings_of(cluster)
        assert all(one == found[0] for one in found)

        def block() -> int:
            with SyncQueue("spread", cluster.url) as blocking:
                return blocking.reconfigure(on_failed="hold").max_attempts

        assert await asyncio.to_thread(block) == 9
        for g in GROUPS[:8]:
            await queue.add(1, group_id=g, job_id=f"of-{g}", priority=1)
            await queue.fail(f"of-{g}")
        assert {one.id for one in await queue.get_blocked_groups()} == set(GROUPS[:8])
        assert (await queue.get_metrics()).groups_blocked == 8
        assert await queue.skip("of-g3")


async def test_a_check_warns_if_one_primary_that_is_away_stops_all_partitions(cluster: Cluster) -> None:
    async def coverage(queue: Queue) -> list[str]:
        return [finding.status for finding in await queue.check() if finding.name == "coverage"]

    async with Queue("spread", cluster.url, partitions=P) as queue, Queue("whole", cluster.url) as whole:
        await queue.add(1, group_id="g")
        await whole.add(1, group_id="g")
        assert await coverage(queue) == ["warn"]
        assert await coverage(whole) == []
        with cluster.owner("spread").client() as client:
            client.config_set("cluster-require-full-coverage", "no")
            assert await coverage(queue) == ["ok"]
            client.execute_command("ACL", "SETUSER", "default", "-config")
        assert await coverage(queue) == []


async def test_repartition_moves_jobs_between_primaries(cluster: Cluster) -> None:
    ran: dict[str, list[int]] = defaultdict(list)

    async def handle(job: Job) -> None:
        ran[job.group_id or ""].append(job.data)

    async with Queue("spread", cluster.url, partitions=1) as queue:
        await queue.add_many({"data": i, "group_id": g, "job_id": f"{g}-{i}"} for i in range(3) for g in GROUPS)
        await queue.pause()
        assert await queue.repartition(P) == 180
        assert await queue.repartition(5) == 180
        await queue.resume()
        assert (await queue.require_job("g7-2")).data == 2
        await Worker(queue, handle, concurrency=8).run(burst=True)
    assert ran == {g: [0, 1, 2] for g in GROUPS}


@pytest.mark.timeout(300)
async def test_a_repartition_that_is_killed_is_gone_on_with(cluster: Cluster) -> None:
    queue = await kill_and_go_on(cluster.url, "spread", 7)
    async with queue:
        await check_order(queue)
        await queue.obliterate()
    for node in cluster.running:
        with redis.Redis(port=node.port) as client:
            assert client.keys("*") == []
