"""`durability`: an add returns once replicas or the disk have the job, and raises otherwise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
import redis.asyncio

from groupmq import Durability, Every, NotDurable, Queue, Worker
from groupmq.core.partitions import Part
from groupmq.errors import ConfigurationError
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.support import keyspace
from tests.support.servers import Kind, Server, available_kinds
from tests.support.waiting import wait_until

SOON = Durability(replicas=1, timeout=2)
"""A replica on a busy machine must answer within this timeout, and the test waits that long for a paused one."""


@dataclass
class Pair:
    primary: Server
    replica: Server

    def is_on_replica(self, queue: str, job_id: str) -> bool:
        with redis.Redis.from_url(self.replica.unix_url) as client:
            return bool(client.hexists(f"groupmq:{{{queue}}}:jobs", job_id))


@pytest.fixture(scope="module", params=available_kinds())
def servers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    kind: Kind = request.param
    primary = Server.start(kind)
    replica = Server.start(kind, config={"replicaof": f"127.0.0.1 {primary.port}"})
    yield Pair(primary, replica)
    replica.stop()
    primary.stop()


@pytest.fixture
def pair(servers: Pair) -> Iterator[Pair]:
    client: Any = servers.primary.client()
    wait_until(lambda: client.info("replication").get("slave0", {}).get("state") == "online", "there is a replica", 20)
    yield servers
    if not client.execute_command("WAIT", 1, 1):
        servers.replica.resume()
    keyspace.check(client)
    client.flushall()
    client.close()


async def test_an_add_returns_once_a_replica_has_the_job(pair: Pair) -> None:
    async with Queue("q", pair.primary.url, durability="replicated") as queue:
        for n in range(50):
            job = await queue.add(n, group_id="g")
            assert pair.is_on_replica("q", job.id)
        jobs = await queue.add_many({"data": n} for n in range(250))
        assert pair.is_on_replica("q", jobs[-1].id)
        together = await asyncio.gather(*(queue.add(n) for n in range(200)))
        assert all(pair.is_on_replica("q", job.id) for job in together)


async def test_an_add_that_no_replica_has_in_time_says_so_and_the_job_stays(pair: Pair) -> None:
    async with Queue("q", pair.primary.url, durability=SOON) as queue:
        await queue.add(0)
        pair.replica.pause()
        with pytest.raises(NotDurable, match=r"the job was added, but after 2 s 0 of 1 replica had it; a failover may"):
            await queue.add(1, job_id="a")
        assert (await queue.get_job_counts()).waiting == 2
        # This add writes nothing, but it must not report the job as durable.
        with pytest.raises(NotDurable):
            await queue.add(1, job_id="a")
        with pytest.raises(NotDurable):
            await queue.add(2, repeat=Every(60))
        pair.replica.resume()
        again = await queue.add(1, job_id="a")
        assert again.duplicate
        assert pair.is_on_replica("q", "a")


async def test_a_new_process_that_adds_a_job_again_waits_for_it_too(pair: Pair) -> None:
    """Its connections have written nothing, and some servers' WAIT then returns at once."""
    async with Queue("q", pair.primary.url) as careless:
        await careless.add(0, job_id="first")
        pair.replica.pause()
        await careless.add(1, job_id="a")
    async with Queue("q", pair.primary.url, durability=SOON) as queue:
        with pytest.raises(NotDurable):
            await queue.add(1, job_id="a")
    pair.replica.resume()


async def test_other_calls_do_not_wait(pair: Pair) -> None:
    async with Queue("q", pair.primary.url, durability=Durability(replicas=1, timeout=60)) as queue:
        job = await queue.add(0)
        pair.replica.pause()
        async with asyncio.timeout(20):
            assert await job.get_state() == "waiting"
            await queue.pause()
            assert await queue.remove(job.id)
        pair.replica.resume()


