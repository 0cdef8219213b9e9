"""Windows for jobs that arrive out of order: groups wait exactly as long as they must, and other groups do not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import combinations
from typing import Any

import pytest
import redis

from groupmq import Every, Job, Ordering, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.ticking import server_ms
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once, one_kind

WINDOWS = [0.02, 0.1, 0.4]


class Witness:
    """A handler that keeps the jobs that it ran, in order."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    async def __call__(self, job: Job) -> None:
        self.jobs.append(job)

    def data(self, group: str) -> list[Any]:
        return [job.data for job in self.jobs if job.group_id == group]

    def of(self, group: str) -> list[Job]:
        return [job for job in self.jobs if job.group_id == group]


def millis(instant: datetime | None) -> int:
    assert instant is not None
    return round(instant.timestamp() * 1000)


def inversions(jobs: Sequence[Job]) -> list[str]:
    """Jobs of a group that started after a later one, although they were there by then."""
    return [
        f"{late.order_ms} started after {early.order_ms}"
        for early, late in combinations(jobs, 2)
        if late.order_ms < early.order_ms and millis(late.created_at) < millis(early.started_at)
    ]


def window_end(jobs: Iterable[Job], window: int, max_wait: int) -> int:
    """When an arrival window that opened with the first of these jobs has closed, by the server's clock."""
    arrivals = sorted(millis(job.created_at) for job in jobs)
    end = arrivals[0] + window
    for arrival in arrivals[1:]:
        if arrival < end:
            end = min(arrivals[0] + max_wait, arrival + window)
    return end


@pytest.mark.parametrize("window", WINDOWS)
async def test_event_time_runs_late_arrivals_in_order_and_none_before_its_window_is_over(
    make_queue: MakeQueue, client: redis.Redis, window: float
) -> None:
    queue, witness, dice = make_queue(ordering=Ordering.event_time(window)), Witness(), random.Random(int(window * 1e3))
    window_ms = round(window * 1000)
    async with Worker(queue, witness, concurrency=4):
        now = server_ms(client)
        # All of them arrive within the window, so each can still take its position.
        orders = [now + i * window_ms // 10 for i in range(20)]
        shuffled = [(group, order) for group in ("a", "b") for order in orders]
        dice.shuffle(shuffled)
        for group, order in shuffled:
            await queue.add(order, group_id=group, order_ms=order)
        assert await queue.wait_for_empty(15)
    assert sorted(witness.data("a")) == sorted(witness.data("b")) == orders
    for group in ("a", "b"):
        assert inversions(witness.of(group)) == []
    early = [job for job in witness.jobs if millis(job.started_at) < job.order_ms + window_ms]
    assert not early, "started before its window was over"


async def test_event_time_makes_a_late_job_the_next_one_even_behind_its_window(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    """A job that arrives after the window can no longer run before earlier ones. It delays no job by a new window."""
    queue, witness = make_queue(ordering=Ordering.event_time(0.1)), Witness()
    async with Worker(queue, witness):
        now = server_ms(client)
        await queue.add(2, group_id="g", order_ms=now)
        await queue.add(3, group_id="g", order_ms=now + 300)
        await eventually(lambda: witness.data("g") == [2], "the first job ran")
        await queue.add(1, group_id="g", order_ms=now - 5000)
        await eventually(
            lambda: witness.data("g")[:2] == [2, 1], "the late job runs at once, before the one that waits"
        )
        assert await queue.wait_for_empty(10)
    assert witness.data("g") == [2, 1, 3]
    assert millis(witness.jobs[-1].started_at) >= now + 400


@pytest.mark.parametrize("window", WINDOWS)
async def test_arrival_runs_what_came_within_the_window_in_order_and_not_before_its_end(
    make_queue: MakeQueue, window: float
) -> None:
    queue, witness = make_queue(ordering=Ordering.arrival(window)), Witness()
    async with Worker(queue, witness, concurrency=4):
        for n in (3, 1, 2):
            for group in ("a", "b"):
                await queue.add(n, group_id=group, order_ms=n)
        assert await queue.wait_for_empty(10)
    for group in ("a", "b"):
        jobs = witness.of(group)
        assert sorted(witness.data(group)) == [1, 2, 3]
        assert inversions(jobs) == []
        assert millis(jobs[0].started_at) >= window_end(jobs, round(window * 1000), round(window * 3000))


async def test_arrivals_extend_the_window_up_to_the_longest_wait(make_queue: MakeQueue) -> None:
    queue, witness = make_queue(ordering=Ordering.arrival(0.3, max_wait=0.6)), Witness()
    async with Worker(queue, witness):
        first = await queue.add(999, group_id="g", order_ms=999)
        for n in range(998, 0, -1):
            await queue.add(n, group_id="g", order_ms=n)
            if witness.jobs:
                break
            await asyncio.sleep(0.02)
        assert await queue.wait_for_empty(10)
    began, arrived = millis(witness.jobs[0].started_at), millis(first.created_at)
    assert began >= window_end(witness.jobs, 300, 600)
    assert began < arrived + 600 + 2000, "the group waited for longer than max_wait"
    assert inversions(witness.jobs) == []


async def test_once_its_window_has_closed_a_group_with_a_backlog_waits_no_more(make_queue: MakeQueue) -> None:
    queue, handler = make_queue(ordering=Ordering.arrival(0.2)), Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler):
        for n in (1, 2, 5):
            await queue.add(n, group_id="g", order_ms=n)
        await eventually(lambda: handler.started, "the first one runs")
        await queue.add(4, group_id="g", order_ms=4)
        info = await queue.get_group("g")
        assert info.held_for is None
        handler.gate.set()
        assert await queue.wait_for_empty(10)
    assert handler.started == [1, 2, 4, 5]


@pytest.mark.parametrize("ordering", [Ordering.event_time(30), Ordering.arrival(30)])
async def test_a_group_that_waits_holds_no_slot(make_queue: MakeQueue, client: redis.Redis, ordering: Ordering) -> None:
    queue, handler = make_queue(ordering=ordering), Recorder()
    async with Worker(queue, handler, concurrency=1):
        await queue.add("waits", group_id="waits")
        info = await queue.get_group("waits")
        assert info.state == "parked"
        assert info.held_for is not None
        assert 20 < info.held_for <= 30
        for n in range(5):
            if ordering.kind == "event_time":
                await queue.add(n, group_id="old", order_ms=server_ms(client) - 60_000)
            else:
                await queue.add(n)
        await eventually(lambda: len(handler.ended) == 5, "the others run meanwhile")
        assert (await queue.get_group("waits")).state == "parked"
    assert handler.started == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["event_time", "arrival"])
