"""Cancelling: a running handler is stopped wherever it runs, within a second, and its job never runs again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groupmq import ConfigurationError, Job, JobCancelled, JobFailed, JobNotFound, Queue, Worker, WrongState
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.fleet import Fleet
from tests.support.listening import listening
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Listener, Recorder, one_kind

AT_ONCE = 1.5
"""Seconds: "within a second", and something for a busy machine. Heartbeats come each 10 s here."""


class Waiting:
    """A handler that waits to be stopped, and notes how it ended."""

    def __init__(self) -> None:
        self.running: list[Any] = []
        self.ends: list[tuple[Any, float]] = []

    async def __call__(self, job: Job) -> None:
        self.running.append(job.data)
        try:
            await asyncio.Event().wait()
        finally:
            self.ends.append((job.data, time.monotonic()))


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


async def test_the_next_of_the_group_starts_only_after_the_cancelled_one_has_ended(queue: Queue, client: Any) -> None:
    order: list[str] = []
    ending = asyncio.Event()

    async def handle(job: Job) -> None:
        order.append(f"start {job.data}")
        try:
            if job.data == "first":
                await asyncio.Event().wait()
        finally:
            if job.data == "first":
                ending.set()
                await asyncio.sleep(0.2)  # cleaning up takes its time
            order.append(f"end {job.data}")

    async with listening(queue, client) as heard, Worker(queue, handle, concurrency=4):
        first = await queue.add("first", group_id="g")
        second = await queue.add("second", group_id="g")
        await eventually(lambda: order, "the first runs")
        await first.cancel()
        await ending.wait()
        assert await second.get_state() == "waiting"
        await second.result(5)
        await heard.has("drained")
    assert order == ["start first", "end first", "start second", "end second"]
    assert [kind for kind in heard.kinds() if kind != "added"] == ["active", "failed", "active", "completed", "drained"]


@pytest.mark.parametrize("delay", [None, 60])
async def test_what_has_not_started_is_removed(queue: Queue, delay: float | None) -> None:
    job = await queue.add(1, group_id="g", delay=delay)
    assert await job.cancel()
    assert await queue.get_job(job.id) is None
    assert await queue.get_unique_groups_count() == 0
    with pytest.raises(JobNotFound):
        await job.cancel()


async def test_what_is_over_is_left_alone(queue: Queue) -> None:
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


async def test_many_running_jobs_are_cancelled_at_once(queue: Queue) -> None:
    handle = Waiting()
    async with Worker(queue, handle, concurrency=100):
        jobs = await queue.add_many({"data": n, "group_id": f"g{n}"} for n in range(100))
        await eventually(lambda: len(handle.running) == 100, "all run")
        began = time.monotonic()
        await asyncio.gather(*(job.cancel() for job in jobs[:90]))
        await eventually(lambda: len(handle.ends) == 90, "those have ended", 2 * AT_ONCE)
        assert time.monotonic() - began < 2 * AT_ONCE
        assert sorted(data for data, _ in handle.ends) == list(range(90))
        await eventually(lambda: _failed(queue, 90), "and are recorded")
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
        await eventually(lambda: _failed(queue, 1), "and is recorded")
        assert (await queue.get_group("g")).state == "idle"
        assert await queue.get_unique_groups() == ["h"]
        assert await queue.cancel_group("g") == 0
        assert [data for data, _ in handle.ends] == ["running"]
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


async def test_a_handler_that_will_not_end_loses_its_slot(queue: Queue) -> None:
    handle, over = Waiting(), asyncio.Event()

    async def stubborn(job: Job) -> None:
        if job.data != "stubborn":
            return await handle(job)
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                handle.ends.append(("refused", time.monotonic()))

    async with Worker(queue, stubborn):
        job = await queue.add("stubborn", group_id="g")
        await queue.add("next", group_id="g")
        await eventually(lambda: _active(queue), "it runs")
        await job.cancel()
        await eventually(lambda: handle.running, "the next one runs", 5)
        assert (await job.refresh()).failed_reason == "cancelled"
        over.set()
        await queue.cancel_group("g")


async def _active(queue: Queue) -> bool:
    return await queue.get_active_count() == 1


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
    """The handler blocks the loop: nothing can be stopped before it lets go, and then at once."""
    recorder = Recorder()
    recorder.gate = asyncio.Event()
    hanging = threading.Event()

    async def handle(job: Job) -> None:
        if job.data == "hang":
            hanging.set()
            time.sleep(0.5)  # noqa: ASYNC251 - the loop is meant to hang
        await recorder(job)

    def cancel() -> None:
        from groupmq.sync import Queue as SyncQueue

        with SyncQueue(queue.name, queue.connection.endpoint.where) as other:
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
