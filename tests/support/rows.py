"""Workers that prefetch rows from the start, as if they had seen many short handlers."""

from __future__ import annotations

import asyncio
from typing import Any

from groupmq import Job, Queue, Worker
from groupmq.sync import Queue as SyncQueue
from tests.support.parts import at_start, parts_of

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


async def add_to_groups(queue: Queue, groups: int, each: int) -> list[Job]:
    """Add as many jobs to each of the groups in turn."""
    return await queue.add_many([{"data": [g, i], "group_id": f"g{g}"} for i in range(each) for g in range(groups)])


async def add_reserve(queue: Queue, n: int, *, groups: bool = True, **options: Any) -> list[Job]:
    """Add jobs 0 to n - 1, each in its own group or in none, which a worker with one slot takes as a reserve."""
    return await queue.add_many([{"data": i, "group_id": f"g{i}" if groups else None, **options} for i in range(n)])


async def attempts_made(jobs: list[Job]) -> list[int]:
    for job in jobs:
        await job.refresh()
    return [job.attempts_made for job in jobs]


class Crowd:
    """A handler that counts the jobs that its worker holds."""

    def __init__(self, queue: Queue) -> None:
        self._look = SyncQueue(queue.name, queue._connection.endpoint.where)
        self.worker: Worker | None = None
        self.running = self.unreported = self.most = 0

    async def __call__(self, job: Job) -> None:
        self.running += 1
        # Use the blocking client, so that nothing changes in this process between the request and the answer.
        self.most = max(self.most, self._look.get_job_counts().active - self.unreported - self._on_their_way_back())
        await asyncio.sleep(0)
        self.running -= 1
        self.unreported += 1
        assert self.worker is not None
        # Counting took long, and must not be measured as the time of a handler.
        asyncio.get_running_loop().call_soon(used_to_short_handlers, self.worker)

    def reported(self, job: Job) -> None:
        self.unreported -= 1

    def _on_their_way_back(self) -> int:
        """Jobs that were given back because a handler took long on a busy machine. The server may not know of them
        yet."""
        assert self.worker is not None
        requesters = parts_of(self.worker).fetcher.requesters
        return sum(
            report.kind == "released" for requester in requesters for report in (*requester.reports, *requester.sent)
        )

    def close(self) -> None:
        self._look.close()
