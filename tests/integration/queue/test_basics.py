"""The basics on a real server: adding, reading and changing jobs."""

from __future__ import annotations

import asyncio

from groupmq import Queue, Worker


async def test_an_added_job_can_be_read_back(queue: Queue) -> None:
    job = await queue.add({"amount": 999}, group_id="user:42", max_attempts=5, priority=3)
    found = await queue.get_job(job.id)
    assert found is not None
    assert (found.data, found.group_id, found.max_attempts, found.priority) == ({"amount": 999}, "user:42", 5, 3)
    assert found.state == job.state == "waiting"
    assert found.created_at == job.created_at


async def test_jobs_of_a_group_run_in_the_order_they_were_added(queue: Queue) -> None:
    seen: list[int] = []

    async def handle(job: object) -> None:
        seen.append(job.data)  # type: ignore[attr-defined]

    await asyncio.gather(*(queue.add(i, group_id="g") for i in range(50)))
    await Worker(queue, handle, concurrency=8).run(burst=True)
    assert seen == list(range(50))
