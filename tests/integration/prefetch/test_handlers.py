"""Handlers of all kinds, and middleware around them, in rows: each job alone, one after the other."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import Counter
from typing import Any, Literal

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.rows import add_row, attempts_made, used_to_short_handlers
from tests.support.waiting import eventually
from tests.support.workers import one_kind

N = 30
ALL = list(range(N))

mark: contextvars.ContextVar[int | None] = contextvars.ContextVar("mark", default=None)


def took_rows(worker: Worker, jobs: int) -> bool:
    """Whether the worker made fewer calls than it ran jobs, or gave jobs back because the machine was busy."""
    metrics = worker.get_worker_metrics()
    return metrics.advances < jobs - 20 or metrics.released > 0


@pytest.mark.parametrize("prefetch", ["auto", 0])
async def test_context_of_a_handler_is_not_seen_by_the_next(queue: Queue, prefetch: Literal["auto"] | int) -> None:
    seen: list[int | None] = []

    async def handle(job: Job) -> None:
        seen.append(mark.get())
        mark.set(job.data)

    await add_row(queue, N)
    await used_to_short_handlers(Worker(queue, handle, prefetch=prefetch)).run(burst=True)
    assert seen == [None] * N


async def test_context_is_not_seen_by_the_next_after_a_job_that_took_long_or_failed(queue: Queue) -> None:
    seen: list[int | None] = []

    async def handle(job: Job) -> None:
        seen.append(mark.get())
        mark.set(job.data)
        if job.data == 3:
            await asyncio.sleep(0.05)
        if job.data == 6 and job.attempt == 1:
            raise ValueError

    await add_row(queue, N, backoff=0)
    await used_to_short_handlers(Worker(queue, handle)).run(burst=True)
    assert seen == [None] * (N + 1)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_middleware_is_around_each_job_and_its_context_reaches_only_its_own_handler(
    queue: Queue, kind: str
) -> None:
    notes: list[str] = []

    class Around:
        async def before(self, job: Job) -> None:
            notes.append(f"before {job.data}, found {mark.get()}")
            mark.set(job.data)

        def after(self, job: Job, result: Any) -> None:
            notes.append(f"after {job.data} {result}")

    def plain(job: Job) -> int | None:
        notes.append(f"handle {job.data}")
        return mark.get()

    async def asynchronous(job: Job) -> int | None:
        return plain(job)

    await add_row(queue, N)
    handler: Any = plain if kind == "thread" else asynchronous
    await used_to_short_handlers(Worker(queue, handler, middleware=[Around()])).run(burst=True)
    assert notes == [line for i in ALL for line in (f"before {i}, found None", f"handle {i}", f"after {i} {i}")]


async def test_middleware_that_raises_for_one_job_harms_no_job_behind_it(queue: Queue) -> None:
    seen: list[int] = []

    class Picky:
        def before(self, job: Job) -> None:
            if job.data == 3 and job.attempt == 1:
                raise ValueError("not this one")

    async def handle(job: Job) -> None:
        seen.append(job.data)

    jobs = await add_row(queue, N, backoff=0)
    await used_to_short_handlers(Worker(queue, handle, middleware=[Picky()])).run(burst=True)
    assert seen == ALL
    assert await attempts_made(jobs) == [2 if i == 3 else 1 for i in ALL]


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_plain_handlers_in_threads_keep_the_order_of_their_groups(
    make_queue: MakeQueue, concurrency: int
) -> None:
    queue = make_queue(keep_completed=1000)
    seen: dict[str, list[int]] = {f"g{g}": [] for g in range(5)}
    running: Counter[str | None] = Counter()
    most = [0]
    lock = threading.Lock()

    def handle(job: Job) -> str:
        with lock:
            running[job.group_id] += 1
            most[0] = max(most[0], running[job.group_id])
        seen[str(job.group_id)].append(job.data)
        with lock:
            running[job.group_id] -= 1
        return threading.current_thread().name

    for g in seen:
        await add_row(queue, 80, group_id=g)
    worker = used_to_short_handlers(Worker(queue, handle, concurrency=concurrency, name="plain"))
    await worker.run(burst=True)
    assert seen == {g: list(range(80)) for g in seen}
    assert most == [1]
    assert worker.get_worker_metrics().completed == 400
    assert took_rows(worker, 400) or concurrency > 1


async def test_a_thread_that_takes_long_keeps_nobody_behind_it_out_of_sight(queue: Queue) -> None:
    started: list[int] = []
    let_go = threading.Event()

    def handle(job: Job) -> None:
        started.append(job.data)
        if job.data == 2:
            let_go.wait(20)

    async def seen_waiting() -> bool:
        counts = await queue.get_job_counts()
        return (counts.completed, counts.active, counts.waiting) == (2, 1, N - 3)

    await add_row(queue, N)
    try:
        async with used_to_short_handlers(Worker(queue, handle)) as worker:
            await eventually(seen_waiting, "the jobs behind wait", timeout=2)
            # The server has them before the worker has its answer.
            await eventually(lambda: worker.get_worker_metrics().released >= N - 3, "the worker knows it too")
            let_go.set()
            assert await queue.wait_for_empty(10)
    finally:
        let_go.set()
    assert started == ALL


@one_kind
async def test_handlers_in_a_process_of_their_own_run_one_after_the_other(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=1000)
    async with Worker(queue, handlers.square, executor="process") as worker:
        # The process must be started first, which takes long.
        await (await queue.add(1)).result(20)
        used_to_short_handlers(worker)
        jobs = await add_row(queue, 200)
        results = await asyncio.gather(*(job.result(20) for job in jobs))
        assert took_rows(worker, 201)
    assert [result["square"] for result in results] == [i**2 for i in range(200)]
    assert len({result["pid"] for result in results} - {os.getpid()}) == 1
    assert await attempts_made(jobs) == [1] * 200
    assert [one.started_at for one in jobs] == sorted(one.started_at for one in jobs if one.started_at)


@one_kind
async def test_a_process_that_dies_in_the_middle_of_a_row_takes_nobody_with_it(queue: Queue) -> None:
    words = ["fine"] * 3 + ["exit"] + ["fine"] * 4
    async with Worker(queue, handlers.by_word, executor="process") as worker:
        await (await queue.add("fine")).result(20)
        used_to_short_handlers(worker)
        jobs = await queue.add_many(
            [{"data": word, "group_id": "g", "max_attempts": 2, "backoff": 0} for word in words]
        )
        assert await queue.wait_for_empty(20)
        await eventually(lambda: worker.get_worker_metrics().released >= 4, "the worker knows that they went back")
    assert await attempts_made(jobs) == [2 if word == "exit" else 1 for word in words]
    assert [job.state for job in jobs] == ["failed" if word == "exit" else "completed" for word in words]
