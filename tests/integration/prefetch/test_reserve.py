"""Jobs of several groups, or of none, that a worker with short handlers takes before it has slots for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groupmq import Job, Queue, RetryJob, Worker
from tests.support.rows import Crowd, add_reserve, attempts_made, used_to_short_handlers, whatever_happens
from tests.support.waiting import eventually
from tests.support.workers import Recorder

MOST = 80
"""Jobs that one call takes if each is in its own group."""
grouped = pytest.mark.parametrize("groups", [True, False], ids=["groups", "no groups"])


@grouped
@pytest.mark.parametrize("atomic", [True, False])
async def test_a_call_brings_many_jobs_though_there_is_one_slot(queue: Queue, groups: bool, atomic: bool) -> None:
    handler = Recorder()
    await add_reserve(queue, 1000, groups=groups)
    worker = whatever_happens(Worker(queue, handler, atomic_completion=atomic))
    await worker.run(burst=True)
    metrics = worker.get_worker_metrics()
    assert sorted(handler.started) == list(range(1000))
    if not metrics.released:  # on a busy machine prefetched jobs may have been given back
        assert handler.started == list(range(1000)), "not in the order without prefetching"
    assert (handler.most, set(handler.attempts)) == (1, {1})
    assert (metrics.completed, metrics.lease_lost) == (1000, 0)
    assert metrics.advances < 200


@grouped
@pytest.mark.parametrize("concurrency", [3, 100])
async def test_all_slots_are_used_and_no_more(queue: Queue, groups: bool, concurrency: int) -> None:
    handler = Recorder(0.0005)
    await add_reserve(queue, 1000, groups=groups)
    worker = whatever_happens(Worker(queue, handler, concurrency=concurrency))
    run = asyncio.create_task(worker.run(burst=True))
    await eventually(lambda: len(handler.ended) > 300, "the worker is used to short handlers")
    handler.gate = asyncio.Event()  # otherwise the number of concurrent jobs depends on the machine
    await eventually(lambda: handler.most == concurrency, "all slots are used")
    handler.gate.set()
    await run
    assert sorted(handler.ended) == list(range(1000))
    assert handler.most == concurrency
    assert worker.get_worker_metrics().completed == 1000


async def test_the_order_across_groups_is_the_same_with_and_without(queue: Queue) -> None:
    """The jobs have priorities, share groups or have none, and all are added before a worker asks."""
    orders = []
    for prefetch in (0, 200):
        handler = Recorder()
        await queue.add_many(
            [{"data": i, "group_id": f"g{i % 70}" if i % 3 else None, "priority": 5 * (i % 7 < 3)} for i in range(210)]
        )
        await whatever_happens(Worker(queue, handler, prefetch=prefetch)).run(burst=True)
        heads = [i for i in handler.started if i < 70 or i % 3 == 0]
        orders.append((heads, {g: [i for i in handler.started if i % 70 == g and i % 3] for g in range(70)}))
    assert orders[0] == orders[1]


@pytest.mark.parametrize("prefetch", [0, 1, 7, 30])
async def test_a_number_bounds_how_many_jobs_are_ahead(queue: Queue, prefetch: int) -> None:
    crowd = Crowd(queue)
    crowd.worker = worker = used_to_short_handlers(Worker(queue, crowd, prefetch=prefetch))
    worker.on("completed", crowd.reported)
    await add_reserve(queue, 200)
    await worker.run(burst=True)
    crowd.close()
    assert worker.get_worker_metrics().completed == 200
    assert crowd.most == 1 + prefetch


async def test_left_to_itself_a_worker_takes_no_more_than_some_milliseconds_of_work(queue: Queue) -> None:
    crowd = Crowd(queue)
    crowd.worker = worker = used_to_short_handlers(Worker(queue, crowd))
    worker.on("completed", crowd.reported)
    await add_reserve(queue, 300)
    await worker.run(burst=True)
    crowd.close()
    # A call that is under way while handlers end late may bring as many jobs again.
    assert MOST // 2 < crowd.most <= 2 * MOST


@grouped
async def test_a_job_that_fails_costs_the_others_nothing(queue: Queue, groups: bool) -> None:
    started: list[int] = []

    async def handle(job: Job) -> None:
        started.append(job.data)
        if job.data % 5 == 1 and job.attempt == 1:
            raise RetryJob("again", delay=0)

    jobs = await add_reserve(queue, 40, groups=groups)
    worker = whatever_happens(Worker(queue, handle))
    await worker.run(burst=True)
    assert [i for n, i in enumerate(started) if i not in started[:n]] == list(range(40))
    assert await attempts_made(jobs) == [2 if i % 5 == 1 else 1 for i in range(40)]
    assert worker.get_worker_metrics().released < 8 * 40, "jobs of other groups must not be given back"


async def test_a_job_that_may_run_once_is_reported_before_the_next_starts_to_wait(queue: Queue) -> None:
    """Its report does not wait for the jobs behind it, as other reports do."""
    [once] = await queue.add_many([{"data": -1, "group_id": "once", "max_attempts": 1}])
    await add_reserve(queue, 20)
    reported = asyncio.Event()

    async def handle(job: Job) -> None:
        if job.data == 3:
            await reported.wait()

    worker = whatever_happens(Worker(queue, handle))
    worker.on("completed", lambda job: reported.set() if job.id == once.id else None)
    async with worker:
        assert await queue.wait_for_empty(10)


@grouped
async def test_behind_a_run_that_takes_long_everybody_sees_them_wait(queue: Queue, groups: bool) -> None:
    started: list[int] = []
    let_go = asyncio.Event()

    async def handle(job: Job) -> None:
        started.append(job.data)
        if job.data == 2:
            await let_go.wait()

    async def seen_waiting() -> bool:
        counts = await queue.get_job_counts()
        return (counts.completed, counts.active, counts.waiting) == (2, 1, 7)

    jobs = await add_reserve(queue, 10, groups=groups)
    async with used_to_short_handlers(Worker(queue, handle)) as worker:
        await eventually(seen_waiting, "the jobs behind wait")
        # The server has them before the worker has its answer.
        await eventually(lambda: worker.get_worker_metrics().released >= 7, "the worker knows it too")
        assert [(await queue.require_job(job.id)).state for job in jobs] == ["completed"] * 2 + ["active"] + [
            "waiting"
        ] * 7
        assert await queue.remove(jobs[5].id)
        let_go.set()
        assert await queue.wait_for_empty(10)
    assert started == [0, 1, 2, 3, 4, 6, 7, 8, 9]


@grouped
async def test_a_slot_of_the_same_worker_takes_what_waits_behind_a_slow_one(
    queue: Queue, groups: bool, no_patience: None
) -> None:
    """The slow job ends only when all others have run."""
    left = set(range(1, 60))
    others_ran = asyncio.Event()

    async def handle(job: Job) -> None:
        if job.data == 0:
            await others_ran.wait()
        left.discard(job.data)
        if not left:
            others_ran.set()

    await add_reserve(queue, 60, groups=groups)
    worker = whatever_happens(Worker(queue, handle, concurrency=2))
    await worker.run(burst=True)
    assert (worker.get_worker_metrics().completed, worker.get_worker_metrics().released) == (60, 0)


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the timers of jobs that wait in a worker, so that none is given back for waiting too long."""
    for name in ("PATIENCE", "ROW_PATIENCE", "ROW_LASTS"):
        monkeypatch.setattr(f"groupmq.worker.running.executor.{name}", 60.0)


