"""The events of jobs that were taken together: each has its start and its end, in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from groupmq import Job, Queue, RateLimited, Worker
from tests.support.listening import listening
from tests.support.rows import add_row, used_to_short_handlers
from tests.support.workers import Listener

N = 30
ALL = list(range(N))


async def test_the_worker_shows_the_job_that_runs_and_none_that_is_ahead(queue: Queue) -> None:
    shown: list[tuple[list[int], bool, int]] = []

    async def handle(job: Job) -> None:
        current = worker.get_current_job()
        assert current is not None
        assert (current.job.id, current.job.state, current.processing_time >= 0) == (job.id, "active", True)
        shown.append(
            (
                [one.job.data for one in worker.get_current_jobs()],
                worker.is_processing(),
                worker.get_worker_metrics().running,
            )
        )
        await asyncio.sleep(0)

    await add_row(queue, N)
    worker = used_to_short_handlers(Worker(queue, handle))
    await worker.run(burst=True)
    assert shown == [([i], True, 1) for i in ALL]
    assert not worker.is_processing()
    assert worker.get_current_jobs() == []


async def test_the_worker_emits_events_of_each_prefetched_job_in_order(queue: Queue) -> None:
    order: list[tuple[str, int]] = []

    async def handle(job: Job) -> Any:
        order.append(("handler", job.data))
        return job.data

    jobs = await add_row(queue, N)
    worker = used_to_short_handlers(Worker(queue, handle))
    worker.on("active", lambda job: order.append(("active", job.data)))
    heard = Listener(worker, "active", "completed", "retrying", "failed", "lease-lost", "stalled", "drained", "error")
    await worker.run(burst=True)
    assert order == [(what, i) for i in ALL for what in ("active", "handler")]
    assert [job.id for (job,) in heard.args("completed")] == [job.id for job in jobs]
    assert [(job.state, job.return_value, job.attempts_made) for (job,) in heard.args("completed")] == [
        ("completed", i, 1) for i in ALL
    ]
    names = [(name, args[0].data) for name, args in heard.heard if args]
    for i in ALL:
        assert names.index(("active", i)) < names.index(("completed", i))
    assert Counter(heard.names()) == {"active": N, "completed": N, "drained": 1}


async def test_the_queue_publishes_start_and_end_of_each_job_before_those_of_the_next(
    queue: Queue, client: Any
) -> None:
    """Among them one that takes long, one that fails, and one that is rate-limited."""
    limited: list[int] = []

    async def handle(job: Job) -> Any:
        if job.data == 4:
            await asyncio.sleep(0.05)
        if job.data == 8 and job.attempt == 1:
            raise ValueError("once")
        if job.data == 12 and not limited:
            limited.append(job.data)
            raise RateLimited("slow down", retry_after=0.01)
        return job.data

    worker = used_to_short_handlers(Worker(queue, handle, concurrency=3))
    async with listening(queue, client) as heard:
        jobs = {g: await add_row(queue, N, group_id=g, backoff=0) for g in ("g", "h")}
        async with worker:
            assert await queue.wait_for_empty(10)
        await heard.has("drained")
    for g, added in jobs.items():
        told = [(event.kind, event.job_id) for event in heard if event.group_id == g and event.kind != "added"]
        expected = [(kind, job.id) for job in added for kind in ("active", "completed")]
        failed = expected.index(("active", added[8].id))
        expected[failed:failed] = [("active", added[8].id), ("retrying", added[8].id)]
        if told.count(("active", added[12].id)) == 2:
            expected.insert(expected.index(("active", added[12].id)), ("active", added[12].id))
        assert told == expected
        assert [event.result for event in heard if event.group_id == g and event.kind == "completed"] == ALL
    started = heard.of("active")
    assert {event.worker for event in started} == {worker.id}
    assert Counter(event.attempt for event in started) == {1: 2 * N + 1, 2: 2}
    assert sum(kind == "active" for kind in heard.kinds(jobs["g"][12].id) + heard.kinds(jobs["h"][12].id)) == 3


async def test_results_of_prefetched_jobs_all_arrive(queue: Queue) -> None:
    async def handle(job: Job) -> dict[str, int]:
        return {"square": job.data**2}

    jobs = await add_row(queue, 100)
    async with used_to_short_handlers(Worker(queue, handle)):
        results = await asyncio.gather(*(job.result(10) for job in jobs))
    assert results == [{"square": i**2} for i in range(100)]
