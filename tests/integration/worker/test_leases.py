"""Leases that live as long as their handlers do, and hard timeouts that end handlers which do not."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time

import pytest

from groupmq import HandlerTimeout, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.leases import LEASE, LONG, Watch
from tests.support.parts import parts_of
from tests.support.waiting import eventually
from tests.support.workers import Listener, Recorder, one_kind


async def run_once(queue: Queue, worker: Worker, job: Job) -> Listener:
    """Run the worker until the queue is empty, beside a second worker that would take any job whose lease expires."""
    heard = Listener(worker, "completed", "retrying", "failed", "lease-lost")
    thief = Worker(queue, Recorder())
    stolen = Listener(thief, "active", "stalled")
    async with worker:
        await eventually(worker.is_processing, "the job runs")
        async with thief:
            assert await queue.wait_for_empty(15)
    assert stolen.heard == []
    await job.refresh()
    return heard


@one_kind
async def test_heartbeats_keep_a_job_that_runs_longer_than_its_lease(make_queue: MakeQueue) -> None:
    queue = make_queue(job_timeout=LEASE)
    job = await queue.add(1, group_id="g", max_attempts=1)
    heard = await run_once(queue, Worker(queue, Recorder(seconds=LONG)), job)
    assert heard.names() == ["completed"]


@one_kind
@pytest.mark.parametrize("how", ["sleep", "busy"])
async def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(make_queue: MakeQueue, how: str) -> None:
    queue = make_queue(job_timeout=LEASE)

    def block() -> None:
        if how == "sleep":
            time.sleep(LONG)
            return
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            pass

    async def handle(job: Job) -> None:
        block()

    job = await queue.add(1, group_id="g", max_attempts=1)
    with Watch(queue) as watch:
        async with Worker(queue, handle):
            assert await queue.wait_for_empty(15)
    assert watch.stalled == []
    await job.refresh()
    assert (job.state, job.attempts_made) == ("completed", 1)


@one_kind
async def test_an_ended_run_keeps_its_lease_until_its_outcome_is_recorded(make_queue: MakeQueue) -> None:
    """The first handler ends. Before its outcome is sent, the second one hangs the loop for longer than the lease."""
    queue = make_queue(job_timeout=LEASE)
    first_runs, first_ends = asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        if job.data == "first":
            first_runs.set()
            await first_ends.wait()
        else:
            await first_runs.wait()
            first_ends.set()
            await asyncio.sleep(0)
            time.sleep(LONG)  # noqa: ASYNC251 - the loop is meant to hang

    jobs = [await queue.add(data, group_id=data, max_attempts=1) for data in ("first", "second")]
    worker = Worker(queue, handle, concurrency=2)
    heard = Listener(worker, "completed", "lease-lost", "stalled")
    with Watch(queue) as watch:
        async with worker:
            await eventually(lambda: len(heard.heard) >= 2, "both ended", timeout=15)
    assert watch.stalled == []
    assert heard.names() == ["completed", "completed"]
    assert [await job.get_state() for job in jobs] == ["completed", "completed"]


async def test_a_hard_timeout_cancels_an_async_handler(queue: Queue) -> None:
    cancelled: list[int] = []

    async def handle(job: Job) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(job.attempt)
            raise

    worker = Worker(queue, handle)
    heard = Listener(worker, "retrying", "failed")
    job = await queue.add(1, group_id="g", timeout=0.1, max_attempts=2, backoff=0)
    start = time.monotonic()
    await worker.run(burst=True)
    assert 0.2 <= time.monotonic() - start < 5
    assert cancelled == [1, 2]
    assert heard.names() == ["retrying", "failed"]
    error = heard.args("retrying")[0][1]
    assert isinstance(error, HandlerTimeout)
    assert error.job_id == job.id
    await job.refresh()
    assert "longer than its timeout of 0.1 s" in (job.failed_reason or "")


async def test_a_handler_within_its_timeout_is_left_alone(queue: Queue) -> None:
    job = await queue.add(1, timeout=30)
    await Worker(queue, Recorder(seconds=0.05)).run(burst=True)
    assert await job.get_state() == "completed"


@one_kind
async def test_a_handler_that_swallows_its_cancellation_loses_its_slot_anyway(queue: Queue) -> None:
    let_go = asyncio.Event()
    started: list[str] = []

    async def handle(job: Job) -> None:
        started.append(job.data)
        while job.data == "stubborn" and not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    worker = Worker(queue, handle)
    heard = Listener(worker, "completed", "failed", "lease-lost")
    stubborn = await queue.add("stubborn", group_id="g", timeout=0.1, max_attempts=1)
    await queue.add("next", group_id="g")
    async with worker:
        await eventually(lambda: started == ["stubborn", "next"], "the slot and the group are free again")
        assert await queue.wait_for_empty(5)
        let_go.set()
    await stubborn.refresh()
    assert (stubborn.state, stubborn.attempts_made) == ("failed", 1)
    assert heard.names() == ["failed", "completed"]


async def test_a_thread_past_its_timeout_is_left_behind_and_its_slot_is_free(queue: Queue) -> None:
    let_go = threading.Event()
    seen: list[str] = []

    def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == "stuck":
            let_go.wait(30)

    worker = Worker(queue, handle, concurrency=1)
    stuck = await queue.add("stuck", group_id="g", timeout=0.1, max_attempts=1)
    after = [await queue.add(f"after {i}", group_id="g") for i in range(3)]
    try:
        await worker.run(burst=True)
        assert seen == ["stuck", "after 0", "after 1", "after 2"]
        await stuck.refresh()
        assert stuck.state == "failed"
        assert [await job.get_state() for job in after] == ["completed"] * 3
    finally:
        let_go.set()


@one_kind
async def test_a_process_past_its_timeout_is_killed_and_the_next_job_runs(queue: Queue) -> None:
    worker = Worker(queue, handlers.sleep, executor="process")
    stuck = await queue.add(60, group_id="g", timeout=1.5, max_attempts=1)
    after = await queue.add(0, group_id="g")
    async with worker:
        assert await queue.wait_for_empty(15)
    await stuck.refresh()
    await after.refresh()
    assert (stuck.state, after.state) == ("failed", "completed")
    assert after.return_value != os.getpid()
    await eventually(lambda: not multiprocessing.active_children(), "both processes are gone")


async def test_a_worker_cut_off_from_heartbeats_cannot_record_its_outcome(make_queue: MakeQueue) -> None:
    queue = make_queue(job_timeout=0.3)
    handler = Recorder()
    handler.gate = asyncio.Event()
    worker = Worker(queue, handler, maintenance=False)
    heard = Listener(worker, "lease-lost", "completed")
    job = await queue.add(1, group_id="g", max_attempts=5)
    async with worker:
        await eventually(worker.is_processing, "the job runs")
        parts_of(worker).heartbeat.stop()

        async def taken_back() -> bool:
            return bool(await queue.check_stalled_jobs())

        await eventually(taken_back, "the lease expired")
        await queue.pause()
        handler.gate.set()
        await eventually(lambda: heard.heard, "the worker reported")
    assert heard.names() == ["lease-lost"]
    await job.refresh()
    assert (job.state, job.attempts_made, job.stalls) == ("waiting", 1, 1)


@pytest.mark.parametrize(
    ("max_stalled", "max_attempts", "state"), [(0, 9, "failed"), (None, 1, "failed"), (None, 2, "waiting")]
)
async def test_a_stall_uses_an_attempt_and_max_stalled_bounds_stalls(
    make_queue: MakeQueue, max_stalled: int | None, max_attempts: int, state: str
) -> None:
    queue = make_queue(job_timeout=0.3)
    handler = Recorder()
    handler.gate = asyncio.Event()
    holder = Worker(queue, handler, maintenance=False)
    job = await queue.add("stalls", group_id="g", max_attempts=max_attempts)
    behind = await queue.add("behind", group_id="g")
    async with holder:
        await eventually(holder.is_processing, "the job runs")
        parts_of(holder).heartbeat.stop()
        second = Recorder()
        watcher = Worker(queue, second, max_stalled=max_stalled)
        heard = Listener(watcher, "stalled")
        async with watcher:
            await eventually(lambda: heard.heard, "the stall was seen")
            assert await queue.wait_for_empty(10)
        handler.gate.set()
    await job.refresh()
    if state == "failed":
        assert (job.state, job.attempts_made) == ("failed", 1)
        assert "stalled" in (job.failed_reason or "")
        assert second.started == ["behind"]
    else:
        assert (job.state, job.attempts_made) == ("completed", 2)
        assert second.started == ["stalls", "behind"]
    assert await behind.get_state() == "completed"
