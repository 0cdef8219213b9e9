"""Fairness across groups with real workers: round robin, the oldest head, and priorities above both."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import redis

from groupmq import Job, Worker
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.ticking import pass_by
from tests.support.workers import one_kind


class Order:
    """A handler that records the groups, and the jobs, in the order in which they ran."""

    def __init__(self) -> None:
        self.groups: list[str | None] = []
        self.jobs: list[Job] = []

    async def __call__(self, job: Job) -> None:
        self.groups.append(job.group_id)
        self.jobs.append(job)


async def test_groups_take_turns_whatever_their_backlogs(make_queue: MakeQueue) -> None:
    queue, order = make_queue(fairness="round-robin"), Order()
    await queue.add_many([{"data": n, "group_id": "big"} for n in range(30)])
    for group in ("a", "b"):
        await queue.add_many([{"data": n, "group_id": group} for n in range(5)])
    await Worker(queue, order, concurrency=1).run(burst=True)
    assert order.groups[:15] == ["big", "a", "b"] * 5
    assert order.groups[15:] == ["big"] * 25
    for group in ("big", "a", "b"):
        data = [job.data for job in order.jobs if job.group_id == group]
        assert data == sorted(data)


async def test_without_round_robin_the_oldest_head_goes_first(make_queue: MakeQueue) -> None:
    queue, order = make_queue(), Order()
    await queue.add_many([{"data": n, "group_id": "big"} for n in range(10)])
    await queue.add_many([{"data": n, "group_id": "a"} for n in range(5)])
    await Worker(queue, order, concurrency=1).run(burst=True)
    assert order.groups == ["big"] * 10 + ["a"] * 5


def passed_over(grants: Sequence[str | None]) -> int:
    """The most groups with work that had to wait while one group was served twice, in the order of grants.

    A group that runs a job is not in the line, so as many groups as there are other slots may be passed over.
    """
    most = 0
    last: dict[str | None, int] = {}
    for at, group in enumerate(grants):
        if group in last:
            between, later = set(grants[last[group] + 1 : at]), set(grants[at + 1 :])
            most = max(most, len(later - between - {group}))
        last[group] = at
    return most


@pytest.mark.parametrize("slots", [1, 2, 4])
async def test_with_several_slots_no_group_is_served_twice_before_one_that_waits(
    make_queue: MakeQueue, slots: int
) -> None:
    queue, handler = make_queue(fairness="round-robin"), Order()
    await queue.add_many([{"data": n, "group_id": f"g{g}"} for g in range(10) for n in range(8)])
    await Worker(queue, handler, concurrency=slots).run(burst=True)
    grants = [job.group_id for job in sorted(handler.jobs, key=lambda job: job.fence)]
    assert len(grants) == 80
    assert passed_over(grants) < slots


async def test_a_group_that_joins_late_is_served_in_the_next_round(make_queue: MakeQueue) -> None:
    queue, order = make_queue(fairness="round-robin"), Order()
    for group in ("a", "b", "c"):
        await queue.add_many([{"data": n, "group_id": group} for n in range(6)])

    async def handle(job: Job) -> None:
        await order(job)
        if len(order.groups) == 4:
            await queue.add(0, group_id="late")

    await Worker(queue, handle, concurrency=1).run(burst=True)
    assert order.groups[:4] == ["a", "b", "c", "a"]
    assert "late" in order.groups[4:8]


async def test_priorities_stand_above_the_turns(make_queue: MakeQueue) -> None:
    queue, order = make_queue(fairness="round-robin"), Order()
    for group in ("a", "b"):
        await queue.add_many([{"data": n, "group_id": group, "priority": 5} for n in range(3)])
    for group in ("x", "y"):
        await queue.add_many([{"data": n, "group_id": group, "priority": 1} for n in range(3)])
    await Worker(queue, order, concurrency=1).run(burst=True)
    assert order.groups == ["x", "y"] * 3 + ["a", "b"] * 3


async def test_a_failing_group_is_served_in_each_round_and_not_more(make_queue: MakeQueue) -> None:
    queue, order = make_queue(fairness="round-robin"), Order()

    async def handle(job: Job) -> None:
        await order(job)
        if job.group_id == "bad":
            raise ValueError

    await queue.add_many([{"data": n, "group_id": "bad", "max_attempts": 3, "backoff": 0} for n in range(2)])
    await queue.add_many([{"data": n, "group_id": "good"} for n in range(6)])
    await Worker(queue, handle, concurrency=1).run(burst=True)
    assert order.groups == ["bad", "good"] * 6


@one_kind
async def test_rounds_hold_across_processes(make_queue: MakeQueue, url: str) -> None:
    queue, groups = make_queue(fairness="round-robin"), ("big", *"abcdefg")
    items = [{"data": {"n": n, "seconds": 0.005}, "group_id": g} for g in groups for n in range(8)]
    with Fleet(url, queue.name, concurrency=1, fairness="round-robin") as fleet:
        fleet.start(3)
        jobs = await queue.add_many(items)
        assert await queue.wait_for_empty(20)
    history = fleet.history()
    history.check([job.id for job in jobs])
    assert passed_over([run.group for run in history.runs]) < 3


@pytest.mark.parametrize(("level", "first"), [(0.02, "low"), (600, "high")])
async def test_what_waited_longer_than_its_lower_priority_counts_goes_first(
    make_queue: MakeQueue, client: redis.Redis, level: float, first: str
) -> None:
    queue, order = make_queue(priority_ageing=level), Order()
    low = await queue.add("low", group_id="low", priority=10)
    assert low.created_at is not None
    await pass_by(client, round(low.created_at.timestamp() * 1000) + 210)
    await queue.add("high", group_id="high", priority=0)
    await Worker(queue, order, concurrency=1).run(burst=True)
    assert order.groups[0] == first
    assert len(order.groups) == 2
