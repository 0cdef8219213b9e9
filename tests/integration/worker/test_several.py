"""Several queues in one process: common slots, no queue starves, all are closed together."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from groupmq import ConfigurationError, Job, Queue, Worker, Workers
from groupmq.client.connection.blocking_reads import Popped, WakeConnection
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import knows_of_work, looked_once


class Common:
    """A handler of several queues that records how many of their jobs run at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.order: list[str] = []
        self.running: Counter[str] = Counter()
        self.most = 0
        self.most_of: Counter[str] = Counter()
        self.gate: asyncio.Event | None = None
        self.free_runs = 0
        """The number of jobs that do not wait for the gate."""

    async def __call__(self, job: Job) -> None:
        name = str(job.data)
        self.order.append(name)
        self.running[name] += 1
        self.most = max(self.most, self.running.total())
        self.most_of[name] = max(self.most_of[name], self.running[name])
        try:
            if self.gate is not None and len(self.order) > self.free_runs:
                await self.gate.wait()
            await asyncio.sleep(self.seconds)
        finally:
            self.running[name] -= 1


async def fill(queue: Queue, name: str, n: int) -> None:
    await queue.add_many([{"data": name, "group_id": f"g{i}"} for i in range(n)])


async def two(make_queue: MakeQueue) -> tuple[Queue, Queue]:
    return make_queue(), make_queue()


