"""A burst on an exclusive queue goes on, over any number of turns, until no job could start."""

from __future__ import annotations

import asyncio

import pytest

from groupmq import RateLimit, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once

BLOCK = 30
"""Longer than any test: a worker that wakes was woken."""


@pytest.mark.parametrize("batch", [1, 3])
async def test_a_lone_burst_takes_turn_after_turn_until_nothing_is_left(make_queue: MakeQueue, batch: int) -> None:
    queue = make_queue(exclusive=True)
    await queue.add_many([{"data": n, "group_id": f"g{n % 4}"} for n in range(20)])
    handler = Recorder()
    worker = Worker(queue, handler, concurrency=2, batch_size=batch, blocking_timeout=BLOCK)
    async with asyncio.timeout(20):
        await worker.run(burst=True)
    assert sorted(handler.ended) == list(range(20))


async def test_bursts_that_take_turns_leave_nothing_behind_and_all_end(make_queue: MakeQueue) -> None:
    queues = [make_queue("shared", exclusive=True) for _ in range(3)]
    await queues[0].add_many([{"data": n, "group_id": f"g{n % 7}"} for n in range(120)])
    handlers = [Recorder() for _ in queues]
    workers = [
        Worker(queue, handler, concurrency=2, blocking_timeout=BLOCK)
        for queue, handler in zip(queues, handlers, strict=True)
    ]
    async with asyncio.timeout(25):
        await asyncio.gather(*(worker.run(burst=True) for worker in workers))
    assert sorted(n for handler in handlers for n in handler.ended) == list(range(120))
    assert (await queues[0].get_job_counts()).total == 0


async def test_a_burst_waits_for_its_turn_while_jobs_could_start(make_queue: MakeQueue) -> None:
    holding, bursting = make_queue("shared", exclusive=True), make_queue("shared", exclusive=True)
    handler, mine = Recorder(), Recorder()
    handler.gate = asyncio.Event()
    async with Worker(holding, handler, blocking_timeout=BLOCK) as holder:
        await holding.add(0, group_id="a")
        await eventually(lambda: handler.started, "the other worker has the turn")
        await holding.add_many([{"data": n, "group_id": "b"} for n in range(1, 4)])
        worker = Worker(bursting, mine, blocking_timeout=BLOCK)
        burst = asyncio.create_task(worker.run(burst=True))
        await looked_once(worker)
        handler.gate.set()
        async with asyncio.timeout(20):
            await burst
        assert mine.ended, "the burst never had a turn"
        assert not holder.is_closed()
        assert await holding.wait_for_empty(5)


async def test_a_burst_ends_while_another_worker_runs_the_last_jobs(make_queue: MakeQueue) -> None:
    holding, bursting = make_queue("shared", exclusive=True), make_queue("shared", exclusive=True)
    handler = Recorder()
    handler.gate = asyncio.Event()
    async with Worker(holding, handler, blocking_timeout=BLOCK):
        await holding.add(0, group_id="a")
        await holding.add(1, group_id="a", delay=60)
        await eventually(lambda: handler.started, "the other worker has the turn")
        async with asyncio.timeout(10):
            await Worker(bursting, Recorder(), blocking_timeout=BLOCK).run(burst=True)
        handler.gate.set()


@pytest.mark.parametrize("stop", ["pause", "rate"])
async def test_a_burst_ends_when_what_waits_may_not_start(make_queue: MakeQueue, stop: str) -> None:
    limit = RateLimit(2, per=3600) if stop == "rate" else None
    queue = make_queue(exclusive=True, rate_limit=limit)
    await queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(6)])
    handler = Recorder()

    async def handle(job: object) -> None:
        handler.ended.append(1)
        if stop == "pause" and len(handler.ended) == 2:
            await queue.pause()

    async with asyncio.timeout(10):
        await Worker(queue, handle, blocking_timeout=BLOCK).run(burst=True)
    assert len(handler.ended) == 2
    assert (await queue.get_job_counts()).waiting == 4
