"""The call that adds a job grants it to an idle worker at once."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from groupmq import Job, JobNotFound, Queue, Worker, WrongState
from tests.support.offering import idle, offers
from tests.support.parts import parts_of
from tests.support.waiting import eventually
from tests.support.workers import Recorder


async def busy(worker: Worker) -> bool:
    return not await offers(worker)


async def test_a_lone_job_takes_one_call_of_an_idle_worker(queue: Queue) -> None:
    handler = Recorder()
    async with Worker(queue, handler, concurrency=5) as worker:
        for i in range(5):
            await idle(worker)
            before = parts_of(worker).fetcher.advances
            job = await queue.add(i, group_id=f"g{i}")
            assert await job.result(20) is None
            await idle(worker)
            assert parts_of(worker).fetcher.advances == before + 1, "only the call that reports the job"
    assert handler.started == [0, 1, 2, 3, 4]


async def test_jobs_of_one_group_stay_in_order(queue: Queue) -> None:
    handler = Recorder()
    async with Worker(queue, handler, concurrency=5) as worker:
        await idle(worker)
        for i in range(50):
            await queue.add(i, group_id="g")
        await handler.has_run(49)
    assert handler.started == list(range(50))


async def test_a_granted_job_is_active_with_its_worker_and_published(queue: Queue) -> None:
    go_on = asyncio.Event()
    seen: list[tuple[str, str | None]] = []
    queue.on("active", lambda event: seen.append((event.kind, event.worker)))

    async def handle(job: Job) -> int:
        await go_on.wait()
        return job.attempt

    async with Worker(queue, handle) as worker:
        await idle(worker)
        job = await queue.add("x", group_id="g")
        found = await queue.get_job(job.id)
        assert found is not None
        assert (found.state, found.worker) == ("active", worker.id)
        assert (await queue.get_job_counts()).active == 1
        go_on.set()
        assert await job.result(20) == 1
        await eventually(lambda: seen == [("active", worker.id)], "it was published once")


@pytest.mark.parametrize("operation", ["remove", "fail", "cancel"])
async def test_nothing_starts_after_an_operation_on_a_granted_job_has_returned(queue: Queue, operation: str) -> None:
    started: list[str] = []
    late: list[str] = []
    ended: set[str] = set()

    async def handle(job: Job) -> None:
        started.append(job.id)
        if job.id in ended:
            late.append(job.id)

    async with Worker(queue, handle, concurrency=5) as worker:
        for i in range(30):
            await idle(worker)
            job = await queue.add(i, group_id=f"g{i}")
            with contextlib.suppress(JobNotFound, WrongState):  # it has ended
                if await getattr(queue, operation)(job.id):
                    ended.add(job.id)
    assert late == []


async def test_a_closing_worker_withdraws_its_offer(queue: Queue) -> None:
    """While it waits for a handler, other workers take the new jobs."""
    go_on, handler = asyncio.Event(), Recorder()

    async def handle(job: Job) -> None:
        await go_on.wait()

    first = Worker(queue, handle, concurrency=2)
    await first.start()
    await queue.add("long", group_id="g")
    await eventually(lambda: parts_of(first).executor.slots_used == 1, "it runs")
    await idle(first)
    closing = asyncio.ensure_future(first.close(timeout=20))
    await eventually(lambda: busy(first), "the offer is withdrawn")
    async with Worker(queue, handler):
        await queue.add("next", group_id="h")
        await handler.has_run("next")
    go_on.set()
    await closing


async def test_a_worker_that_closes_gives_back_a_job_that_is_on_its_way(queue: Queue) -> None:
    handler = Recorder()
    worker = Worker(queue, handler)
    await worker.start()
    await idle(worker)
    adding = asyncio.ensure_future(queue.add("x", group_id="g"))
    await worker.close()
    await adding
    async with Worker(queue, handler):
        await handler.has_run("x")
    assert handler.started == ["x"]
    job = await queue.get_job((await adding).id)
    assert job is not None
    assert job.attempts_made == 1


async def test_a_burst_offers_nothing(queue: Queue) -> None:
    """The burst could end before it received a job that was granted to it, and would leave that job behind."""
    seen = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data < 20:
            await queue.add(job.data + 1, group_id=f"g{job.data}")

    await queue.add(0)
    await Worker(queue, handle, concurrency=5).run(burst=True)
    assert seen == list(range(21))


@pytest.mark.parametrize(
    "damaged", [b"", b"garbage", b"\0" * 19 + b"\xff\xff" + b"job"], ids=["empty", "short", "no id"]
)
async def test_a_worker_goes_on_after_a_damaged_grant(queue: Queue, damaged: bytes) -> None:
    handler = Recorder()
    async with Worker(queue, handler) as worker:
        await idle(worker)
        connection = queue._connection
        key = connection.session.keys.grants(worker.id)
        await connection.execute("ZADD", key, "0", damaged)

        async def is_popped() -> bool:
            return not await connection.execute("EXISTS", key)

        await eventually(is_popped, "the worker has received it")
        for i in range(3):
            await queue.add(i, group_id="g")
        await handler.has_run(2)
    assert handler.started == [0, 1, 2]
