"""A queue that is flushed, obliterated, drained or repaired on its server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import FailJob, Job, Queue, Worker
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

FIXED_AND_SMALL = {"series", "meta", "failures", "wake", "requesters", "workers", "events", "segments"}


async def handle(job: Job) -> str:
    if job.data == "fail":
        raise FailJob("on purpose")
    return "done"


def names(client: Any, queue: Queue) -> set[str]:
    """The keys of a queue, without their common prefix."""
    base = Keys(queue.options.prefix, queue.name).base.encode()
    return {key[len(base) :].decode() for key in client.scan_iter(count=1000) if key.startswith(base)}


def lasting(client: Any, queue: Queue) -> set[str]:
    """The keys that do not expire. Checks that the answers of calls expire, and that there are few of them."""
    answers = Keys(queue.options.prefix, queue.name).fixed
    found = names(client, queue)
    for name in found & {"calls_even", "calls_odd"}:
        assert 0 < client.pttl(answers(name)) <= 90_000
        assert client.hlen(answers(name)) <= 5
    return found - {"calls_even", "calls_odd"}


async def test_a_queue_works_again_after_everything_was_flushed(queue: Queue, client: Any) -> None:
    await queue.add(1, group_id="g")
    client.flushall()
    assert (await queue.get_job_counts()).total == 0
    client.flushall()
    job = await queue.add(2, group_id="g")
    assert (await queue.require_job(job.id)).data == 2
    client.flushall()
    await Worker(queue, handle).run(burst=True)


async def test_a_running_worker_works_again_after_everything_was_flushed(queue: Queue, client: Any) -> None:
    async with Worker(queue, handle, concurrency=2, blocking_timeout=0.1):
        await queue.add(1, group_id="g")
        await eventually(queue.get_completed_count, "the first job is done")
        client.flushall()
        client.function_flush()
        await queue.add(2, group_id="g")
        await eventually(queue.get_completed_count, "the job after the flush is done")


async def test_a_job_flushed_away_while_it_runs_leaves_no_trace_and_stops_nobody(queue: Queue, client: Any) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    lost: list[str] = []

    async def slow(_job: Job) -> None:
        started.set()
        await go_on.wait()

    worker = Worker(queue, slow, blocking_timeout=0.1)
    worker.on("lease-lost", lambda job: lost.append(job.id))
    async with worker:
        gone = await queue.add(1, group_id="g")
        await started.wait()
        client.flushall()
        await queue.add(2, group_id="g")
        go_on.set()
        await eventually(queue.get_completed_count, "the job after the flush is done")
    assert lost == [gone.id]
    assert await queue.get_job(gone.id) is None


async def test_flushed_functions_are_not_noticed(queue: Queue, client: Any) -> None:
    for i in range(3):
        client.function_flush()
        await queue.add(i)
        client.function_flush()
        assert (await queue.get_job_counts()).waiting == i + 1
    client.function_flush()
    await Worker(queue, handle).run(burst=True)
    assert (await queue.get_job_counts()).completed == 3


async def full(queue: Queue) -> None:
    """Store something in every key."""
    await queue.add_many({"data": "x", "group_id": f"g{i % 700}"} for i in range(1500))
    await queue.add_many({"data": "x", "delay": 60, "group_id": "later"} for _ in range(3))
    await queue.add("fail", priority=0)
    await queue.pause_group("paused")
    await queue.set_group_concurrency("wide", 5)
    async with Worker(queue, handle, concurrency=10):
        await eventually(queue.get_completed_count, "some are done")


async def test_obliteration_leaves_no_key_and_no_other_queue_is_touched(make_queue: MakeQueue, client: Any) -> None:
    queue, other = make_queue("doomed"), make_queue("doomed2")
    await other.add(1)
    await full(queue)
    assert len(names(client, queue)) > 10
    before = names(client, other)
    await queue.obliterate()
    assert names(client, queue) == set()
    assert names(client, other) == before


async def test_an_obliterated_queue_may_be_used_again(queue: Queue) -> None:
    await full(queue)
    await queue.obliterate()
    await queue.add(1, job_id="x")
    counts = await queue.get_job_counts()
    assert (counts.waiting, counts.total, counts.completed) == (1, 1, 0)
    assert not await queue.is_paused()


async def test_a_queue_obliterated_while_workers_run_goes_on_empty(queue: Queue) -> None:
    async with Worker(queue, handle, concurrency=5, blocking_timeout=0.1):
        await queue.add_many({"data": i, "group_id": f"g{i % 9}"} for i in range(300))
        await queue.obliterate()
        await queue.add("new", job_id="new")

        async def done() -> bool:
            job = await queue.get_job("new")
            return job is not None and job.state == "completed"

        await eventually(done, "the job after the obliteration is done")


@pytest.mark.parametrize("concurrency", [1, 10])
async def test_a_drained_queue_that_keeps_nothing_leaves_only_small_fixed_keys(
    make_queue: MakeQueue, client: Any, concurrency: int
) -> None:
    queue = make_queue(keep_completed=0, keep_failed=0)
    await queue.add_many({"data": "x", "group_id": f"g{i % 90}"} for i in range(300))
    await queue.add_many({"data": "fail", "group_id": f"h{i}", "max_attempts": 2} for i in range(20))
    await queue.add_many({"data": "x", "delay": 0.01} for _ in range(20))
    async with Worker(queue, handle, concurrency=concurrency):
        assert await queue.wait_for_empty(20)
    assert lasting(client, queue) <= FIXED_AND_SMALL
    base = Keys("groupmq", queue.name)
    assert client.hlen(base.meta) < 20
    assert client.llen(base.fixed("failures")) == 20
    assert client.hlen(base.fixed("requesters")) == client.hlen(base.fixed("workers")) == 0


async def test_groups_come_and_go_without_leaving_keys(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue(keep_completed=0)
    for n in range(3):
        await queue.add_many({"data": "x", "group_id": f"{n}-{i}"} for i in range(100))
        await queue.purge()
        assert lasting(client, queue) <= FIXED_AND_SMALL


async def test_a_repair_of_a_healthy_queue_reports_none(queue: Queue) -> None:
    await full(queue)
    report = await queue.repair()
    assert (report.clean, bool(report), report.mended) == (True, False, {})
    assert report.jobs > 1000


async def test_a_repair_brings_a_stranded_group_back(queue: Queue, client: Any) -> None:
    keys = Keys("groupmq", queue.name)
    await queue.add(1, group_id="g")
    client.delete(keys.fixed("ready"), keys.fixed("groups"))
    report = await queue.repair()
    assert report.total > 0
    assert "g" in [name for found in report.mended.values() for name in found]
    await Worker(queue, handle).run(burst=True)
    assert (await queue.get_job_counts()).completed == 1


async def test_leaving_the_block_closes_the_queue_even_after_an_error(url: str, client: Any) -> None:
    queue = Queue("q", url)
    before = len(client.client_list())

    async def use() -> None:
        async with queue:
            await queue.add(1)
            assert len(client.client_list()) > before
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await use()
    await eventually(lambda: len(client.client_list()) == before, "the connections are gone")