async def test_calls_by_script_and_by_a_client_of_the_users_wait_too(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = redis.asyncio.Redis.from_url(pair.primary.url)
    async with Queue("q", client, durability=SOON) as queue:
        queue._connection.session.calls_by = "script"
        job = await queue.add(0)
        assert pair.is_on_replica("q", job.id)
        pair.replica.pause()
        with pytest.raises(NotDurable):
            await queue.add(1)
        pair.replica.resume()
    await client.aclose()


@pytest.mark.parametrize("own", [True, False], ids=["url", "client"])
def test_the_blocking_client_waits_too(pair: Pair, own: bool) -> None:
    client = redis.Redis.from_url(pair.primary.url)
    with SyncQueue("q", pair.primary.url if own else client, durability=SOON) as queue:
        for n in range(20):
            job = queue.add(n)
            assert pair.is_on_replica("q", job.id)
        pair.replica.pause()
        with pytest.raises(NotDurable):
            queue.add(1, job_id="a")
        with pytest.raises(NotDurable):
            queue.add(1, job_id="a")
        pair.replica.resume()
        assert queue.add(1, job_id="a").duplicate
        # The connection is cut while it is idle.
        with pair.primary.client() as other:
            other.client_kill_filter(_type="normal", skipme=True)
        assert pair.is_on_replica("q", queue.add(2).id)
    client.close()


async def test_adds_to_partitions_wait_too(pair: Pair) -> None:
    groups = [f"g{i}" for i in range(8)]
    with redis.Redis.from_url(pair.replica.unix_url) as client:

        def are_on_replica(*ids: str) -> bool:
            jobs = [Keys("groupmq", "q", Part(i, 4)).fixed("jobs") for i in range(4)]
            return all(any(client.hexists(key, job_id) for key in jobs) for job_id in ids)

        async with Queue("q", pair.primary.url, partitions=4, durability=SOON) as queue:
            for n in range(20):
                assert are_on_replica((await queue.add(n, group_id=groups[n % 8])).id)
            together = await asyncio.gather(*(queue.add(n, group_id=groups[n % 8]) for n in range(100)))
            assert are_on_replica(*(job.id for job in together))
            added = await queue.add_many({"data": n, "group_id": g} for n in range(5) for g in groups)
            assert are_on_replica(*(job.id for job in added))
            pair.replica.pause()
            for g in groups:
                with pytest.raises(NotDurable):
                    await queue.add(1, group_id=g, job_id=f"of-{g}")
            pair.replica.resume()
            assert (await queue.add(1, group_id="g1", job_id="of-g1")).duplicate
            assert are_on_replica("of-g1")

        def block() -> None:
            with SyncQueue("q", pair.primary.url, durability=SOON) as blocking:
                for g in groups:
                    assert are_on_replica(blocking.add(1, group_id=g).id)
                pair.replica.pause()
                with pytest.raises(NotDurable):
                    blocking.add(1, group_id="g1")
                pair.replica.resume()

        await asyncio.to_thread(block)


async def test_outcomes_wait_for_replicas_if_asked_and_late_ones_are_logged_once(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "groupmq")
    patient = Durability(replicas=1, outcomes=True, timeout=0.2)
    async with Queue("q", pair.primary.url, durability=patient) as queue:
        first = await queue.add(0)
        started, held = asyncio.Event(), asyncio.Event()

        async def handle(job: object) -> None:
            started.set()
            await held.wait()

        async with Worker(queue, handle):
            await started.wait()
            pair.replica.pause()
            held.set()
            assert await first.result(timeout=20) is None
        pair.replica.resume()
    said = [record.getMessage() for record in caplog.records if "outcomes" in record.getMessage()]
    assert said == [
        "queue q: outcomes were reported, but after 0.2 s 0 of 1 replica had it; "
        "after a failover their jobs may run again"
    ]


async def test_a_server_without_an_append_only_file_is_refused_before_anything_is_written(pair: Pair) -> None:
    async with Queue("q", pair.primary.url, durability="fsync") as queue:
        with pytest.raises(
            ConfigurationError, match=r"durability: the server at .* (has no append-only|has no WAITAOF)"
        ):
            await queue.add(1)
    with SyncQueue("q", pair.primary.url, durability="fsync") as blocking, pytest.raises(ConfigurationError):
        blocking.add(1)
    async with Queue("q", pair.primary.url, partitions=4, durability="fsync") as spread:
        with pytest.raises(ConfigurationError, match="durability"):
            await spread.add(1)
    with pair.primary.client() as client:
        assert client.keys("groupmq:{q*") == []


async def test_an_add_returns_once_the_job_is_on_disk() -> None:
    server = Server.start("valkey", aof=True, config={"appendfsync": "everysec"})
    try:
        async with Queue("q", server.url, durability="fsync") as queue:
            job = await queue.add(1)
            server.kill()
            server.restart()
            assert await queue.get_job(job.id) is not None
            await asyncio.gather(*(queue.add(n) for n in range(50)))
        async with Queue("spread", server.url, partitions=4, durability="fsync") as queue:
            jobs = await asyncio.gather(*(queue.add(n, group_id=f"g{n}") for n in range(20)))
            server.kill()
            server.restart()
            assert None not in await queue.get_jobs_by_id([job.id for job in jobs])
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("safe", "durability: expected 'server', 'replicated', 'fsync' or a Durability, got 'safe'"),
        (None, "durability: expected 'server', 'replicated', 'fsync' or a Durability, got None"),
    ],
)
def test_another_durability_is_refused(given: object, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=expected):
        Queue("q", durability=given)  # type: ignore[arg-type]


def test_a_durability_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="expected replicas or fsync"):
        Durability(outcomes=True)
    with pytest.raises(ConfigurationError, match=r"Durability\.replicas"):
        Durability(replicas=-1)