@pytest.mark.parametrize("timeout", [0, 10])
async def test_a_worker_that_closes_gives_all_of_it_back(queue: Queue, timeout: float, no_patience: None) -> None:
    seen: list[int] = []
    closing: list[asyncio.Task[None]] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == 4:
            closing.append(asyncio.create_task(worker.close(timeout=timeout)))
            await asyncio.sleep(0)

    jobs = await add_reserve(queue, 20)
    worker = used_to_short_handlers(Worker(queue, handle))
    await worker.start()
    await eventually(lambda: closing, "the worker is closing")
    await closing[0]
    counts = await queue.get_job_counts()
    assert (counts.active, counts.completed + counts.waiting) == (0, 20)
    assert seen == [0, 1, 2, 3, 4]
    assert sum(await attempts_made(jobs)) == counts.completed
    again = Recorder()
    await Worker(queue, again).run(burst=True)
    assert set(again.started) == set(range(counts.completed, 20))
    assert set(again.attempts) == {1}


# Operations on jobs that are in a reserve


ENDS = {"remove": None, "fail": "failed", "cancel": None}


class Acts:
    """A handler that records which jobs start, and whose fourth job acts on others."""

    def __init__(self, act: Callable[[], Awaitable[Any]]) -> None:
        self.act = act
        self.data: dict[str, Any] = {}
        self.answer: Any = None
        self.acted_after: int | None = None

    async def __call__(self, job: Job) -> None:
        self.data[job.id] = job.data
        if len(self.data) == 4 and self.acted_after is None:
            self.answer = await self.act()
            self.acted_after = len(self.data)