async def test_nobody_polls_while_groups_wait(make_queue: MakeQueue, kind: str) -> None:
    ordering = Ordering.event_time(1) if kind == "event_time" else Ordering.arrival(1)
    queue, handler = make_queue(ordering=ordering), Recorder()
    async with Worker(queue, handler, concurrency=4, blocking_timeout=30) as worker:
        await looked_once(worker)
        await queue.add_many([{"data": n, "group_id": f"g{n}"} for n in range(10)])
        await eventually(lambda: len(handler.ended) == 10, "all ran after their window", timeout=10)
        await eventually(lambda: worker.get_worker_metrics().completed == 10, "all are reported")
        advances = worker.get_worker_metrics().advances
    # Calls at the beginning and end of the window, and a few for ten jobs on four slots. Polling every 10 ms would make
    # a hundred.
    assert advances <= 30, f"{advances} calls"


@one_kind
async def test_windows_hold_across_processes(make_queue: MakeQueue, client: redis.Redis, url: str) -> None:
    ordering = Ordering.event_time(0.5)
    queue = make_queue(ordering=ordering)
    with Fleet(url, queue.name, ordering=ordering) as fleet:
        fleet.start(2)
        now = server_ms(client)
        numbers = list(range(30))
        random.Random(3).shuffle(numbers)
        jobs = [await queue.add({"n": n}, group_id=f"g{n % 3}", order_ms=now + 10 * n) for n in numbers]
        assert await queue.wait_for_empty(15)
    created = {job.id: millis(job.created_at) for job in jobs}
    starts = sorted(fleet.history().of_kind("start"), key=lambda line: int(line["fence"]))
    assert len(starts) == 30
    assert all(line["at"] >= line["order"] + 500 for line in starts)
    for early, late in combinations(starts, 2):
        in_place = early["group"] != late["group"] or early["order"] < late["order"]
        assert in_place or created[late["job"]] >= early["at"], f"{late} was granted after {early}"


async def test_ticks_of_a_repeat_wait_for_their_window_like_any_job(make_queue: MakeQueue) -> None:
    queue, witness = make_queue(ordering=Ordering.event_time(0.2)), Witness()
    async with Worker(queue, witness):
        first = await queue.add(0, group_id="g", repeat=Every(0.05, limit=5, catch_up="all"))
        await eventually(lambda: len(witness.jobs) == 5, "all ticks ran")
    assert [job.order_ms for job in witness.jobs] == [first.order_ms + 50 * i for i in range(5)]
    assert all(millis(job.started_at) >= job.order_ms + 200 for job in witness.jobs)


async def test_a_queue_without_a_window_lets_nothing_wait(queue: Queue) -> None:
    handler = Recorder()
    await queue.add(2, group_id="g", order_ms=2)
    await queue.add(1, group_id="g", order_ms=1)
    await Worker(queue, handler).run(burst=True)
    assert handler.started == [1, 2]
