"""A worker of a queue with partitions is one worker: one name, one set of slots, each event once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import pytest
import redis

from groupmq import ConnectionLost, Every, GroupMQError, Job, Queue, Worker, Workers
from groupmq.core.partitions import Part, place_of
from groupmq.protocol import commands
from groupmq.protocol.keys import Keys
from groupmq.worker.consumer import Consumer
from groupmq.worker.leases.heartbeat import Heartbeat
from tests.conftest import MakeQueue
from tests.support.parts import parts_of_each
from tests.support.servers import Server
from tests.support.waiting import eventually

P = 4
GROUPS = [f"g{i}" for i in range(16)]


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("spread", partitions=P)


async def nothing(_job: Job) -> None: ...


async def test_events_of_the_worker_come_once(queue: Queue) -> None:
    heard: Counter[str] = Counter()
    calls: list[str] = []

    def up() -> str:
        calls.append("up")
        return "context"

    async def handle(job: Job) -> None:
        assert job.context == "context"

    worker = Worker(queue, handle, concurrency=3, on_startup=up, on_shutdown=lambda: calls.append("down"))
    for event in ("ready", "completed", "drained", "closed", "active"):
        worker.on(event, lambda *_, event=event: heard.update([event]))
    await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
    await worker.run(burst=True)
    assert heard == {"ready": 1, "active": 16, "completed": 16, "drained": 1, "closed": 1}
    assert calls == ["up", "down"]
    assert worker.is_closed()
    metrics = worker.get_worker_metrics()
    assert (metrics.completed, metrics.running) == (16, 0)


async def test_no_more_run_at_once_than_there_are_slots_and_all_partitions_get_their_turn(queue: Queue) -> None:
    running, most, order = 0, 0, list[int]()

    async def handle(job: Job) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(place_of(job.group_id or "") % P)
        await asyncio.sleep(0.06)
        running -= 1

    await queue.add_many({"data": i, "group_id": g} for i in range(4) for g in GROUPS)
    await Worker(queue, handle, concurrency=3).run(burst=True)
    assert most == 3
    assert len(set(order[:24])) == P


async def test_a_plain_handler_runs_in_the_threads_of_one_worker(queue: Queue) -> None:
    names: set[str] = set()

    def handle(job: Job) -> int:
        import threading

        names.add(threading.current_thread().name)
        return int(job.data)

    jobs = await queue.add_many({"data": i, "group_id": g} for i, g in enumerate(GROUPS))
    async with Worker(queue, handle, concurrency=2):
        assert [await job.result(10) for job in jobs] == list(range(16))
    assert len(names) <= 2


async def test_an_idle_worker_is_woken_at_once_in_every_partition(queue: Queue) -> None:
    async with Worker(queue, nothing, concurrency=2):
        for g in GROUPS:
            began = time.monotonic()
            await (await queue.add(1, group_id=g)).result(5)
            assert time.monotonic() - began < 1  # woken by the marker: timers take five seconds


async def test_a_cancelled_job_is_stopped_in_its_partition(queue: Queue) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with Worker(queue, handle, heartbeat=5):
        for g in GROUPS[:3]:
            started.clear()
            ended.clear()
            job = await queue.add(1, group_id=g)
            await started.wait()
            assert await queue.cancel(job.id)
            await asyncio.wait_for(ended.wait(), 3)


async def test_leases_of_a_dead_worker_are_taken_back_in_all_partitions(queue: Queue, make_queue: MakeQueue) -> None:
    seen = 0
    block = asyncio.Event()

    async def handle(job: Job) -> None:
        nonlocal seen
        seen += 1
        await block.wait()

    jobs = await queue.add_many({"data": 1, "group_id": g} for g in GROUPS[:4])
    worker = await Worker(queue, handle, concurrency=4, prefetch=0).start()
    await eventually(lambda: seen == 4, "all run")
    bequest = worker.bequest()
    assert bequest is not None
    assert sorted(await Worker.take_back(bequest)) == sorted(job.id for job in jobs)
    block.set()
    await worker.close()
    assert (await queue.get_job_counts()).total == 4


async def test_several_queues_share_slots_with_one_that_has_partitions(queue: Queue, make_queue: MakeQueue) -> None:
    other = make_queue("other")
    ran: Counter[str] = Counter()

    async def handle(job: Job) -> None:
        ran[job.data] += 1

    await queue.add_many({"data": "spread", "group_id": g} for g in GROUPS)
    await other.add_many({"data": "other", "group_id": g} for g in GROUPS)
    await Workers([Worker(queue, handle), Worker(other, handle)], concurrency=4).run(burst=True)
    assert ran == {"spread": 16, "other": 16}


async def test_process_and_closing(queue: Queue) -> None:
    ended: list[Any] = []
    worker = await queue.process(lambda job: ended.append(job.data), concurrency=2)
    await queue.add_many({"data": i, "group_id": g} for i, g in enumerate(GROUPS))
    await eventually(lambda: len(ended) == 16, "all ran")
    await queue.close()
    assert worker.is_closed()


async def test_nothing_stays_of_workers_that_were_killed(queue: Queue, client: redis.Redis) -> None:
    """A worker that took no job of a partition is not registered there, but the server keeps its last answer."""
    worker = await Worker(queue, nothing, concurrency=2).start()
    await eventually(queue.get_workers, "it has registered")
    requesters = [Keys("groupmq", "spread", Part(i, P)).fixed("requesters") for i in range(P)]
    await eventually(lambda: all(client.hlen(key) for key in requesters), "every partition was asked")
    for parts in parts_of_each(worker):  # stop without deregistering, as if the process had died
        parts.heartbeat.abandon()
        await parts.fetcher.close()
        await parts.maintenance.close()
    workers = Keys("groupmq", "spread", Part(0, P)).fixed("workers")
    stored: Any = client.hget(workers, worker.id)
    client.hset(workers, worker.id, b"1700000000000 " + stored.split(b" ", 1)[1])
    report = await queue.run_duty_once("cleanup")
    assert (report.gone_workers, report.done) == ((worker.id,), 1)
    assert not any(client.hlen(key) for key in requesters)
    await worker.close(0)


async def test_a_worker_that_has_not_sent_a_heartbeat_yet_keeps_its_last_answers(
    queue: Queue, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for jobs before its first heartbeat. Without its last answer, a call sent again would run twice."""
    monkeypatch.setattr(Heartbeat, "start", lambda self: None)
    async with Worker(queue, nothing, concurrency=2):
        requesters = [Keys("groupmq", "spread", Part(i, P)).fixed("requesters") for i in range(P)]
        await eventually(lambda: all(client.hlen(key) for key in requesters), "every partition was asked")
        kept = [client.hkeys(key) for key in requesters]
        assert not (await queue.run_duty_once("cleanup")).gone_workers
        assert [client.hkeys(key) for key in requesters] == kept


