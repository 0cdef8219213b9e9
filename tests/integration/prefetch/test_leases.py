"""Leases of rows: those of jobs that are prefetched, run or have ended last until the server knows what became of the
job."""

from __future__ import annotations

import asyncio
import time

import pytest

from groupmq import Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.leases import LEASE, LONG, Watch
from tests.support.parts import parts_of
from tests.support.rows import add_row, attempts_made, used_to_short_handlers
from tests.support.waiting import eventually
from tests.support.workers import Listener, one_kind

N = 6


@one_kind
@pytest.mark.parametrize("blocks", [0, 3, N - 1])
async def test_a_handler_that_blocks_the_event_loop_costs_nobody_of_its_row_a_lease(
    make_queue: MakeQueue, blocks: int
) -> None:
    queue = make_queue(job_timeout=LEASE)
    seen: list[int] = []
    held: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.data == blocks:
            time.sleep(LONG)  # noqa: ASYNC251 - the loop is meant to hang
            held.append(len(parts_of(worker).leases.leases()))

    jobs = await add_row(queue, N)
    worker = used_to_short_handlers(Worker(queue, handle))
    heard = Listener(worker, "stalled", "lease-lost", "retrying", "failed")
    with Watch(queue) as watch:
        async with worker:
            assert await queue.wait_for_empty(15)
    assert held == [1], "only the job that runs is renewed: others were given back or reported"
    assert watch.stalled == []
    assert heard.heard == []
    assert seen == list(range(N))
    assert await attempts_made(jobs) == [1] * N
    assert [job.stalls for job in jobs] == [0] * N
    assert (await queue.get_metrics()).stalled == 0


async def test_a_lease_is_renewed_from_the_first_moment_to_the_last_whatever_is_reported_of_it_meanwhile(
    queue: Queue,
) -> None:
    """The second job ends while the report that it has begun is on its way."""
    seen: list[int] = []
    not_held: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        while job.data == 1 and not parts_of(worker).fetcher.busy:  # noqa: ASYNC110 - in the very next tick
            await asyncio.sleep(0)

    async def watch() -> None:
        while jobs[2].id not in recorded:
            held = {job_id for job_id, _ in parts_of(worker).leases.leases()}
            not_held.extend(i for i in seen if jobs[i].id not in held | recorded)
            await asyncio.sleep(0)

    recorded: set[str] = set()
    jobs = await add_row(queue, 3)
    worker = used_to_short_handlers(Worker(queue, handle))
    worker.on("completed", lambda job: recorded.add(job.id))
    async with worker:
        async with asyncio.timeout(10):
            await watch()
        await eventually(lambda: worker.get_worker_metrics().released >= 1, "the worker knows that they went back")
    assert not_held == []
    assert seen == [0, 1, 2]
