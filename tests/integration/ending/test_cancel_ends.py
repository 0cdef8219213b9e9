"""Cancelling many jobs at once and whole groups; handlers that end in unusual ways, or not at all; dead workers."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from groupmq import Job, JobFailed, Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Recorder, Waiting

AT_ONCE = 1.5
"""Seconds: "within a second", and a margin for a busy machine. Heartbeats come only every 10 s here."""


async def test_many_running_jobs_are_cancelled_at_once(queue: Queue) -> None:
    handle = Waiting()
    async with Worker(queue, handle, concurrency=100):
        jobs = await queue.add_many({"data": n, "group_id": f"g{n}"} for n in range(100))
        await eventually(lambda: len(handle.running) == 100, "all run")
        began = time.monotonic()
        await asyncio.gather(*(job.cancel() for job in jobs[:90]))
        await eventually(lambda: len(handle.ends) == 90, "the cancelled handlers have ended", 2 * AT_ONCE)
        assert time.monotonic() - began < 2 * AT_ONCE
        assert sorted(handle.ends) == list(range(90))
        await eventually(lambda: _failed(queue, 90), "their failures are recorded")
        assert await queue.get_active_count() == 10
        assert await asyncio.gather(*(job.cancel() for job in jobs[90:])) == [True] * 10
        assert await queue.wait_for_empty(AT_ONCE)


async def _failed(queue: Queue, n: int) -> bool:
    return await queue.get_failed_count() == n


async def test_a_whole_group_is_cancelled_and_no_other(queue: Queue) -> None:
    handle = Waiting()
    async with Worker(queue, handle, concurrency=4):
        await queue.add("running", group_id="g")
        await queue.add("other", group_id="h")
        await eventually(lambda: len(handle.running) == 2, "both run")
        await queue.add_many({"data": n, "group_id": "g"} for n in range(10))
        await queue.add_many({"data": n, "group_id": "g", "delay": 60} for n in range(3))
        assert await queue.cancel_group("g") == 14
        await eventually(lambda: handle.ends, "the running one has ended", AT_ONCE)
        await eventually(lambda: _failed(queue, 1), "its failure is recorded")
        assert (await queue.get_group("g")).state == "idle"
        assert await queue.get_unique_groups() == ["h"]
        assert await queue.cancel_group("g") == 0
        assert handle.ends == ["running"]
        assert await queue.cancel_group("h") == 1
        assert await queue.wait_for_empty(AT_ONCE)


async def test_a_handler_that_ends_in_its_own_way_is_recorded_as_it_ended(queue: Queue) -> None:
    started = asyncio.Event()

    async def handle(job: Job) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "saved what there was"
        return "never"

    async with Worker(queue, handle):
        job = await queue.add(1)
        await started.wait()
        await job.cancel()
        assert await job.result(5) == "saved what there was"


@pytest.mark.parametrize("error", [ValueError("while ending"), RuntimeError("x")])
async def test_whatever_a_stopped_handler_raises_the_reason_is_that_it_was_cancelled(
    queue: Queue, error: Exception
) -> None:
    started = asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise error

    async with Worker(queue, handle):
        job = await queue.add(1, max_attempts=5)
        await started.wait()
        await job.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            await job.result(5)


async def test_hard_timeouts_are_what_they_were(queue: Queue) -> None:
    handle = Waiting()
    async with Worker(queue, handle, concurrency=2):
        timed = await queue.add("timed", timeout=0.1, max_attempts=1)
        with pytest.raises(JobFailed, match="ran longer than its timeout"):
            await timed.result(5)
        both = await queue.add("both", timeout=30, max_attempts=1)
        await eventually(lambda: "both" in handle.running, "it runs")
        await both.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            await both.result(5)


async def test_a_thread_that_runs_out_of_time_sees_its_cancel_event_set(queue: Queue) -> None:
    told = threading.Event()

    def handle(job: Job) -> None:
        if job.cancel_event.wait(20) and job.cancelled:
            told.set()

    async with Worker(queue, handle):
        job = await queue.add(1, timeout=0.1, max_attempts=1)
        with pytest.raises(JobFailed, match="ran longer than its timeout"):
            await job.result(5)
        await eventually(told.is_set, "the thread has received the request to stop", AT_ONCE)


async def test_a_cancelled_job_of_a_dead_worker_fails_when_its_lease_expires(make_queue: MakeQueue, url: str) -> None:
    queue = make_queue(job_timeout=1)
    with Fleet(url, queue.name, job_timeout=1) as fleet:
        [process] = fleet.start()
        job = await queue.add({"seconds": 60}, group_id="g", max_attempts=9)
        after = await queue.add("after", group_id="g")
        fleet.wait_for(lambda: fleet.lines("start"), "the job runs")
        fleet.kill(process)
        assert await job.cancel()
        recorder = Recorder()
        async with Worker(queue, recorder):
            with pytest.raises(JobFailed, match="cancelled"):
                await job.result(10)
            await after.result(10)
        assert recorder.started == ["after"]


async def test_a_cancel_reaches_a_worker_whose_loop_hangs_when_it_goes_on(queue: Queue) -> None:
    """While the handler blocks the loop, nothing can be stopped. As soon as it returns, the run is stopped."""
    recorder = Recorder()
    recorder.gate = asyncio.Event()
    hanging = threading.Event()

    async def handle(job: Job) -> None:
        if job.data == "hang":
            hanging.set()
            time.sleep(0.5)  # noqa: ASYNC251 - the loop is meant to hang
        await recorder(job)

    def cancel() -> None:
        with SyncQueue(queue.name, queue._connection.endpoint.where) as other:
            assert hanging.wait(10)
            wait_until(lambda: other.get_active_count() == 1, "it runs")
            assert other.cancel("hang")

    thread = threading.Thread(target=cancel)
    thread.start()
    async with Worker(queue, handle):
        job = await queue.add("hang", job_id="hang")
        with pytest.raises(JobFailed, match="cancelled"):
            await job.result(5)
    thread.join()