@grouped
@pytest.mark.parametrize("operation", ENDS)
async def test_a_job_that_a_handler_ends_never_starts(
    queue: Queue, groups: bool, operation: str, no_patience: None
) -> None:
    jobs = await add_reserve(queue, 15, groups=groups)
    handle = Acts(lambda: getattr(jobs[4], operation)())
    async with whatever_happens(Worker(queue, handle)) as worker:
        assert await queue.wait_for_empty(10)
        assert worker.get_worker_metrics().lease_lost == 0
    assert handle.answer is True
    assert set(handle.data) == {job.id for job in jobs if job is not jobs[4]}
    found = await queue.get_job(jobs[4].id)
    assert (found and found.state) == ENDS[operation]
    del jobs[4]
    assert await attempts_made(jobs) == [1] * 14


@grouped
async def test_a_job_gets_the_data_that_a_handler_gives_it(queue: Queue, groups: bool, no_patience: None) -> None:
    jobs = await add_reserve(queue, 15, groups=groups)
    handle = Acts(lambda: jobs[9].update_data("new"))
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert handle.data[jobs[9].id] == "new"
    assert len(handle.data) == 15


@grouped
async def test_after_a_pause_has_returned_nothing_starts(queue: Queue, groups: bool, no_patience: None) -> None:
    await add_reserve(queue, 100, groups=groups)
    handle = Acts(lambda: queue.pause())
    async with whatever_happens(Worker(queue, handle)):
        await eventually(lambda: handle.acted_after is not None, "the pause has returned")
        await eventually(lambda: _nothing_active(queue), "the running jobs have ended")
        assert len(handle.data) == handle.acted_after == 4
        await queue.resume()
        assert await queue.wait_for_empty(10)
    assert list(handle.data.values()) == list(range(100))


async def _nothing_active(queue: Queue) -> bool:
    return await queue.get_active_count() == 0


async def test_after_a_pause_of_its_group_a_job_does_not_start(queue: Queue, no_patience: None) -> None:
    jobs = await add_reserve(queue, 15)
    handle = Acts(lambda: queue.pause_group("g9"))
    async with whatever_happens(Worker(queue, handle)):
        await eventually(lambda: len(handle.data) == 14, "all others have run")
        assert jobs[9].id not in handle.data
        await queue.resume_group("g9")
        assert await queue.wait_for_empty(10)


async def test_purging_what_waits_takes_what_is_in_a_reserve(queue: Queue, no_patience: None) -> None:
    await add_reserve(queue, 60)
    handle = Acts(lambda: queue.purge())
    async with whatever_happens(Worker(queue, handle)):
        assert await queue.wait_for_empty(10)
    assert (len(handle.data), handle.answer) == (4, 56)
