"""How many jobs run at once, and in which order."""

from __future__ import annotations

import asyncio
import random

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Recorder


@pytest.mark.parametrize("n", [1, 2, 5])
async def test_at_most_n_jobs_run_at_once_and_n_do_when_there_are_enough(queue: Queue, n: int) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    await queue.add_many([{"data": i} for i in range(3 * n)])
    async with Worker(queue, handler, concurrency=n) as worker:
        await eventually(lambda: len(handler.started) == n, f"{n} jobs run")
        assert len(worker.get_current_jobs()) == n
        handler.gate.set()
        await queue.wait_for_empty(10)
    assert handler.most == n
    assert sorted(handler.ended) == list(range(3 * n))


async def test_groups_run_in_parallel_and_a_group_never_overlaps_itself(queue: Queue) -> None:
    handler = Recorder(seconds=0.002)
    await queue.add_many([{"data": (g, i), "group_id": f"g{g}"} for i in range(10) for g in range(6)])
    await Worker(queue, handler, concurrency=6).run(burst=True)
    assert len(handler.ended) == 60
    assert handler.most_in_group == 1
    assert handler.most == 6


async def test_a_second_job_of_a_group_waits_for_the_first_even_if_slots_are_free(queue: Queue) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    await queue.add_many([{"data": i, "group_id": "g"} for i in range(3)])
    await queue.add("other", group_id="other")
    async with Worker(queue, handler, concurrency=8):
        await eventually(lambda: len(handler.started) == 2, "one job of each group runs")
        assert set(map(str, handler.started)) == {"0", "other"}
        assert (await queue.get_group("g")).active == 1
        handler.gate.set()
        await queue.wait_for_empty(10)
    assert [data for data in handler.started if data != "other"] == [0, 1, 2]


async def test_order_inside_each_group_holds_under_load_with_several_workers(queue: Queue) -> None:
    groups, each = 20, 25
    seen: dict[int, list[int]] = {g: [] for g in range(groups)}

    async def handle(job: Job) -> None:
        group, i = job.data
        seen[group].append(i)
        if i % 7 == 0:
            await asyncio.sleep(0.001)
        if job.attempt == 1 and i % 11 == 0:
            seen[group].pop()
            raise ValueError("try again; nobody may pass meanwhile")

    workers = [Worker(queue, handle, concurrency=4, backoff=0.01) for _ in range(3)]
    for worker in workers:
        await worker.start()
    dice = random.Random(1)
    items = [{"data": (g, i), "group_id": f"g{g}"} for i in range(each) for g in range(groups)]
    while items:
        size = dice.randint(1, 60)
        await queue.add_many(items[:size])
        del items[:size]
    assert await queue.wait_for_empty(30)
    await asyncio.gather(*(worker.close() for worker in workers))
    assert seen == {g: list(range(each)) for g in range(groups)}


async def test_group_concurrency_two_lets_exactly_two_run_started_in_order(make_queue: MakeQueue) -> None:
    queue = make_queue(group_concurrency=2)
    handler = Recorder()
    handler.gate = asyncio.Event()
    await queue.add_many([{"data": i, "group_id": "g"} for i in range(6)])
    async with Worker(queue, handler, concurrency=5):
        await eventually(lambda: len(handler.started) == 2, "two jobs of the group run")
        assert (await queue.get_group("g")).active == 2
        handler.gate.set()
        assert await queue.wait_for_empty(10)
    assert handler.started == list(range(6))
    assert handler.most_in_group == 2


async def test_a_raised_limit_of_one_group_is_used_at_once(queue: Queue) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    await queue.add_many([{"data": i, "group_id": "g"} for i in range(4)])
    async with Worker(queue, handler, concurrency=4):
        await eventually(lambda: len(handler.started) == 1, "one job runs")
        await queue.set_group_concurrency("g", 3)
        await eventually(lambda: len(handler.started) == 3, "three jobs run", timeout=3)
        handler.gate.set()
        assert await queue.wait_for_empty(10)


async def test_jobs_without_a_group_never_wait_for_each_other(queue: Queue) -> None:
    together = asyncio.Barrier(10)

    async def handle(job: Job) -> None:
        await asyncio.wait_for(together.wait(), 10)

    await queue.add_many([{"data": i} for i in range(10)])
    worker = Worker(queue, handle, concurrency=10)
    await worker.run(burst=True)
    assert worker.get_worker_metrics().completed == 10


async def test_the_most_urgent_group_goes_first(queue: Queue) -> None:
    handler = Recorder()
    for priority in (5, 0, 1023, 3):
        await queue.add(priority, group_id=f"p{priority}", priority=priority)
    await Worker(queue, handler).run(burst=True)
    assert handler.started == [0, 3, 5, 1023]


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("jobs", [1, 100])
async def test_burst_runs_everything_that_is_runnable_and_returns(queue: Queue, atomic: bool, jobs: int) -> None:
    handler = Recorder(seconds=0.1 / jobs)
    await queue.add_many([{"data": i, "group_id": f"g{i % 5}"} for i in range(jobs)])
    later = await queue.add("later", delay=3600)
    worker = Worker(queue, handler, concurrency=3, atomic_completion=atomic, blocking_timeout=30)
    async with asyncio.timeout(20):
        await worker.run(burst=True)
    assert sorted(handler.ended) == list(range(jobs))
    assert worker.is_closed()
    assert await later.get_state() == "delayed"


async def test_burst_on_an_empty_queue_returns_at_once(queue: Queue) -> None:
    async with asyncio.timeout(5):
        await Worker(queue, Recorder(), blocking_timeout=30).run(burst=True)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_without_atomic_completion_nothing_is_different_for_the_jobs(queue: Queue, concurrency: int) -> None:
    handler = Recorder()
    async with Worker(queue, handler, concurrency=concurrency, atomic_completion=False, blocking_timeout=30):
        for i in range(30):
            await queue.add(i, group_id=f"g{i % 3}")
        assert await queue.wait_for_empty(5)
        # The worker is idle again. The next job must not wait until the blocking read times out.
        await queue.add("after", group_id="g0")
        assert await queue.wait_for_empty(5)
    for group in range(3):
        mine = [i for i in handler.started if i != "after" and i % 3 == group]
        assert mine == sorted(mine)
    assert len(handler.ended) == 31
