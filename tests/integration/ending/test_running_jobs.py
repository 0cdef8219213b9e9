"""Ending a job by hand while its handler runs: the handler is stopped, and its group goes on when it has ended."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.listening import listening
from tests.support.waiting import eventually
from tests.support.workers import Listener

ENDS: dict[str, Callable[[Queue, Job], Awaitable[Any]]] = {
    "remove": lambda queue, job: queue.remove(job.id),
    "fail": lambda queue, job: queue.fail(job.id, "no use"),
    "purge": lambda queue, job: queue.purge(("active",)),
    "cancel": lambda queue, job: queue.cancel(job.id),
}
every_end = pytest.mark.parametrize("how", ENDS)


class Overlaps:
    """Records which jobs start and end, and whether two of a group run at once."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.running: set[str] = set()
        self.overlaps: list[str] = []

    def start(self, job: Job) -> None:
        self.log.append(f"start {job.data}")
        if self.running:
            self.overlaps.append(f"{job.data} beside {self.running}")
        self.running.add(job.data)

    def end(self, job: Job) -> None:
        self.running.discard(job.data)
        self.log.append(f"end {job.data}")


async def state_of(queue: Queue, job: Job) -> str | None:
    found = await queue.get_job(job.id)
    return found.state if found is not None else None


class Lingering:
    """A handler whose job "first" runs until it is stopped, and ends only when the test lets it."""

    def __init__(self) -> None:
        self.seen, self.stopped, self.may_end = Overlaps(), asyncio.Event(), asyncio.Event()

    async def __call__(self, job: Job) -> None:
        if job.data == "other":
            return
        self.seen.start(job)
        try:
            if job.data == "first":
                await asyncio.Event().wait()
        finally:
            if job.data == "first":
                self.stopped.set()
                await self.may_end.wait()
            self.seen.end(job)


@every_end
async def test_the_next_of_the_group_waits_for_a_handler_that_takes_its_time_to_end(
    queue: Queue, client: Any, how: str
) -> None:
    handle = Lingering()
    seen = handle.seen
    workers = [Worker(queue, handle, concurrency=4) for _ in range(2)]
    async with listening(queue, client) as heard, workers[0], workers[1]:
        first = await queue.add("first", group_id="g")
        second = await queue.add("second", group_id="g")
        await eventually(lambda: seen.log, "the first job runs")
        assert await ENDS[how](queue, first)
        if how != "cancel":
            assert await state_of(queue, first) == ("failed" if how == "fail" else None)
        await asyncio.wait_for(handle.stopped.wait(), 5)
        # A worker that takes this job would have taken the second before it, which is older, if its group were ready.
        await (await queue.add("other", group_id="h")).result(5)
        assert await second.get_state() == "waiting"
        assert (await queue.get_group("g")).state == "busy"
        handle.may_end.set()
        await second.result(5)
        await heard.has("drained")
    assert seen.overlaps == []
    assert seen.log == ["start first", "end first", "start second", "end second"]
    ended = "removed" if how in ("remove", "purge") else "failed"
    assert heard.kinds(first.id) == ["added", "active", ended]
    assert heard.kinds(second.id) == ["added", "active", "completed"]


@every_end
async def test_the_next_of_the_group_waits_for_a_thread_that_cannot_be_stopped(queue: Queue, how: str) -> None:
    seen, started, go_on = Overlaps(), threading.Event(), threading.Event()

    def handle(job: Job) -> None:
        seen.start(job)
        if job.data == "first":
            started.set()
            assert go_on.wait(20)
        seen.end(job)

    first = await queue.add("first", group_id="g")
    second = await queue.add("second", group_id="g")
    other = await queue.add("other", group_id="h", delay=0.05)
    worker = Worker(queue, handle)
    async with worker:
        await eventually(started.is_set, "the first job runs")
        assert await ENDS[how](queue, first)
        await eventually(lambda: not worker.is_processing() or "start other" in seen.log, "its slot is free", 5)
        seen.running.clear()  # a job of another group may run beside it
        await other.result(5)
        assert await state_of(queue, first) == (None if how in ("remove", "purge") else "failed")
        assert await second.get_state() == "waiting"
        go_on.set()
        await second.result(5)
    assert seen.log.index("end first") < seen.log.index("start second")


@every_end
async def test_the_group_goes_on_without_a_handler_that_will_not_end_when_its_lease_is_over(
    make_queue: MakeQueue, how: str
) -> None:
    queue = make_queue(job_timeout=1.5)
    started, over = asyncio.Event(), asyncio.Event()

    async def stubborn(job: Job) -> None:
        if job.data != "stubborn":
            return
        started.set()
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async with Worker(queue, stubborn):
        job = await queue.add("stubborn", group_id="g")
        second = await queue.add("next", group_id="g")
        await started.wait()
        began = time.monotonic()
        await ENDS[how](queue, job)
        await second.result(10)
        assert time.monotonic() - began > 0.3, "the group did not wait for the end of the lease"
        over.set()


@every_end
async def test_the_run_of_a_dead_worker_holds_its_group_as_long_as_its_lease(
    make_queue: MakeQueue, url: str, how: str
) -> None:
    queue = make_queue(job_timeout=1)
    with Fleet(url, queue.name, job_timeout=1) as fleet:
        [process] = fleet.start()
        job = await queue.add({"seconds": 60}, group_id="g", max_attempts=9)
        after = await queue.add("after", group_id="g")
        fleet.wait_for(lambda: fleet.lines("start"), "the job runs")
        fleet.kill(process)
        assert await ENDS[how](queue, job)

        async def handle(job: Job) -> None:
            assert job.data == "after"

        async with Worker(queue, handle):
            await after.result(10)


@pytest.mark.parametrize("how", ["remove", "fail", "purge"])
async def test_no_second_worker_gets_into_an_exclusive_queue_beside_a_handler_that_ends(
    make_queue: MakeQueue, how: str
) -> None:
    queue = make_queue(exclusive=True)
    handle = Lingering()
    first = await queue.add("first")
    second = await queue.add("second")
    async with Worker(queue, handle):
        await eventually(lambda: handle.seen.log, "the first job runs")
        async with Worker(queue, handle, blocking_timeout=0.1) as other:
            assert await ENDS[how](queue, first)
            await asyncio.wait_for(handle.stopped.wait(), 5)
            asked = other.get_worker_metrics().advances
            await eventually(lambda: other.get_worker_metrics().advances > asked + 1, "the other one asks for jobs")
            assert await second.get_state() == "waiting"
            handle.may_end.set()
            await second.result(5)
    assert handle.seen.overlaps == []


async def test_the_worker_of_a_removed_job_emits_lease_lost(queue: Queue) -> None:
    running = asyncio.Event()

    async def handle(job: Job) -> None:
        running.set()
        await asyncio.Event().wait()

    worker = Worker(queue, handle)
    heard = Listener(worker, "lease-lost", "failed", "completed", "retrying")
    async with worker:
        job = await queue.add(1, group_id="g")
        await running.wait()
        await job.remove()
        await eventually(lambda: heard.names() == ["lease-lost"], "the event is received")
        assert (await queue.get_job_counts()).active == 0


async def test_a_handler_may_remove_its_own_job(queue: Queue) -> None:
    after: list[str] = []

    async def handle(job: Job) -> None:
        if job.data == "first":
            assert await job.remove()
        after.append(job.data)

    async with Worker(queue, handle):
        first = await queue.add("first", group_id="g")
        second = await queue.add("second", group_id="g")
        await second.result(5)
        assert await queue.get_job(first.id) is None
    assert after[-1] == "second"
