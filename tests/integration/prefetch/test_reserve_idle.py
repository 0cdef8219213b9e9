"""No job waits in the reserve of one worker while another worker has a free slot.

No timer helps here: without the mail that the idle worker causes, a job would wait in its worker for a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis

from groupmq import Job, Queue, Worker
from groupmq.protocol import functions
from groupmq.worker.parts import WorkerParts
from tests.model.mutant import Mutant, loader
from tests.support.hanging import WorkerInThread
from tests.support.parts import at_start
from tests.support.rows import add_reserve, whatever_happens
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once

N = 60
grouped = pytest.mark.parametrize("groups", [True, False], ids=["groups", "no groups"])


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch, client: redis.Redis) -> Iterator[None]:
    for name in ("PATIENCE", "ROW_PATIENCE", "ROW_LASTS"):
        monkeypatch.setattr(f"groupmq.worker.running.executor.{name}", 60.0)
    monkeypatch.setattr("groupmq.worker.leases.loop_watch.BLOCKED", 60.0)
    # Normally a worker has started or given back its reserve after that time. With the patience above it has not.
    patient = Mutant("old reserves are asked for too", "local OLD = 1000 ", "local OLD = 60000 ")
    monkeypatch.setattr(functions, "load", loader(patient))
    yield
    client.function_flush()  # no other test uses this library


class Slow:
    """A handler whose first job ends when all others have run."""

    def __init__(self) -> None:
        self.by: dict[int, str] = {}
        self.others_ran = asyncio.Event()

    async def __call__(self, job: Job) -> None:
        self.by[job.data] = job.worker or ""
        if len(self.by) == N:
            self.others_ran.set()
        if job.data == 0:
            await self.others_ran.wait()


@grouped
async def test_an_idle_worker_gets_what_waits_behind_a_slow_job(queue: Queue, groups: bool) -> None:
    """Both workers are idle when the jobs are added. One takes them all, and the other one is woken."""
    slow = Slow()
    workers = [whatever_happens(Worker(queue, slow, name=name)) for name in ("one", "two")]
    for worker in workers:
        await worker.start()
        await looked_once(worker)
    await add_reserve(queue, N, groups=groups)
    assert await queue.wait_for_empty(20)
    for worker in workers:
        await worker.close()
    assert len(slow.by) == N
    assert [name for job, name in slow.by.items() if name == slow.by[0] and job > 0] == []
    assert {slow.by[0]} != set(slow.by.values())


@grouped
async def test_a_worker_that_comes_later_gets_a_job_of_the_reserve(queue: Queue, groups: bool) -> None:
    slow = Slow()
    await add_reserve(queue, N, groups=groups)
    async with whatever_happens(Worker(queue, slow, name="one")):
        await eventually(lambda: slow.by, "the slow job runs")
        assert (await queue.get_job_counts()).active > 1, "others wait behind it"
        async with whatever_happens(Worker(queue, slow, name="two")):
            assert await queue.wait_for_empty(20)
    assert slow.by == {0: "one"} | dict.fromkeys(range(1, N), "two")


async def test_a_worker_whose_long_run_has_ended_gets_a_job_of_the_reserve(queue: Queue) -> None:
    slow, let_go = Slow(), asyncio.Event()

    async def busy(job: Job) -> None:
        if job.data == "long":
            await let_go.wait()
        else:
            await slow(job)

    await queue.add("long", group_id="long")
    async with whatever_happens(Worker(queue, busy, name="two")) as two:
        await eventually(lambda: two.is_processing(), "the worker is busy")
        await add_reserve(queue, N)
        async with whatever_happens(Worker(queue, slow, name="one")):
            await eventually(lambda: slow.by, "the slow job runs")
            let_go.set()
            assert await queue.wait_for_empty(20)
    assert slow.by == {0: "one"} | dict.fromkeys(range(1, N), "two")


@pytest.mark.parametrize("crowd", [2, 12])
async def test_each_of_many_idle_workers_gets_a_job(queue: Queue, crowd: int) -> None:
    """Each job waits until all workers run one, so a single job that stays in a reserve would stop them all."""
    running, all_run = 0, asyncio.Event()

    async def handle(job: Job) -> None:
        nonlocal running
        running += 1
        if running == crowd:
            all_run.set()
        await all_run.wait()

    workers = [whatever_happens(Worker(queue, handle)) for _ in range(crowd)]
    for worker in workers:
        await worker.start()
        await looked_once(worker)
    await add_reserve(queue, N)
    assert await queue.wait_for_empty(20)
    for worker in workers:
        await worker.close()
    assert all(worker.get_worker_metrics().completed for worker in workers)
    assert sum(worker.get_worker_metrics().completed for worker in workers) == N


async def test_a_worker_that_does_not_take_reserves_itself_gets_them_as_well(queue: Queue) -> None:
    slow = Slow()
    await add_reserve(queue, N)
    async with whatever_happens(Worker(queue, slow, name="one")):
        await eventually(lambda: slow.by, "the slow job runs")
        async with Worker(queue, slow, name="two", prefetch=0):
            assert await queue.wait_for_empty(20)
    assert slow.by == {0: "one"} | dict.fromkeys(range(1, N), "two")


class Blocking(WorkerInThread):
    """Its loop is blocked by its first job."""

    def make(self, queue: Queue) -> Worker:
        return whatever_happens(Worker(queue, self.handle))

    async def handle(self, job: Job) -> None:
        await super().handle(job)
        if not self.hangs.is_set():
            self.hang()


@pytest.fixture
def blocking(queue: Queue, url: str) -> Iterator[Blocking]:
    found = Blocking(queue.name, url)
    yield found
    found.end()


async def test_an_idle_worker_gets_what_waits_in_one_whose_loop_is_blocked(queue: Queue, blocking: Blocking) -> None:
    await add_reserve(queue, N)
    await asyncio.to_thread(blocking.hangs.wait, 20)
    other = Recorder()
    async with Worker(queue, other):
        await eventually(lambda: len(other.ended) == N - 1, "the others have run", 20)
        assert len(blocking.started) == 1
        blocking.go_on.set()
        assert await queue.wait_for_empty(10)
    assert set(other.ended) | set(blocking.started) == set(range(N))


async def test_jobs_that_arrive_after_they_were_asked_for_are_given_back(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that brings a reserve is delayed until another worker has asked for it and the heartbeat has learned
    of that."""
    slow, asked = Slow(), asyncio.Event()
    await add_reserve(queue, N)
    one = whatever_happens(Worker(queue, slow, name="one"))
    loop = asyncio.get_running_loop()

    def watch(parts: WorkerParts) -> None:
        persist, heard = parts.fetcher._persist, parts.leases.received

        async def late(call, requester):  # type: ignore[no-untyped-def]
            answer = await persist(call, requester)
            if len(answer.jobs) > 1:
                await asked.wait()
            return answer

        def hears(beat, *named):  # type: ignore[no-untyped-def]
            if beat.wanted:
                loop.call_soon_threadsafe(asked.set)
            return heard(beat, *named)

        monkeypatch.setattr(parts.fetcher, "_persist", late)
        monkeypatch.setattr(parts.leases, "received", hears)

    at_start(one, watch)
    async with one:
        await eventually(lambda: _taken(queue), "the reserve is taken")
        async with whatever_happens(Worker(queue, slow, name="two")):
            assert await queue.wait_for_empty(20)
    assert slow.by == {0: "one"} | dict.fromkeys(range(1, N), "two")


async def _taken(queue: Queue) -> bool:
    return await queue.get_active_count() > 1
