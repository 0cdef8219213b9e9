"""The end of a worker: it takes nothing new, loses nothing, and ends in time."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial
from operator import contains

import pytest

from groupmq import GroupMQError, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder, looked_once, one_kind

SLACK = 1.0
"""close(t) returns within t + 1 s; the machine may be busy, so tests allow another second."""


async def closing_time(worker: Worker, timeout: float) -> float:
    start = time.monotonic()
    await worker.close(timeout=timeout)
    return time.monotonic() - start


async def test_close_takes_nothing_new_from_that_moment_however_long_the_backlog(queue: Queue) -> None:
    handler = Recorder(seconds=0.001)
    await queue.add_many([{"data": i, "group_id": f"g{i % 3}"} for i in range(3000)])
    worker = Worker(queue, handler, concurrency=3)
    await worker.start()
    await eventually(lambda: len(handler.ended) > 20, "the worker has run some jobs")
    closing = asyncio.create_task(worker.close())
    await asyncio.sleep(0)
    # The handlers of some active jobs may not have been called yet. They are called nevertheless, so these jobs count.
    started = len(handler.ended) + len(worker.get_current_jobs())
    await closing
    assert len(handler.started) == started
    assert sorted(handler.ended) == sorted(handler.started)
    counts = await queue.get_job_counts()
    assert (counts.active, counts.waiting) == (0, 3000 - started)


async def test_close_waits_for_what_runs_and_records_it(queue: Queue) -> None:
    handler = Recorder(seconds=0.3)
    worker = Worker(queue, handler)
    heard = Listener(worker, "completed", "graceful-timeout", "closed")
    job = await queue.add(1)
    await worker.start()
    await eventually(worker.is_processing, "the job runs")
    await worker.close(timeout=10)
    assert heard.names() == ["completed", "closed"]
    assert await job.get_state() == "completed"
    assert worker.is_closed()


@pytest.mark.parametrize("timeout", [0, 0.3])
async def test_unfinished_jobs_are_cancelled_and_given_back_at_once_without_using_an_attempt(
    queue: Queue, timeout: float
) -> None:
    handler = Recorder(seconds=60)
    worker = Worker(queue, handler, concurrency=2)
    heard = Listener(worker, "graceful-timeout", "retrying", "failed", "lease-lost", "closed")
    jobs = [await queue.add(i, group_id=f"g{i}", max_attempts=1) for i in range(2)]
    await queue.add("behind", group_id="g0")
    await worker.start()
    await eventually(lambda: len(handler.started) == 2, "both run")
    took = await closing_time(worker, timeout)
    assert timeout <= took < timeout + 1 + SLACK
    assert heard.names() == ["graceful-timeout", "graceful-timeout", "closed"]
    assert {args[0].id for args in heard.args("graceful-timeout")} == {job.id for job in jobs}
    assert worker.get_worker_metrics().released == 2
    for job in jobs:
        await job.refresh()
        assert (job.state, job.attempts_made) == ("waiting", 0)
    again = Recorder()
    await Worker(queue, again).run(burst=True)
    assert [(data, attempt) for data, attempt in zip(again.started, again.attempts, strict=True)] == [
        (0, 1),
        (1, 1),
        ("behind", 1),
    ]


async def test_a_handler_that_ends_well_while_it_is_cancelled_counts_as_completed(queue: Queue) -> None:
    async def handle(job: Job) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "saved"
        return "slept"

    job = await queue.add(1)
    worker = Worker(queue, handle)
    await worker.start()
    await eventually(worker.is_processing, "the job runs")
    await worker.close(timeout=0)
    await job.refresh()
    assert (job.state, job.return_value) == ("completed", "saved")


async def test_a_handler_that_will_not_end_is_left_behind_and_its_job_given_back(queue: Queue) -> None:
    let_go = asyncio.Event()

    async def handle(job: Job) -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    job = await queue.add(1, group_id="g", max_attempts=1)
    worker = Worker(queue, handle)
    await worker.start()
    await eventually(worker.is_processing, "the job runs")
    assert await closing_time(worker, 0) < 1 + SLACK
    await job.refresh()
    assert (job.state, job.attempts_made) == ("waiting", 0)
    let_go.set()


async def test_a_thread_that_will_not_end_does_not_hold_close_up(queue: Queue) -> None:
    let_go = threading.Event()

    def handle(job: Job) -> None:
        let_go.wait(30)

    job = await queue.add(1, group_id="g")
    worker = Worker(queue, handle)
    await worker.start()
    await eventually(worker.is_processing, "the job runs")
    try:
        assert await closing_time(worker, 0.1) < 1.1 + SLACK
        await job.refresh()
        assert (job.state, job.attempts_made) == ("waiting", 0)
    finally:
        let_go.set()


async def test_close_may_be_called_again_and_at_the_same_time(queue: Queue) -> None:
    worker = Worker(queue, Recorder())
    heard = Listener(worker, "closed")
    await worker.start()
    await asyncio.gather(*(worker.close() for _ in range(5)))
    await worker.close()
    assert heard.names() == ["closed"]
    with pytest.raises(GroupMQError, match="closed"):
        await worker.start()


async def test_a_worker_that_never_started_can_be_closed_twice(queue: Queue) -> None:
    worker = Worker(queue, Recorder())
    await worker.close()
    await worker.close()
    assert worker.is_closed()


async def test_a_worker_closed_while_it_starts_takes_nothing(queue: Queue) -> None:
    handler = Recorder()
    await queue.add_many([{"data": i} for i in range(10)])
    worker = Worker(queue, handler)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    await worker.close()
    async with asyncio.timeout(5):
        await running
    assert worker.is_closed()
    assert handler.started == []
    assert (await queue.get_job_counts()).waiting == 10


async def test_run_returns_when_the_worker_is_closed(queue: Queue) -> None:
    worker = Worker(queue, Recorder())
    running = asyncio.create_task(worker.run())
    await queue.add(1)
    await eventually(lambda: worker.get_worker_metrics().completed == 1, "the job ran")
    await worker.close()
    async with asyncio.timeout(5):
        await running


async def test_a_cancelled_run_gives_everything_back_and_stays_cancelled(queue: Queue) -> None:
    handler = Recorder(seconds=60)
    worker = Worker(queue, handler)
    job = await queue.add(1, group_id="g", max_attempts=1)
    running = asyncio.create_task(worker.run())
    await eventually(worker.is_processing, "the job runs")
    start = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - start < 1 + SLACK
    assert worker.is_closed()
    await job.refresh()
    assert (job.state, job.attempts_made) == ("waiting", 0)


async def test_async_with_starts_and_closes_the_worker(queue: Queue) -> None:
    async with Worker(queue, Recorder()) as worker:
        job = await queue.add(1)
        assert await queue.wait_for_empty(5)
    assert worker.is_closed()
    assert await job.get_state() == "completed"


async def test_a_worker_made_by_process_is_closed_with_its_queue(make_queue: MakeQueue) -> None:
    queue = make_queue()
    handler = Recorder()
    worker = await queue.process(handler, 2)
    await queue.add(1)
    assert await queue.wait_for_empty(5)
    await queue.close()
    assert worker.is_closed()


async def test_an_idle_worker_closes_at_once_though_it_blocks(queue: Queue) -> None:
    worker = Worker(queue, Recorder(), blocking_timeout=30)
    await worker.start()
    await eventually(lambda: worker.get_worker_metrics().advances, "the worker found nothing")
    assert await closing_time(worker, 30) < 1 + SLACK


async def test_a_closing_worker_does_not_keep_hints_from_the_others(queue: Queue) -> None:
    """In each round an idle worker leaves while a job is added. The worker that stays must start it without a poll."""
    handler = Recorder()
    async with Worker(queue, handler, blocking_timeout=30):
        for i in range(15):
            leaver = Worker(queue, handler, blocking_timeout=30)
            await leaver.start()
            await looked_once(leaver)
            await asyncio.gather(leaver.close(), queue.add(i))
            await handler.has_run(i)


async def test_a_draining_worker_passes_hints_on(queue: Queue) -> None:
    """It has free slots and still blocks on the marker, but no longer takes jobs."""
    gate = asyncio.Event()
    started: list[str] = []

    async def handle(job: Job) -> None:
        started.append(job.data)
        if job.data == "long":
            await gate.wait()

    draining = Worker(queue, handle, concurrency=4, blocking_timeout=30)
    await draining.start()
    await queue.add("long")
    await eventually(lambda: started == ["long"], "the long job runs")
    await eventually(lambda: draining.get_worker_metrics().advances >= 2, "the worker blocks again")
    closing = asyncio.create_task(draining.close())
    async with Worker(queue, handle, blocking_timeout=30) as other:
        await looked_once(other)
        for i in range(5):
            await queue.add(f"short {i}")
            await eventually(partial(contains, started, f"short {i}"), "a short job started", timeout=5)
        gate.set()
        await closing


@one_kind
async def test_a_handler_that_blocks_the_loop_delays_close_only_as_long_as_it_blocks(queue: Queue) -> None:
    started, hang = asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        await hang.wait()
        time.sleep(0.8)  # noqa: ASYNC251 - the loop is meant to hang

    job = await queue.add(1)
    worker = Worker(queue, handle)
    await worker.start()
    await started.wait()
    hang.set()  # the handler goes on in the next tick, after close() has been called
    assert 0.7 < await closing_time(worker, 5) < 3
    assert await job.get_state() == "completed"


async def test_a_second_close_shortens_the_first(queue: Queue) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        await release.wait()

    job = await queue.add(1, group_id="g")
    worker = Worker(queue, handle)
    await worker.start()
    await started.wait()
    patient = asyncio.create_task(worker.close(timeout=60))
    await asyncio.sleep(0)
    assert not patient.done()
    await worker.close(timeout=0)
    await patient
    found = await queue.require_job(job.id)
    assert (found.state, found.attempts_made) == ("waiting", 0)
