"""After an outage, or at midnight, more delayed jobs are due than one call promotes. Each group still runs in its
order."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

JOBS, GROUPS = 3000, 300
ORDERS: dict[str, Callable[[int], int]] = {"priority": lambda i: (JOBS - i) % 1000, "order_ms": lambda i: JOBS - i}


async def fill(queue: Queue, order: str) -> None:
    """Add delayed jobs, all of which are due when this returns. Those that are due later come first in their group."""
    for lead in (1.5, 6, 24):
        first_due = time.time() + lead
        items: list[dict[str, Any]] = [
            {"data": i, "group_id": f"g{i % GROUPS}", "run_at": first_due + i / 10_000, order: ORDERS[order](i)}
            for i in range(JOBS)
        ]
        await queue.add_many(items)
        if time.time() < first_due:
            break
        # The machine was so busy that the first jobs are due already: try again, with more time.
        await queue.purge()
    assert await queue.get_delayed_count() == JOBS
    await eventually(lambda: time.time() > first_due + JOBS / 10_000 + 0.01, "all jobs are due")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("workers", [1, 3])
async def test_workers_run_each_group_in_its_order(make_queue: MakeQueue, order: str, workers: int) -> None:
    queue = make_queue(keep_completed=0)
    await fill(queue, order)
    started: dict[str | None, list[int]] = defaultdict(list)

    async def handle(job: Job) -> None:
        started[job.group_id].append(job.data)

    async with AsyncExitStack() as stack:
        for _ in range(workers):
            await stack.enter_async_context(Worker(queue, handle, concurrency=20))
        await eventually(lambda: sum(map(len, started.values())) == JOBS, "all jobs have run", 60)
    wrong = [group for group, ran in started.items() if ran != sorted(ran, key=lambda i: (ORDERS[order](i), i))]
    assert wrong == []


@pytest.mark.parametrize("duty", ["run_scheduler_once", "promote_delayed_jobs"])
async def test_a_scheduler_of_its_own_lets_all_of_them_join(make_queue: MakeQueue, duty: str) -> None:
    queue = make_queue(keep_completed=0)
    await fill(queue, "priority")
    await getattr(queue, duty)()
    counts = await queue.get_job_counts()
    assert (counts.waiting, counts.delayed) == (JOBS, 0)
