"""Snoozed jobs, ids that stay taken, skipped ticks, skipped jobs and breakers in a queue with four partitions."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from groupmq import Breaker, Every, FailJob, Job, Queue, Snooze, Worker
from groupmq.core.partitions import place_of
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.rates import started_ms
from tests.support.waiting import eventually

P = 4
GROUPS = [f"g{i}" for i in range(8)]


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    assert len({place_of(g) % P for g in GROUPS}) == P
    return make_queue("spread", partitions=P)


async def nothing(job: Job) -> None: ...


async def test_a_snoozed_job_comes_back_at_its_place_and_uses_no_attempt(queue: Queue) -> None:
    runs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    times: dict[str, list[int]] = defaultdict(list)

    async def handle(job: Job) -> None:
        group = str(job.group_id)
        runs[group].append((job.data, job.attempt))
        times[group] += started_ms([job])
        if len(runs[group]) <= 2:
            raise Snooze(timedelta(milliseconds=60))

    await queue.add_many({"data": i, "group_id": g, "max_attempts": 1} for i in range(3) for g in GROUPS)
    async with Worker(queue, handle, concurrency=4) as worker:
        assert await queue.wait_for_empty(20)
        assert worker.get_worker_metrics().snoozed == 2 * len(GROUPS)
    assert runs == {g: [(0, 1), (0, 1), (0, 1), (1, 1), (2, 1)] for g in GROUPS}
    assert all(at[1] - at[0] >= 60 and at[2] - at[1] >= 60 for at in times.values())
    assert await queue.get_failures() == []


async def test_a_job_without_a_group_is_snoozed_in_its_partition(queue: Queue) -> None:
    runs: Counter[str] = Counter()

    async def handle(job: Job) -> None:
        runs[job.id] += 1
        if runs[job.id] == 1:
            raise Snooze(0.05)

    jobs = await queue.add_many({"data": n, "max_attempts": 1} for n in range(12))
    async with Worker(queue, handle, concurrency=4):
        assert await queue.wait_for_empty(20)
    assert runs == {job.id: 2 for job in jobs}


@pytest.mark.parametrize("fails", [False, True])
async def test_an_id_stays_taken_after_its_job_is_gone(make_queue: MakeQueue, url: str, fails: bool) -> None:
    queue = make_queue("spread", partitions=P, keep_completed=0, keep_failed=0)

    async def handle(job: Job) -> None:
        if fails:
            raise FailJob("no")

    items: list[Any] = [{"data": 1, "group_id": g, "job_id": f"of {g}", "unique_for": 3600} for g in GROUPS]
    items += [{"data": 1, "job_id": f"alone {n}", "unique_for": 3600} for n in range(8)]
    assert not any(job.duplicate for job in await queue.add_many(items))
    await Worker(queue, handle, concurrency=4).run(burst=True)
    counts = await queue.get_job_counts()
    assert (counts.total, counts.completed, counts.failed) == (0, 0, 0)
    again = await queue.add_many(items)
    assert {(job.duplicate, job.state) for job in again} == {(True, "gone")}
    one = await queue.add(2, group_id=GROUPS[0], job_id=f"of {GROUPS[0]}")
    assert (one.duplicate, one.state) == (True, "gone")

    def blocking() -> bool:
        with SyncQueue("spread", url) as other:
            return other.add(3, job_id="alone 0").duplicate

    assert await asyncio.to_thread(blocking)
    assert (await queue.get_job_counts()).total == 0


async def test_the_same_id_twice_in_one_call_is_one_job(queue: Queue) -> None:
    for g in GROUPS:
        item: Any = {"group_id": g, "job_id": f"of {g}", "unique_for": 60}
        first, second = await queue.add_many([{"data": 1, **item}, {"data": 2, **item}])
        assert (first.duplicate, second.duplicate, second.data) == (False, True, 1)
    assert (await queue.get_job_counts()).waiting == len(GROUPS)


async def test_a_tick_adds_nothing_while_its_last_occurrence_lives(queue: Queue) -> None:
    gate, running, most = asyncio.Event(), Counter[str](), 0

    async def handle(job: Job) -> None:
        nonlocal most
        running[str(job.group_id)] += 1
        most = max(most, *running.values())
        await gate.wait()
        running[str(job.group_id)] -= 1

    async def skipped() -> list[int]:
        return [repeat.skipped for repeat in await queue.get_repeating_jobs()]

    repeat = Every(0.05, overlap="skip")
    for g in GROUPS:
        await queue.add({}, group_id=g, repeat=repeat)
    async with Worker(queue, handle, concurrency=len(GROUPS)):

        async def all_skipped() -> bool:
            return min(await skipped(), default=0) >= 3

        await eventually(lambda: running.total() == len(GROUPS), "one occurrence of each runs", timeout=20)
        await eventually(all_skipped, "ticks of each were skipped", timeout=20)
        assert (await queue.get_job_counts()).total == len(GROUPS)
        gate.set()
        await eventually(lambda: has_run_again(queue), "the schedules go on", timeout=20)
        for g in GROUPS:
            assert await queue.remove_repeating_job(g, repeat)
        assert await queue.wait_for_empty(10)
    assert most == 1


async def has_run_again(queue: Queue) -> bool:
    return all(repeat.count >= 2 for repeat in await queue.get_repeating_jobs())


async def test_a_skipped_job_stays_failed_and_its_group_goes_on(make_queue: MakeQueue) -> None:
    queue = make_queue("spread", partitions=P, on_failed="hold", max_attempts=1)

    async def handle(job: Job) -> None:
        if job.data == 0:
            raise ValueError("declined")

    await queue.add_many({"data": i, "group_id": g, "job_id": f"{g}-{i}"} for i in range(3) for g in GROUPS)
    async with Worker(queue, handle, concurrency=4):

        async def all_blocked() -> bool:
            return (await queue.get_metrics()).groups_blocked == len(GROUPS)

        await eventually(all_blocked, "every group is blocked", timeout=20)
        assert [await queue.skip(f"{g}-0") for g in GROUPS] == [True] * len(GROUPS)
        assert await queue.wait_for_empty(20)
    counts = await queue.get_job_counts()
    assert (counts.completed, counts.failed) == (2 * len(GROUPS), len(GROUPS))


async def test_an_open_breaker_tries_one_job_and_success_closes_it(make_queue: MakeQueue) -> None:
    queue = make_queue("spread", partitions=P, breaker=Breaker(failures=2, cooldown=0.2), backoff=0, max_attempts=50)
    tries: dict[str, list[int]] = defaultdict(list)
    down = True

    async def handle(job: Job) -> None:
        tries[str(job.group_id)] += started_ms([job])
        if down:
            raise ConnectionError("down")

    await queue.add_many({"data": i, "group_id": g} for i in range(2) for g in GROUPS)
    async with Worker(queue, handle, concurrency=8):
        await eventually(lambda: min(map(len, tries.values()), default=0) >= 4, "probes were sent", timeout=20)
        assert len(await queue.get_open_breakers()) == len(GROUPS)
        down = False
        assert await queue.wait_for_empty(20)
    assert await queue.get_open_breakers() == []
    for at in tries.values():
        rests = [later - before for before, later in pairwise(at[1:4])]
        assert min(rests) >= 200, f"probes came before the cool-down was over: {at}"
