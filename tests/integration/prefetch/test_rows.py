"""Rows of jobs of one group need fewer calls, and change nothing else."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import Any

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.parts import parts_of
from tests.support.rows import (
    LONGEST_ROW,
    Crowd,
    add_row,
    add_to_groups,
    attempts_made,
    used_to_short_handlers,
    whatever_happens,
)
from tests.support.waiting import eventually
from tests.support.workers import Recorder, one_kind


def by_group(seen: list[Any]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for group, i in seen:
        found[group].append(i)
    return found


@pytest.mark.parametrize("concurrency", [1, 10, 100])
async def test_every_job_runs_once_in_its_order_and_alone_in_its_group(make_queue: MakeQueue, concurrency: int) -> None:
    queue = make_queue(keep_completed=2000)
    groups, each = 12, 100
    handler = Recorder()
    jobs = await add_to_groups(queue, groups, each)
    worker = used_to_short_handlers(Worker(queue, handler, concurrency=concurrency))
    await worker.run(burst=True)
    assert by_group(handler.ended) == {g: list(range(each)) for g in range(groups)}
    assert handler.started == handler.ended or concurrency > 1
    assert handler.most_in_group == 1
    assert handler.most <= concurrency
    assert set(handler.attempts) == {1}
    metrics = worker.get_worker_metrics()
    assert (metrics.completed, metrics.lease_lost, metrics.running) == (groups * each, 0, 0)
    assert (await queue.get_job_counts()).completed == groups * each
    assert set(await attempts_made(jobs[::50])) == {1}


async def test_several_workers_share_groups_that_grow_meanwhile(queue: Queue) -> None:
    groups, each = 8, 60
    handler = Recorder()
    workers = [used_to_short_handlers(Worker(queue, handler, concurrency=c)) for c in (1, 3, 10)]
    for worker in workers:
        await worker.start()
    for i in range(each):
        await queue.add_many([{"data": [g, i], "group_id": f"g{g}"} for g in range(groups)])
    assert await queue.wait_for_empty(20)
    for worker in workers:
        await worker.close()
    assert by_group(handler.ended) == {g: list(range(each)) for g in range(groups)}
    assert handler.most_in_group == 1
    assert sum(worker.get_worker_metrics().completed for worker in workers) == groups * each


@pytest.mark.parametrize("atomic", [True, False])
async def test_a_worker_with_short_handlers_makes_far_fewer_trips_than_there_are_jobs(
    queue: Queue, atomic: bool
) -> None:
    await add_to_groups(queue, 4, 250)
    worker = whatever_happens(Worker(queue, Recorder(), atomic_completion=atomic))
    await worker.run(burst=True)
    assert worker.get_worker_metrics().completed == 1000
    assert worker.get_worker_metrics().advances < 300


async def test_with_a_prefetch_of_zero_each_job_is_a_trip(queue: Queue) -> None:
    handler = Recorder()
    await add_to_groups(queue, 4, 100)
    worker = used_to_short_handlers(Worker(queue, handler, prefetch=0))
    await worker.run(burst=True)
    assert by_group(handler.ended) == {g: list(range(100)) for g in range(4)}
    assert 400 <= worker.get_worker_metrics().advances <= 410


async def test_nothing_is_taken_ahead_before_handlers_have_been_seen_to_be_short(queue: Queue) -> None:
    worker = Worker(queue, Recorder())
    await add_row(queue, 90)
    await worker.run(burst=True)
    assert worker.get_worker_metrics().advances >= 90


async def test_a_worker_learns_that_its_handlers_are_short(queue: Queue) -> None:
    await add_to_groups(queue, 5, 100)
    async with Worker(queue, Recorder()) as worker:
        assert await queue.wait_for_empty(20)
        before = worker.get_worker_metrics().advances
        await add_row(queue, 500)
        assert await queue.wait_for_empty(20)
        assert worker.get_worker_metrics().advances - before < 450


@one_kind
@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("concurrency", [2, 3, 10])
async def test_a_burst_leaves_nothing_behind_whenever_a_hint_comes(
    queue: Queue, concurrency: int, prefetch: int
) -> None:
    """A hint may make the worker ask while another call reports the outcome that makes further jobs ready."""

    async def handle(job: Job) -> None:
        parts_of(worker).fetcher.poke()

    for _ in range(30):
        await add_to_groups(queue, concurrency, 20)
        worker = used_to_short_handlers(Worker(queue, handle, concurrency=concurrency, prefetch=prefetch))
        await worker.run(burst=True)
        assert (await queue.get_job_counts()).total == 0


@pytest.mark.parametrize("concurrency", [1, 10])
@pytest.mark.parametrize("prefetch", [0, 1, 7, 30])
async def test_a_number_bounds_how_many_jobs_are_ahead(queue: Queue, prefetch: int, concurrency: int) -> None:
    crowd = Crowd(queue)
    crowd.worker = worker = used_to_short_handlers(Worker(queue, crowd, concurrency=concurrency, prefetch=prefetch))
    worker.on("completed", crowd.reported)
    await add_to_groups(queue, 10, 40)
    await worker.run(burst=True)
    crowd.close()
    assert worker.get_worker_metrics().completed == 400
    assert crowd.most <= concurrency + prefetch
    assert crowd.most == 1 + prefetch or concurrency > 1


async def test_left_to_itself_a_worker_takes_no_more_of_a_group_than_a_row(queue: Queue) -> None:
    crowd = Crowd(queue)
    crowd.worker = worker = used_to_short_handlers(Worker(queue, crowd))
    worker.on("completed", crowd.reported)
    await add_row(queue, 300)
    await worker.run(burst=True)
    crowd.close()
    assert crowd.most == LONGEST_ROW


async def test_prefetched_jobs_behind_a_long_handler_are_released_and_count_as_waiting(queue: Queue) -> None:
    started: list[int] = []
    let_go = asyncio.Event()
    since = 0.0

    async def handle(job: Job) -> None:
        nonlocal since
        started.append(job.data)
        if job.data == 2:
            since = time.monotonic()
            await let_go.wait()

    async def seen_waiting() -> bool:
        counts = await queue.get_job_counts()
        return (counts.completed, counts.active, counts.waiting) == (2, 1, 7)

    jobs = await add_row(queue, 10)
    async with used_to_short_handlers(Worker(queue, handle)) as worker:
        await eventually(seen_waiting, "the jobs behind wait")
        assert time.monotonic() - since < 1
        await eventually(lambda: worker.get_worker_metrics().released >= 7, "the worker knows that they went back")
        assert [(await queue.require_job(job.id)).state for job in jobs] == ["completed"] * 2 + ["active"] + [
            "waiting"
        ] * 7
        assert (await queue.get_group("g")).active == 1
        assert await queue.remove(jobs[5].id)
        assert await jobs[6].cancel()
        assert started == [0, 1, 2]
        let_go.set()
        assert await queue.wait_for_empty(10)
    assert started == [0, 1, 2, 3, 4, 7, 8, 9]
    assert await queue.get_job(jobs[5].id) is None
    del jobs[5:7]
    assert await attempts_made(jobs) == [1] * 8


async def test_handlers_that_have_become_slower_do_not_keep_a_whole_row_out_of_sight(queue: Queue) -> None:
    """Each handler is short enough that the job behind it may wait in the worker. The whole row is not."""
    started: list[Any] = []

    async def handle(job: Job) -> None:
        started.append(job.data)
        await asyncio.sleep(0.008)

    jobs = await add_row(queue, LONGEST_ROW, priority=5)
    async with used_to_short_handlers(Worker(queue, handle)):
        await jobs[0].result(10)
        urgent = await queue.add("urgent", group_id="g", priority=1)
        await urgent.result(10)
        assert started.index("urgent") < 20
        assert await queue.wait_for_empty(10)
    assert [data for data in started if data != "urgent"] == list(range(LONGEST_ROW))


async def test_a_more_urgent_job_goes_before_those_that_were_given_back(queue: Queue) -> None:
    started: list[Any] = []
    let_go = asyncio.Event()

    async def handle(job: Job) -> None:
        started.append(job.data)
        if job.data == 1:
            await let_go.wait()

    await add_row(queue, 4, priority=5)
    async with used_to_short_handlers(Worker(queue, handle)) as worker:
        await eventually(lambda: 1 in started and worker.get_worker_metrics().released >= 2, "the jobs behind wait")
        await queue.add("urgent", group_id="g", priority=1)
        let_go.set()
        assert await queue.wait_for_empty(10)
    assert started == [0, 1, "urgent", 2, 3]


async def test_another_worker_takes_what_was_given_back_once_the_long_one_has_ended(queue: Queue) -> None:
    by: dict[int, str] = {}
    let_go = asyncio.Event()

    async def handle(job: Job) -> None:
        by[job.data] = job.worker or ""
        if job.data == 1:
            await let_go.wait()

    await add_row(queue, 5)
    first = used_to_short_handlers(Worker(queue, handle, name="first"))
    await first.start()
    await eventually(lambda: 1 in by and first.get_worker_metrics().released >= 3, "the jobs behind wait")
    closing = asyncio.create_task(first.close())
    async with Worker(queue, handle, name="second"):
        let_go.set()
        await closing
        assert await queue.wait_for_empty(10)
    assert by == {0: "first", 1: "first", 2: "second", 3: "second", 4: "second"}


@pytest.mark.parametrize("seconds", [0, 0.05], ids=["short", "long"])
async def test_a_job_of_a_row_can_report_progress_and_log(queue: Queue, seconds: float) -> None:
    async def handle(job: Job) -> None:
        if job.data == 1:
            await asyncio.sleep(seconds)
        await job.report_progress({"at": job.data})
        await job.log(f"line of {job.data}")

    jobs = await add_row(queue, 4)
    await used_to_short_handlers(Worker(queue, handle)).run(burst=True)
    for i, job in enumerate(jobs):
        await job.refresh()
        assert (job.state, job.progress) == ("completed", {"at": i})
        assert [line.text for line in job.logs] == [f"line of {i}"]
