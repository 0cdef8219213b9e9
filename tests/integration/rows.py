"""Workers that prefetch rows from the start, as if they had seen many short handlers."""

from __future__ import annotations

from typing import Any

from groupmq import Job, Queue, Worker
from tests.support.parts import at_start

LONGEST_ROW = 64


def used_to_short_handlers(worker: Worker) -> Worker:
    at_start(worker, lambda parts: setattr(parts.dispatcher._prefetch, "typical", 1e-5))
    return worker


def whatever_happens(worker: Worker) -> Worker:
    """Keep the worker used to short handlers, even if a busy machine makes some of them slow."""
    worker.on("active", lambda job: used_to_short_handlers(worker))
    return used_to_short_handlers(worker)


async def add_row(queue: Queue, n: int, group_id: str = "g", **options: Any) -> list[Job]:
    """Add jobs 0 to n - 1 of one group, which a worker that starts now takes together."""
    return await queue.add_many([{"data": i, "group_id": group_id, **options} for i in range(n)])


async def add_reserve(queue: Queue, n: int, *, groups: bool = True, **options: Any) -> list[Job]:
    """Add jobs 0 to n - 1, each in its own group or in none, which a worker with one slot takes as a reserve."""
    return await queue.add_many([{"data": i, "group_id": f"g{i}" if groups else None, **options} for i in range(n)])


async def attempts_made(jobs: list[Job]) -> list[int]:
    for job in jobs:
        await job.refresh()
    return [job.attempts_made for job in jobs]
