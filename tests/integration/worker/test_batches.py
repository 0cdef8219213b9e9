"""Handlers of batches: several jobs of one group in one call, each with its own lease, outcome and events."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from groupmq import BatchFailed, ConfigurationError, FailJob, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.rows import add_row, attempts_made
from tests.support.waiting import eventually
from tests.support.workers import Listener, looked_once, one_kind


class Batches:
    """A handler that records the data of each batch, and does what `act` says."""

    def __init__(self, act: Any = None) -> None:
        self.seen: list[list[Any]] = []
        self.ended: list[list[Any]] = []
        self.act = act

    async def __call__(self, jobs: list[Job]) -> Any:
        self.seen.append([job.data for job in jobs])
        try:
            if self.act is not None:
                value = await self.act(jobs)
                return value if isinstance(value, list) else None
        finally:
            self.ended.append([job.data for job in jobs])

    def flat(self) -> list[Any]:
        return [data for batch in self.seen for data in batch]


class Stuck(Batches):
    """Waits to be stopped."""

    def __init__(self) -> None:
        super().__init__(lambda jobs: asyncio.Event().wait())


async def burst(queue: Queue, handle: Any, **options: Any) -> Worker:
    worker = Worker(queue, handle, **{"batch": 10, **options})
    await worker.run(burst=True)
    return worker


async def test_a_handler_gets_the_jobs_of_one_group_in_order(queue: Queue) -> None:
    await add_row(queue, 5, "a")
    await add_row(queue, 12, "b")
    handle = Batches()
    worker = await burst(queue, handle)
    assert sorted(handle.seen) == sorted([[*range(5)], [*range(10)], [10, 11]])
    assert worker.get_worker_metrics().completed == 17


async def test_jobs_without_a_group_come_in_batches_too(queue: Queue) -> None:
    await queue.add_many([{"data": n} for n in range(25)])
    handle = Batches()
    await burst(queue, handle, concurrency=3)
    assert sorted(map(len, handle.seen)) == [5, 10, 10]
    assert sorted(n for batch in handle.seen for n in batch) == [*range(25)]


async def test_each_job_has_the_result_that_stands_at_its_position(queue: Queue) -> None:
    jobs = await add_row(queue, 4)
    handle = Batches()

    async def double(jobs: list[Job]) -> list[int]:
        return [2 * job.data for job in jobs]

    handle.act = double
    await burst(queue, handle)
    assert [await job.result(1) for job in jobs] == [0, 2, 4, 6]
    assert len(handle.seen) == 1


async def test_every_job_of_a_batch_has_its_events_and_its_attempt(queue: Queue) -> None:
    told: list[tuple[str, str | None]] = []
    for kind in ("active", "completed"):
        queue.on(kind, lambda event: told.append((event.kind, event.job_id)))
    jobs = await add_row(queue, 3)
    worker = Worker(queue, Batches(), batch=10)
    heard = Listener(worker, "active", "completed")
    await worker.run(burst=True)
    assert heard.names() == ["active"] * 3 + ["completed"] * 3
    await eventually(lambda: len(told) == 6, "the events have arrived")
    assert told == [(kind, job.id) for kind in ("active", "completed") for job in jobs]
    assert await attempts_made(jobs) == [1, 1, 1]


async def test_batch_failed_completes_what_is_before_and_leaves_what_is_behind(make_queue: MakeQueue) -> None:
    queue = make_queue(backoff=0.01)
    jobs = await add_row(queue, 5)

    async def fail_once(jobs: list[Job]) -> None:
        if jobs[0].attempt == 1 and len(jobs) == 5:
            raise BatchFailed(at=2, reason="the third is bad")

    handle = Batches(fail_once)
    worker = Worker(queue, handle, batch=10)
    heard = Listener(worker, "completed", "retrying")
    async with worker:
        assert await queue.wait_for_empty(5)
    assert handle.seen == [[0, 1, 2, 3, 4], [2], [3, 4]]
    assert heard.names() == ["completed", "completed", "retrying", "completed", "completed", "completed"]
    assert await attempts_made(jobs) == [1, 1, 2, 1, 1]


async def test_a_plain_exception_retries_the_first_job_alone(make_queue: MakeQueue) -> None:
    queue = make_queue(backoff=0.01)
    jobs = await add_row(queue, 3)

    async def broken(jobs: list[Job]) -> None:
        if len(jobs) == 3:
            raise FailJob("which one?")

    handle = Batches(broken)
    async with Worker(queue, handle, batch=10):
        assert await queue.wait_for_empty(5)
    assert handle.seen == [[0, 1, 2], [0], [1, 2]]
    assert await attempts_made(jobs) == [2, 1, 1]


async def test_a_list_may_hold_an_exception_for_a_job(make_queue: MakeQueue) -> None:
    queue = make_queue(backoff=0.01)
    jobs = await add_row(queue, 3)

    async def one_bad(jobs: list[Job]) -> list[Any]:
        return [FailJob("no use") if job.data == 1 else job.data for job in jobs]

    handle = Batches(one_bad)
    await burst(queue, handle)
    assert [(await job.refresh()).state for job in jobs] == ["completed", "failed", "completed"]
    assert handle.seen == [[0, 1, 2]]


async def test_def_handlers_get_batches_in_a_thread(queue: Queue) -> None:
    jobs = await add_row(queue, 3)
    threads: list[int] = []

    def handle(jobs: list[Job]) -> list[int]:
        threads.append(threading.get_ident())
        jobs[0].log("from the thread")
        return [job.data for job in jobs]

    await burst(queue, handle)
    assert [await job.result(1) for job in jobs] == [0, 1, 2]
    assert threads[0] != threading.get_ident()


async def test_a_batch_uses_one_slot(queue: Queue) -> None:
    for group in "abc":
        await add_row(queue, 3, group)
    gate, most = asyncio.Event(), 0
    handle = Batches(lambda jobs: gate.wait())
    async with Worker(queue, handle, batch=10, concurrency=2) as worker:
        await eventually(lambda: len(handle.seen) == 2, "two batches run")
        most = len(worker.get_current_jobs())
        assert (await queue.get_job_counts()).active == 6
        gate.set()
        assert await queue.wait_for_empty(5)
    assert most == 6


# Stopping


async def test_closing_gives_a_whole_batch_back_without_an_attempt(queue: Queue) -> None:
    jobs = await add_row(queue, 3)
    handle = Stuck()
    worker = Worker(queue, handle, batch=10)
    late = Listener(worker, "graceful-timeout")
    async with worker:
        await eventually(lambda: handle.seen, "the batch runs")
        await worker.close(timeout=0)
    assert late.names() == ["graceful-timeout"] * 3
    assert await attempts_made(jobs) == [0, 0, 0]
    after = Batches()
    await burst(queue, after)
    assert after.seen == [[0, 1, 2]]


async def test_the_smallest_timeout_of_its_jobs_ends_a_batch(make_queue: MakeQueue) -> None:
    queue = make_queue(backoff=0.01)
    await queue.add(0, group_id="g", timeout=60)
    await queue.add(1, group_id="g", timeout=0.05)
    await queue.add(2, group_id="g")

    async def slow_at_first(jobs: list[Job]) -> None:
        if len(jobs) == 3:
            await asyncio.Event().wait()

    handle = Batches(slow_at_first)
    worker = Worker(queue, handle, batch=10)
    heard = Listener(worker, "retrying")
    async with worker:
        assert await queue.wait_for_empty(5)
    assert handle.seen == [[0, 1, 2], [0], [1, 2]]
    assert "timeout of 0.05 s" in str(heard.heard[0])


async def test_cancelling_one_job_stops_the_batch_and_gives_the_others_back(queue: Queue) -> None:
    jobs = await add_row(queue, 3)
    handle = Batches(lambda jobs: asyncio.Event().wait() if len(jobs) == 3 else asyncio.sleep(0))
    async with Worker(queue, handle, batch=10):
        await eventually(lambda: handle.seen, "the batch runs")
        assert await queue.cancel(jobs[1].id)
        assert await queue.wait_for_empty(10)
    assert (handle.seen[0], handle.flat()[3:]) == ([0, 1, 2], [0, 2])
    states = [(await job.refresh()).state for job in jobs]
    assert states == ["completed", "failed", "completed"]
    assert await attempts_made(jobs) == [1, 1, 1]


@pytest.mark.parametrize("how", ["remove", "fail"])
async def test_removing_or_failing_one_job_stops_the_batch_and_gives_the_others_back(queue: Queue, how: str) -> None:
    jobs = await add_row(queue, 3)
    handle = Batches(lambda jobs: asyncio.Event().wait() if len(jobs) == 3 else asyncio.sleep(0))
    worker = Worker(queue, handle, batch=10)
    lost = Listener(worker, "lease-lost")
    async with worker:
        await eventually(lambda: handle.seen, "the batch runs")
        assert await (queue.remove(jobs[0].id) if how == "remove" else queue.fail(jobs[0].id, "by hand"))
        assert await queue.wait_for_empty(10)
    assert (handle.seen[0], handle.flat()[3:]) == ([0, 1, 2], [1, 2])
    assert lost.names() == ["lease-lost"]
    assert await attempts_made(jobs[1:]) == [1, 1]


async def test_no_job_of_the_group_starts_beside_a_handler_that_does_not_stop(queue: Queue) -> None:
    jobs = await add_row(queue, 3)
    go_on = threading.Event()
    running, most = 0, 0

    def stubborn(jobs: list[Job]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if len(jobs) == 3:
            go_on.wait(20)
        running -= 1

    async with Worker(queue, stubborn, batch=10) as worker:
        await eventually(lambda: running == 1, "the batch runs")
        await queue.cancel(jobs[1].id)
        await eventually(lambda: not worker.is_processing(), "the slot was taken back")
        assert (await queue.get_group("g")).state != "ready"
        go_on.set()
        assert await queue.wait_for_empty(10)
    assert most == 1


@one_kind
async def test_the_leases_of_a_whole_batch_are_renewed(make_queue: MakeQueue) -> None:
    queue = make_queue(job_timeout=0.5)
    jobs = await add_row(queue, 3)
    handle = Batches(lambda jobs: asyncio.sleep(1.2))
    worker = Worker(queue, handle, batch=10)
    heard = Listener(worker, "stalled", "lease-lost")
    async with worker:
        assert await queue.wait_for_empty(10)
    assert heard.names() == []
    assert (len(handle.seen), await attempts_made(jobs)) == (1, [1, 1, 1])


async def test_a_handler_that_changes_its_list_changes_nothing_else(queue: Queue) -> None:
    jobs = await add_row(queue, 3)

    async def greedy(jobs: list[Job]) -> None:
        jobs.clear()

    await burst(queue, greedy)
    assert await attempts_made(jobs) == [1, 1, 1]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_whatever_a_handler_raises_the_worker_lives(make_queue: MakeQueue, error: BaseException) -> None:
    queue = make_queue(backoff=0.01)
    await add_row(queue, 2)

    async def harsh(jobs: list[Job]) -> None:
        if len(jobs) == 2:
            raise error

    handle = Batches(harsh)
    async with Worker(queue, handle, batch=10):
        assert await queue.wait_for_empty(5)
    assert handle.seen == [[0, 1], [0], [1]]


# Waiting for a full batch


async def test_a_batch_starts_when_it_is_full_and_not_before(queue: Queue) -> None:
    handle = Batches()
    async with Worker(queue, handle, batch=3, batch_wait=30):
        await add_row(queue, 2)
        await queue.add(2, group_id="g")
        await eventually(lambda: handle.seen, "the full batch runs", timeout=5)
    assert handle.seen == [[0, 1, 2]]


async def test_a_batch_that_does_not_fill_starts_after_its_wait(queue: Queue) -> None:
    handle = Batches()
    async with Worker(queue, handle, batch=10, batch_wait=0.3) as worker:
        await looked_once(worker)
        before, began = worker.get_worker_metrics().advances, time.monotonic()
        await queue.add(0, group_id="g")
        await eventually(lambda: handle.seen, "the batch runs")
        waited = time.monotonic() - began
    assert handle.seen == [[0]]
    assert waited >= 0.29
    # One call when the job was added, one when the wait was over, and their reports. No worker asked in between.
    assert worker.get_worker_metrics().advances - before <= 5


async def test_a_burst_does_not_wait_for_a_full_batch(queue: Queue) -> None:
    await add_row(queue, 2)
    handle = Batches()
    async with asyncio.timeout(10):
        await burst(queue, handle, batch_wait=60)
    assert handle.seen == [[0, 1]]


async def test_a_worker_that_closes_holds_nothing_that_waits_for_a_full_batch(queue: Queue) -> None:
    await add_row(queue, 2)
    handle = Batches()
    worker = Worker(queue, handle, batch=10, batch_wait=60)
    async with worker:
        await looked_once(worker)
        assert (await queue.get_job_counts()).active == 0
    after = Batches()
    await burst(queue, after)
    assert (handle.seen, after.seen) == ([], [[0, 1]])


async def test_a_second_worker_starts_the_batch_if_the_first_is_busy_when_its_time_has_come(queue: Queue) -> None:
    gate = asyncio.Event()
    full = Batches(lambda jobs: gate.wait() if len(jobs) == 2 else asyncio.sleep(0))
    options: dict[str, Any] = {"batch": 2, "batch_wait": 0.4, "blocking_timeout": 30, "stalled_interval": 60}
    async with Worker(queue, full, **options) as first, Worker(queue, full, **options) as second:
        await looked_once(first)
        await looked_once(second)
        await queue.add("alone", group_id="a")
        await add_row(queue, 2, "b")
        await eventually(lambda: ["alone"] in full.ended, "the single job ran", timeout=4)
        gate.set()


# Options


@pytest.mark.parametrize(
    ("queue_options", "options", "text"),
    [
        ({"exclusive": True}, {}, "cannot be combined with exclusive=True"),
        ({"group_concurrency": 2}, {}, "cannot be combined with group_concurrency above 1"),
        ({}, {"executor": "process"}, "cannot be combined with executor='process'"),
        ({}, {"batch": 0}, "batch: expected an integer from 1 to 1000"),
        ({}, {"batch": None, "batch_wait": 1}, "batch_wait: needs batch"),
        ({}, {"batch_wait": -1}, "batch_wait: expected"),
    ],
)
async def test_what_does_not_go_together_is_refused_with_a_sentence(
    make_queue: MakeQueue, queue_options: dict[str, Any], options: dict[str, Any], text: str
) -> None:
    queue = make_queue(**queue_options)
    with pytest.raises(ConfigurationError, match=text):
        Worker(queue, Batches(), **{"batch": 10, **options})


async def test_middleware_gets_one_job_so_it_is_refused(queue: Queue) -> None:
    class Trace:
        def before(self, job: Job) -> None:
            pass

    with pytest.raises(ConfigurationError, match="cannot be combined with middleware"):
        Worker(queue, Batches(), batch=2, middleware=[Trace()])


async def test_process_takes_batches_too(queue: Queue) -> None:
    await add_row(queue, 3)
    handle = Batches()
    worker = await queue.process(handle, batch=10)
    assert await queue.wait_for_empty(5)
    await worker.close()
    assert handle.seen == [[0, 1, 2]]
