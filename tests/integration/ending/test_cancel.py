"""Cancelling: a running handler is stopped wherever it runs, within a second, and its job never runs again."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from groupmq import ConfigurationError, Job, JobCancelled, JobFailed, JobNotFound, Queue, Worker, WrongState
from tests.support import handlers
from tests.support.fleet import Fleet
from tests.support.waiting import eventually
from tests.support.workers import Listener, Waiting, one_kind

AT_ONCE = 1.5
"""Seconds: "within a second", and a margin for a busy machine. Heartbeats come only every 10 s here."""


async def check_cancelled(queue: Queue, job: Job, stopped: Callable[[], object]) -> None:
    began = time.monotonic()
    assert await queue.cancel(job.id)
    await eventually(stopped, "the handler has ended", AT_ONCE)
    with pytest.raises(JobFailed, match="cancelled") as caught:
        await job.result(AT_ONCE)
    assert time.monotonic() - began < AT_ONCE
    assert caught.value.reason == "cancelled"
    await job.refresh()
    assert (job.state, job.failed_reason, job.attempts_made) == ("failed", "cancelled", 1)


async def test_an_async_handler_is_cancelled_and_never_tried_again(queue: Queue) -> None:
    handle, errors = Waiting(), list[tuple[BaseException, Job]]()
    worker = Worker(queue, handle, on_error=lambda error, job: errors.append((error, job)))
    heard = Listener(worker, "failed", "retrying", "completed", "lease-lost")
    async with worker:
        job = await queue.add("x", max_attempts=5)
        await eventually(lambda: handle.running, "the handler runs")
        await check_cancelled(queue, job, lambda: handle.ends)
    assert heard.names() == ["failed"]
    assert [(type(error), job.id) for error, job in errors] == [(JobCancelled, job.id)]
    assert (await queue.get_failures())[0].error == "cancelled"


async def test_a_job_is_cancelled_by_its_own_method(queue: Queue) -> None:
    handle = Waiting()
    async with Worker(queue, handle):
        job = await queue.add("x")
        await eventually(lambda: handle.running, "the handler runs")
        assert await job.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            await job.result(5)


async def test_a_handler_in_a_thread_sees_that_it_is_to_end(queue: Queue) -> None:
    started, ended = threading.Event(), threading.Event()

    def handle(job: Job) -> None:
        seen = [job.cancelled]
        started.set()
        while not job.cancelled:
            time.sleep(0.005)
        if seen == [False]:
            ended.set()

    async with Worker(queue, handle):
        job = await queue.add("x", max_attempts=5)
        await eventually(started.is_set, "the handler runs")
        await check_cancelled(queue, job, ended.is_set)


async def test_what_a_thread_raises_when_it_sees_that_it_is_to_end_is_one_debug_line(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    started = threading.Event()

    def handle(job: Job) -> None:
        started.set()
        while not job.cancelled:
            time.sleep(0.005)
        raise RuntimeError("stopped")

    with caplog.at_level(logging.DEBUG):
        async with Worker(queue, handle):
            job = await queue.add("x", job_id="j")
            await eventually(started.is_set, "the handler runs")
            await check_cancelled(queue, job, lambda: "RuntimeError: stopped" in caplog.text)
        gc.collect()  # asyncio logs an error that was never retrieved when its future is deleted
    assert [one.getMessage() for one in caplog.records if one.name == "asyncio" and one.levelno > logging.DEBUG] == []
    told = [one for one in caplog.records if "RuntimeError: stopped" in one.getMessage()]
    assert [(one.levelname, one.exc_info) for one in told] == [("DEBUG", None)]
    assert "job 'j'" in told[0].getMessage()


async def test_a_handler_in_a_thread_may_wait_to_be_ended(queue: Queue) -> None:
    started, ended = threading.Event(), threading.Event()

    def handle(job: Job) -> None:
        event = job.cancel_event
        started.set()
        assert event.wait(20)
        assert job.cancelled
        assert job.cancel_event is event
        ended.set()

    async with Worker(queue, handle):
        job = await queue.add("x")
        await eventually(started.is_set, "the handler runs")
        await check_cancelled(queue, job, ended.is_set)


async def test_a_thread_that_does_not_look_is_left_behind(queue: Queue) -> None:
    started, go_on = threading.Event(), threading.Event()

    def handle(job: Job) -> None:
        started.set()
        assert go_on.wait(20)

    async with Worker(queue, handle):
        job = await queue.add("x")
        await eventually(started.is_set, "the handler runs")
        await check_cancelled(queue, job, lambda: True)
        go_on.set()


@one_kind
async def test_a_handler_in_a_process_of_its_own_is_ended_with_it(queue: Queue, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    async with Worker(queue, handlers.sleep_and_mark, executor="process"):
        job = await queue.add([str(mark), 3])
        await eventually(mark.exists, "the handler runs")
        await check_cancelled(queue, job, lambda: True)
        again = await queue.add([str(tmp_path / "other"), 0])
        await again.result(10)
    assert [path.name for path in sorted(mark.parent.iterdir())].count("mark.ended") == 0


async def test_whichever_process_runs_it(queue: Queue, url: str) -> None:
    with Fleet(url, queue.name, concurrency=3) as fleet:
        fleet.start(2)
        jobs = [await queue.add({"seconds": 60}, group_id=f"g{n}", max_attempts=5) for n in range(6)]
        fleet.wait_for(lambda: len(fleet.lines("start")) == 6, "all run")
        assert len({line["pid"] for line in fleet.lines("start")}) == 2
        began = time.monotonic()
        assert all(await asyncio.gather(*(queue.cancel(job.id) for job in jobs)))
        ended = await asyncio.gather(*(job.result(AT_ONCE) for job in jobs), return_exceptions=True)
        assert time.monotonic() - began < AT_ONCE
        assert [str(error).endswith("cancelled") for error in ended] == [True] * 6
        fleet.wait_for(lambda: len(fleet.lines("end")) == 6, "all have ended")
        assert {line["how"] for line in fleet.lines("end")} == {"cancelled"}


@pytest.mark.parametrize("delay", [None, 60])
async def test_cancelling_a_job_that_has_not_started_removes_it(queue: Queue, delay: float | None) -> None:
    job = await queue.add(1, group_id="g", delay=delay)
    assert await job.cancel()
    assert await queue.get_job(job.id) is None
    assert await queue.get_unique_groups_count() == 0
    with pytest.raises(JobNotFound):
        await job.cancel()


async def test_a_job_that_has_ended_is_not_cancelled(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        assert job.data == "good"

    good, bad = await queue.add("good"), await queue.add("bad", max_attempts=1)
    await Worker(queue, handle).run(burst=True)
    for job, state in ((good, "completed"), (bad, "failed")):
        with pytest.raises(WrongState) as caught:
            await job.cancel()
        assert (caught.value.actual, caught.value.expected) == (state, ("waiting", "delayed", "active"))
        assert await job.get_state() == state
    with pytest.raises(JobNotFound):
        await queue.cancel("nobody")
    with pytest.raises(ConfigurationError, match="job_id"):
        await queue.cancel(5)  # type: ignore[arg-type]