async def test_all_queues_together_run_no_more_than_the_common_number(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    await fill(a, "a", 30)
    await fill(b, "b", 30)
    handle = Common(0.002)
    await Workers([Worker(a, handle, prefetch=0), Worker(b, handle, prefetch=0)], concurrency=4).run(burst=True)
    assert Counter(handle.order) == {"a": 30, "b": 30}
    assert handle.most == 4


async def test_a_queue_alone_with_work_uses_all_slots(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    await fill(a, "a", 20)
    handle = Common(0.002)
    handle.gate = asyncio.Event()
    async with Workers([Worker(a, handle, prefetch=0), Worker(b, handle, prefetch=0)], concurrency=4):
        await eventually(lambda: handle.running["a"] == 4, "all slots are used")
        handle.gate.set()
        assert await a.wait_for_empty(5)


@pytest.mark.parametrize("prefetch", [0, "auto"])
@pytest.mark.parametrize("slots", [1, 2, 4])
async def test_no_queue_starves_behind_the_backlog_of_another(make_queue: MakeQueue, slots: int, prefetch: Any) -> None:
    """The backlog of the first queue stands still until the worker of the second queue knows of its jobs. Otherwise the
    backlog could be gone before all jobs of the second queue are added."""
    a, b = await two(make_queue)
    handle = Common(0.002)
    handle.gate, handle.free_runs = asyncio.Event(), 10
    workers = Workers([Worker(q, handle, prefetch=prefetch, blocking_timeout=30) for q in (a, b)], concurrency=slots)
    async with workers:
        for worker in workers:
            await looked_once(worker)
        await fill(a, "a", 200)
        await eventually(lambda: handle.running["a"] == slots and len(handle.order) > 10, "the first queue works")
        _, second = workers
        await fill(b, "b", 10)
        await eventually(lambda: knows_of_work(second), "the second worker knows of its jobs")
        before = len(handle.order)
        handle.gate.set()
        await eventually(lambda: handle.order.count("b") == 10, "the second queue is served")
        assert handle.order.count("a") < 200
        assert len(handle.order) - before < 100
        for queue in (a, b):
            assert await queue.wait_for_empty(10)
    assert handle.most <= slots


async def test_a_worker_may_have_a_limit_of_its_own(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    await fill(a, "a", 10)
    await fill(b, "b", 10)
    handle = Common(0.005)
    workers = [Worker(a, handle, concurrency=1), Worker(b, handle)]
    await Workers(workers, concurrency=4).run(burst=True)
    assert handle.most_of["a"] == 1
    assert 1 < handle.most <= 4


async def test_a_burst_is_over_when_all_queues_are_empty_at_once(make_queue: MakeQueue) -> None:
    """A job of one queue may add jobs to the other queue, whose worker had nothing to do before."""
    a, b = await two(make_queue)
    await a.add(3)
    seen = []

    def passes_on(other: Queue) -> Any:
        async def handle(job: Job) -> None:
            seen.append(job.data)
            if job.data > 0:
                await other.add(job.data - 1)

        return handle

    async with asyncio.timeout(10):
        await Workers([Worker(a, passes_on(b)), Worker(b, passes_on(a))], concurrency=1).run(burst=True)
    assert seen == [3, 2, 1, 0]


async def test_a_burst_is_not_over_while_an_idle_worker_has_not_got_its_hint(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here no hint reaches a worker before the burst has asked the servers for ready jobs."""
    a, b = await two(make_queue)
    asked, ready = asyncio.Event(), Worker._has_ready_job

    async def held_wait(wake: WakeConnection) -> Popped | None:
        popped = await hint(wake)
        await asked.wait()
        return popped

    async def noted(worker: Worker) -> bool:
        found = await ready(worker)
        if found:
            asked.set()
        return found

    hint = WakeConnection.wait
    monkeypatch.setattr(WakeConnection, "wait", held_wait)
    monkeypatch.setattr(Worker, "_has_ready_job", noted)
    await a.add("first")
    seen = []

    async def first(job: Job) -> None:
        seen.append(job.data)
        await eventually(lambda: second._is_idle(), "the other worker found nothing")
        await b.add("second")

    async def last(job: Job) -> None:
        seen.append(job.data)

    second = Worker(b, last)
    async with asyncio.timeout(20):
        await Workers([Worker(a, first), second], concurrency=2).run(burst=True)
    assert seen == ["first", "second"]


async def test_work_that_comes_to_an_idle_queue_starts_at_once(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    handle = Common()
    workers = [Worker(a, handle, blocking_timeout=30), Worker(b, handle, blocking_timeout=30)]
    async with Workers(workers, concurrency=1):
        for worker in workers:
            await looked_once(worker)
        for name, queue in (("a", a), ("b", b), ("b", b), ("a", a)):
            count = len(handle.order)
            await queue.add(name)
            await eventually(lambda count=count: len(handle.order) > count, "it ran", timeout=5)  # type: ignore[misc]
    assert handle.order == ["a", "b", "b", "a"]


async def test_work_that_comes_while_all_slots_are_taken_starts_when_one_is_free(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    handle = Common()
    handle.gate = asyncio.Event()
    workers = [Worker(a, handle, blocking_timeout=30), Worker(b, handle, blocking_timeout=30)]
    async with Workers(workers, concurrency=1):
        for worker in workers:
            await looked_once(worker)
        await a.add("a")
        await eventually(lambda: handle.order == ["a"], "the slot is taken")
        await b.add("b")
        await a.add("a")
        await eventually(lambda: knows_of_work(workers[1]), "the second worker knows of its job")
        handle.gate.set()
        await eventually(lambda: len(handle.order) == 3, "both ran", timeout=5)
    assert handle.order == ["a", "b", "a"]


async def test_close_lets_running_jobs_of_all_queues_end(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    await fill(a, "a", 5)
    await fill(b, "b", 5)
    handle = Common()
    handle.gate = asyncio.Event()
    workers = Workers([Worker(a, handle, prefetch=0), Worker(b, handle, prefetch=0)], concurrency=2)
    running = asyncio.create_task(workers.run())
    await eventually(lambda: handle.running.total() == 2, "two run")
    closing = asyncio.create_task(workers.close())
    await asyncio.sleep(0)
    handle.gate.set()
    await closing
    await running
    assert all(worker.is_closed() for worker in workers)
    assert (await a.get_job_counts()).completed + (await b.get_job_counts()).completed == 2
    assert (await a.get_job_counts()).active + (await b.get_job_counts()).active == 0


async def test_if_one_cannot_start_none_stays(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)

    async def broken() -> None:
        raise RuntimeError("no database")

    first = Worker(a, Common())
    workers = Workers([first, Worker(b, Common(), on_startup=broken)], concurrency=2)
    async with asyncio.timeout(5):
        with pytest.raises(RuntimeError, match="no database"):
            await workers.run()
    assert first.is_closed()


async def test_batches_share_slots_too(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    for queue in (a, b):
        await queue.add_many([{"data": n, "group_id": f"g{n % 4}"} for n in range(40)])
    running = most = done = 0

    async def handle(jobs: list[Job]) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        done += len(jobs)
        running -= 1

    await Workers([Worker(a, handle, batch=5), Worker(b, handle, batch=5)], concurrency=2).run(burst=True)
    assert (done, most) == (80, 2)


async def test_what_cannot_be_shared_is_refused(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    worker = Worker(a, Common())
    for wrong in ([], worker, [worker, b]):
        with pytest.raises(ConfigurationError, match="workers: expected a sequence of Workers"):
            Workers(wrong, concurrency=2)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="twice"):
        Workers([worker, worker], concurrency=2)
    with pytest.raises(ConfigurationError, match="concurrency: expected"):
        Workers([worker], concurrency=0)
    Workers([worker], concurrency=2)
    with pytest.raises(ConfigurationError, match="in use already"):
        Workers([worker], concurrency=2)


async def test_a_worker_of_several_has_their_slots_even_if_it_is_started_alone(make_queue: MakeQueue) -> None:
    a, b = await two(make_queue)
    handle = Common(0.01)
    alone = Worker(a, handle, prefetch=0)
    Workers([alone, Worker(b, handle, prefetch=0, concurrency=2)], concurrency=3)
    await a.add_many([{"data": n} for n in range(12)])
    await alone.run(burst=True)
    assert (alone.concurrency, handle.most) == (3, 3)
    with pytest.raises(ConfigurationError, match="in use already"):
        Workers([alone], concurrency=2)