async def test_a_worker_that_cannot_serve_a_partition_is_closed_and_its_hook_called(
    queue: Queue, make_queue: MakeQueue
) -> None:
    await queue.add(1)
    part = (await queue._learn())[1]
    await part._connection.execute("HSET", part._connection.session.keys.meta, "schema", "99")
    calls: list[str] = []
    worker = Worker(
        make_queue("spread"),
        nothing,
        on_startup=lambda: calls.append("up"),
        on_shutdown=lambda: calls.append("down"),
    )
    try:
        with pytest.raises(GroupMQError, match="format 99"):
            await worker.run()
        assert calls == ["up", "down"]
        assert worker.is_closed()
        with pytest.raises(GroupMQError, match="make a new one"):
            await worker.start()
    finally:
        await part._connection.execute("HSET", part._connection.session.keys.meta, "schema", commands.SCHEMA)


async def test_nothing_runs_on_of_a_worker_that_is_closed_while_its_members_start(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.add(1, group_id="g0")
    starting, go_on = asyncio.Event(), asyncio.Event()

    async def held(self: Consumer, patience: float) -> None:
        starting.set()
        await go_on.wait()

    monkeypatch.setattr(Consumer, "_start", held)
    before = asyncio.all_tasks()
    worker = Worker(queue, nothing)
    start = asyncio.create_task(worker.start())
    await starting.wait()
    await worker.close(0)
    assert worker.is_closed()
    go_on.set()
    await start
    left = {task.get_coro().__qualname__ for task in asyncio.all_tasks() - before}  # type: ignore[union-attr]
    assert not any(
        name.startswith(("CommonWake", "DutyRunner", "Consumer", "ConsumerSet", "Fetcher")) for name in left
    ), left
    assert await queue.get_waiting_count() == 1


async def test_a_worker_that_has_been_started_can_be_run_as_a_burst(queue: Queue) -> None:
    await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
    async with Worker(queue, nothing) as worker:
        await worker.run(burst=True)
        assert worker.is_closed()
    assert (await queue.get_job_counts()).total == 0


async def test_the_first_tick_of_a_repeat_is_on_time_where_the_worker_has_had_no_job(queue: Queue) -> None:
    """It has no heartbeat in such a partition, so only the marker tells it that something is due there."""
    ran: set[str | None] = set()

    async def handle(job: Job) -> None:
        ran.add(job.group_id)

    async with Worker(queue, handle, stalled_interval=60, blocking_timeout=60) as worker:
        await eventually(lambda: worker.get_worker_metrics().advances >= P, "every partition was asked")
        for group in GROUPS[:8]:
            await queue.add("tick", group_id=group, repeat=Every(0.2))
        await eventually(lambda: ran == set(GROUPS[:8]), "every repeat has ticked")


async def test_a_start_that_is_cancelled_leaves_no_half_of_a_worker(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Consumer._start

    async def late(self: Consumer, patience: float) -> None:
        """The primary of one partition does not answer."""
        if self._access.queue is (await queue._learn())[1]:
            await asyncio.Event().wait()
        await start(self, patience)

    monkeypatch.setattr(Consumer, "_start", late)
    ended: list[str] = []
    worker = Worker(queue, nothing, on_shutdown=lambda: ended.append("down"))
    starting = asyncio.create_task(worker.start())
    await eventually(lambda: worker.health().ready, "one partition is served")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert worker.is_closed()
    assert ended == ["down"]
    with pytest.raises(GroupMQError, match="make a new one"):
        await worker.start()


async def test_an_idle_worker_gives_up_soon_after_its_timeout() -> None:
    server = Server.start()
    try:
        async with Queue("spread", server.url, partitions=P) as queue:
            worker = Worker(queue, nothing, unreachable_timeout=0.5, stalled_interval=600)
            running = asyncio.create_task(worker.run())
            await eventually(lambda: worker.get_worker_metrics().advances >= P, "every partition was asked")
            server.kill()
            with pytest.raises(ConnectionLost, match="gave up"):
                async with asyncio.timeout(20):
                    await running
    finally:
        server.stop()
