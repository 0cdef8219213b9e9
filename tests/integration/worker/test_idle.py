"""Precise wake-ups without polling: the cost of an idle worker, and how soon it wakes up."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

import pytest
import redis

from groupmq import Job, Queue, Worker
from groupmq.protocol import commands, functions
from groupmq.protocol.commands import Policy
from tests.conftest import MakeQueue
from tests.support.cluster_client import node_of
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once

WATCHED = 1.5
BLOCK = 0.5


def calls(client: redis.Redis) -> dict[str, int]:
    """How often each command was called since the server started."""
    found: dict[str, Any] = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in found.items()}


async def cost(client: redis.Redis, seconds: float = WATCHED) -> dict[str, int]:
    """Let an idle period pass. Returns the number of blocking reads, script calls and ZADDs in it."""
    before = calls(client)
    await asyncio.sleep(seconds)
    after = calls(client)
    return {name: after.get(name, 0) - before.get(name, 0) for name in ("bzpopmin", "fcall", "evalsha", "zadd")}


def check_idle(found: dict[str, int], workers: int = 1, beats: int = 1) -> None:
    """Check that each worker makes one blocking read and one script call per blocking_timeout, and its heartbeats."""
    periods = WATCHED / BLOCK
    assert found["bzpopmin"] <= workers * (periods + 1), found
    assert found["fcall"] + found["evalsha"] <= workers * (periods + 2 + beats), found


async def test_an_idle_worker_costs_one_blocking_read_and_one_look_per_blocking_timeout(
    queue: Queue, client: redis.Redis
) -> None:
    async with Worker(queue, Recorder(), concurrency=4, blocking_timeout=BLOCK) as worker:
        await looked_once(worker)
        check_idle(await cost(client))


async def test_a_long_job_beside_free_slots_makes_no_busy_loop(queue: Queue, client: redis.Redis) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler, concurrency=8, blocking_timeout=BLOCK):
        await queue.add(1, group_id="g")
        await eventually(lambda: handler.started, "the job runs")
        check_idle(await cost(client))
        handler.gate.set()


async def test_a_busy_group_with_a_backlog_makes_no_worker_spin(queue: Queue, client: redis.Redis) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    workers = [Worker(queue, handler, concurrency=2, blocking_timeout=BLOCK) for _ in range(2)]
    await queue.add_many([{"data": i, "group_id": "g"} for i in range(20)])
    async with workers[0], workers[1]:
        await eventually(lambda: handler.started, "the first job runs")
        check_idle(await cost(client), workers=2)
        assert handler.started == [0]
        handler.gate.set()
        assert await queue.wait_for_empty(10)
    assert handler.started == list(range(20))


@pytest.mark.parametrize("what", ["queue", "group"])
async def test_a_pause_makes_no_worker_poll_and_a_resume_is_noticed_at_once(
    queue: Queue, client: redis.Redis, what: str
) -> None:
    handler = Recorder()
    await (queue.pause() if what == "queue" else queue.pause_group("g"))
    await queue.add_many([{"data": i, "group_id": "g"} for i in range(5)])
    async with Worker(queue, handler, concurrency=2, blocking_timeout=BLOCK) as worker:
        await looked_once(worker)
        check_idle(await cost(client))
        assert handler.started == []
    async with Worker(queue, handler, blocking_timeout=30) as worker:
        await looked_once(worker)
        await (queue.resume() if what == "queue" else queue.resume_group("g"))
        assert await queue.wait_for_empty(5)
    assert handler.started == list(range(5))


async def test_a_delayed_head_makes_no_worker_poll(queue: Queue, client: redis.Redis) -> None:
    async def fail(job: Job) -> None:
        raise ValueError

    await queue.add("delayed", delay=3600)
    await queue.add("held", group_id="g", backoff=3600)
    async with Worker(queue, fail, concurrency=2, blocking_timeout=BLOCK) as worker:
        await eventually(lambda: worker.get_worker_metrics().retried, "the head is held")
        check_idle(await cost(client))


async def test_an_idle_worker_starts_a_job_within_a_round_trip_of_its_add(queue: Queue) -> None:
    loop = asyncio.get_running_loop()
    late: list[float] = []
    trips: list[float] = []

    async def handle(job: Job) -> None:
        started.set_result(loop.time())

    async with Worker(queue, handle, concurrency=2, blocking_timeout=30) as worker:
        await looked_once(worker)
        for i in range(30):
            started: asyncio.Future[float] = loop.create_future()
            before = loop.time()
            await queue.add(i, group_id=f"g{i % 3}")
            trips.append(loop.time() - before)
            late.append(await asyncio.wait_for(started, 5) - before)
    # An add, the marker and an advance are about three trips; a poll would take 30 s.
    assert statistics.median(late) < 20 * statistics.median(trips) + 0.1, (late, trips)


async def test_one_of_many_idle_workers_starts_a_job_and_the_others_are_not_woken_for_it(
    queue: Queue, client: redis.Redis
) -> None:
    handler = Recorder()
    workers = [Worker(queue, handler, blocking_timeout=30) for _ in range(5)]
    for worker in workers:
        await worker.start()
        await looked_once(worker)
    before = calls(client)["bzpopmin"]
    for i in range(10):
        await queue.add(i)
        await handler.has_run(i)
    popped = calls(client)["bzpopmin"] - before
    await asyncio.gather(*(worker.close() for worker in workers))
    assert popped <= 25, "many workers woke up for every job"


async def test_many_jobs_at_once_wake_as_many_workers_as_they_need(queue: Queue) -> None:
    together = asyncio.Barrier(5)

    async def handle(job: Job) -> None:
        await asyncio.wait_for(together.wait(), 5)

    workers = [Worker(queue, handle, blocking_timeout=30, max_attempts=1) for _ in range(5)]
    for worker in workers:
        await worker.start()
        await looked_once(worker)
    await queue.add_many([{"data": i} for i in range(5)])
    assert await queue.wait_for_empty(10)
    await asyncio.gather(*(worker.close() for worker in workers))
    assert (await queue.get_metrics()).failed == 0


@pytest.mark.parametrize("first", ["worker", "job"])
async def test_delays_fire_on_time_and_never_early(queue: Queue, first: str) -> None:
    loop = asyncio.get_running_loop()
    late: dict[float, float] = {}

    async def handle(job: Job) -> None:
        late[job.data] = loop.time() - added - job.data

    worker = Worker(queue, handle, concurrency=2, blocking_timeout=30)
    if first == "worker":
        await worker.start()
        await looked_once(worker)
    delays = [0.6, 0.2, 0.4, 0.21]
    added = loop.time()
    for delay in delays:
        await queue.add(delay, group_id="g", delay=delay)
    await worker.start()
    await eventually(lambda: len(late) == 4, "all ran", timeout=5)
    await worker.close()
    # Due times are whole milliseconds of the server, and the adds take some time.
    assert all(-0.002 <= value < 0.4 for value in late.values()), late


async def test_an_expired_lease_is_noticed_on_time_by_a_worker_that_sleeps(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    """The worker fell asleep before the lease was granted, and its blocking read is far longer than the lease."""
    queue = make_queue(job_timeout=1)
    loop = asyncio.get_running_loop()
    handler = Recorder()
    await queue.pause_group("g")
    await queue.add(1, group_id="g")
    async with Worker(queue, handler, blocking_timeout=30, maintenance=False) as sleeper:
        await looked_once(sleeper)
        start = loop.time()
        take_in_secret(queue, client)
        await eventually(lambda: handler.started, "the job was taken over", timeout=10)
        took = loop.time() - start  # do not include the time for closing
    assert 0.99 <= took < 1 + 1
    assert handler.attempts == [2]


def take_in_secret(queue: Queue, client: redis.Redis) -> None:
    """Resume the group and take its job for a worker that then dies, without a hint that would wake the others."""
    keys = queue._connection.session.keys
    policy = Policy(queue.options.max_attempts, -1, queue.options.keep)
    take = commands.advance(
        worker="dead", requester="dead:0", request=1, outcomes=[], take=1, lease_ms=1000, policy=policy
    )
    together = node_of(client, queue.name).pipeline(transaction=True)
    for call in (commands.switch(group_id="g", paused=False), take):
        together.eval(functions.expand(call.script), 1, keys.meta, call.args, call.blob)
    together.delete(keys.wake)
    together.execute()
