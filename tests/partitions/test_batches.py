"""Handlers of batches in a queue with four partitions: a batch has jobs of one group, and so of one partition."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import pytest

from groupmq import BatchFailed, Breaker, FailJob, Job, Queue, Snooze, Worker
from groupmq.core.partitions import place_of
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

P = 4
GROUPS = [f"g{i}" for i in range(8)]


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("spread", partitions=P, backoff=0.01)


async def add_rows(queue: Queue, n: int) -> list[Job]:
    """Add `n` jobs to each group; the data of a job is its position in its group."""
    assert len({place_of(g) % P for g in GROUPS}) == P
    return await queue.add_many({"data": i, "group_id": g, "job_id": f"{g}-{i}"} for i in range(n) for g in GROUPS)


class Batches:
    """Records the data of each batch by group; all jobs of a batch must have the same group."""

    def __init__(self) -> None:
        self.seen: dict[str | None, list[list[int]]] = defaultdict(list)
        self.ran: list[str] = []

    def note(self, jobs: list[Job]) -> str | None:
        self.ran += [job.id for job in jobs]
        (group,) = {job.group_id for job in jobs}
        self.seen[group].append([job.data for job in jobs])
        return group


async def test_each_group_comes_in_order_and_each_job_has_its_result(queue: Queue) -> None:
    batches = Batches()

    async def handle(jobs: list[Job]) -> list[str]:
        batches.note(jobs)
        return [f"{job.group_id}:{job.data}" for job in jobs]

    jobs = await add_rows(queue, 12)
    worker = Worker(queue, handle, batch=5, concurrency=3)
    await worker.run(burst=True)
    assert batches.seen == {g: [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]] for g in GROUPS}
    assert [await job.result(5) for job in jobs] == [f"{job.group_id}:{job.data}" for job in jobs]
    assert worker.get_worker_metrics().completed == len(jobs)


async def test_jobs_without_a_group_come_in_batches_of_their_partition(queue: Queue) -> None:
    sizes: list[int] = []
    await queue.add_many({"data": n} for n in range(80))

    async def handle(jobs: list[Job]) -> None:
        sizes.append(len(jobs))

    await Worker(queue, handle, batch=10).run(burst=True)
    assert sum(sizes) == 80
    # Each partition has at most one batch that is not full.
    assert sum(size < 10 for size in sizes) <= P


async def test_batch_failed_completes_the_prefix_and_leaves_the_rest_in_every_partition(queue: Queue) -> None:
    batches = Batches()

    async def handle(jobs: list[Job]) -> None:
        batches.note(jobs)
        if len(jobs) == 5:
            raise BatchFailed(at=2, reason="the third is bad")

    jobs = await add_rows(queue, 5)
    async with Worker(queue, handle, batch=10, concurrency=4):
        assert await queue.wait_for_empty(20)
    assert batches.seen == {g: [[0, 1, 2, 3, 4], [2], [3, 4]] for g in GROUPS}
    attempts = Counter([((await job.refresh()).data, job.attempts_made) for job in jobs])
    assert attempts == {(i, 2 if i == 2 else 1): len(GROUPS) for i in range(5)}


async def test_a_snoozed_job_holds_its_group_in_every_partition(queue: Queue) -> None:
    batches = Batches()
    snoozed: set[str | None] = set()

    async def handle(jobs: list[Job]) -> list[Any]:
        group = batches.note(jobs)
        first = group not in snoozed
        snoozed.add(group)
        return [Snooze(0.05) if first and job.data == 1 else job.data for job in jobs]

    await add_rows(queue, 3)
    async with Worker(queue, handle, batch=10, concurrency=4) as worker:
        assert await queue.wait_for_empty(20)
        metrics = worker.get_worker_metrics()
    for g in GROUPS:
        first, *others = batches.seen[g]
        assert (first, [n for batch in others for n in batch]) == ([0, 1, 2], [1, 2])
    assert (metrics.snoozed, metrics.retried, metrics.failed) == (len(GROUPS), 0, 0)


async def test_breaker_blocked_groups_and_batches_together(make_queue: MakeQueue) -> None:
    """The third job fails three times, its group rests before each probe, and then the job blocks its group."""
    breaker = Breaker(failures=2, cooldown=0.05)
    queue = make_queue("spread", partitions=P, backoff=0.01, on_failed="hold", breaker=breaker)
    batches, down = Batches(), True

    async def handle(jobs: list[Job]) -> None:
        batches.note(jobs)
        for at, job in enumerate(jobs):
            if down and job.data == 2:
                raise BatchFailed(at=at, reason="the endpoint is down")

    await add_rows(queue, 5)
    async with Worker(queue, handle, batch=10, concurrency=4):

        async def all_blocked() -> bool:
            return len(await queue.get_blocked_groups()) == len(GROUPS)

        await eventually(all_blocked, "every group is blocked", timeout=20)
        assert batches.seen == {g: [[0, 1, 2, 3, 4], [2], [2]] for g in GROUPS}
        assert {one.id for one in await queue.get_open_breakers()} == set(GROUPS)
        assert {one.blocked_by for one in await queue.get_blocked_groups()} == {f"{g}-2" for g in GROUPS}
        down = False
        assert await queue.skip("g0-2")
        assert (await queue.retry_many()).retried == len(GROUPS)
        assert await queue.wait_for_empty(20)
    assert await queue.get_open_breakers() == await queue.get_blocked_groups() == []
    assert all([n for batch in batches.seen[g][3:] for n in batch] == [2, 3, 4] for g in GROUPS[1:])
    # Its group continued when the job was skipped, so others of the group may have run before the job was retried.
    assert sorted(n for batch in batches.seen["g0"][3:] for n in batch) == [2, 3, 4]


async def test_nothing_behind_a_job_that_blocks_its_group_completes(make_queue: MakeQueue) -> None:
    queue = make_queue("spread", partitions=P, on_failed="hold")

    async def handle(jobs: list[Job]) -> list[Any]:
        return [FailJob("declined") if job.data == 1 else job.data for job in jobs]

    await add_rows(queue, 4)
    await Worker(queue, handle, batch=10, concurrency=4).run(burst=True)
    counts = await queue.get_job_counts()
    n = len(GROUPS)
    assert (counts.completed, counts.failed, counts.waiting) == (n, n, 2 * n)


async def test_closing_in_the_middle_keeps_what_is_done_and_gives_the_rest_back(queue: Queue) -> None:
    reached, batches = asyncio.Event(), Batches()

    async def handle(jobs: list[Job]) -> None:
        batches.note(jobs)
        try:
            reached.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise BatchFailed(at=2, reason="stopped") from None

    jobs = await add_rows(queue, 4)
    worker = await Worker(queue, handle, batch=10).start()
    await reached.wait()
    await worker.close(timeout=0)
    ((group, [batch]),) = batches.seen.items()
    assert batch == [0, 1, 2, 3]
    found = [((await job.refresh()).state, job.attempts_made) for job in jobs if job.group_id == group]
    assert found == [("completed", 1)] * 2 + [("waiting", 0)] * 2


async def test_cancelling_one_job_of_a_batch_stops_it_in_its_partition(queue: Queue) -> None:
    batches = Batches()

    async def handle(jobs: list[Job]) -> None:
        batches.note(jobs)
        if len(jobs) == 3:
            await asyncio.Event().wait()

    async with Worker(queue, handle, batch=10, heartbeat=5):
        for g in GROUPS[:3]:
            jobs = await queue.add_many({"data": i, "group_id": g} for i in range(3))
            await eventually(partial(batches.ran.count, jobs[2].id), "the batch runs")
            assert await queue.cancel(jobs[1].id)
            assert await queue.wait_for_empty(10)
            states = [(await job.refresh()).state for job in jobs]
            assert states == ["completed", "failed", "completed"]


async def test_a_batch_waits_until_it_is_full(queue: Queue) -> None:
    batches = Batches()

    async def handle(jobs: list[Job]) -> None:
        batches.note(jobs)

    async with Worker(queue, handle, batch=3, batch_wait=30):
        for i in range(3):
            await queue.add_many({"data": i, "group_id": g} for g in GROUPS)
        await eventually(lambda: len(batches.seen) == len(GROUPS), "every group has run", timeout=10)
    assert batches.seen == {g: [[0, 1, 2]] for g in GROUPS}
