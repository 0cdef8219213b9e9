"""Changing the number of partitions: contents and order stay the same, also if the change was killed in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import redis

from groupmq import ConfigurationError, Job, RateLimit, Throttle, Worker
from groupmq.client.connection.connections import Connection
from groupmq.client.partitions import moving
from groupmq.core.errors import GroupMQError
from tests.conftest import MakeQueue
from tests.partitions.contents import GROUPS, KEPT, fill, run_all, snapshot


class Killed(BaseException):
    """Stands for the death of the process."""


@pytest.mark.parametrize("steps", [(1, 4), (4, 1), (3, 8), (8, 2), (1, 5, 2, 1)])
async def test_everything_is_there_afterwards(
    make_queue: MakeQueue, client: redis.Redis, steps: tuple[int, ...]
) -> None:
    queue = make_queue("q", partitions=steps[0], **KEPT)
    await fill(queue)
    await queue.pause()
    before = await snapshot(queue)
    for to in steps[1:]:
        queue = make_queue("q", **KEPT)
        seen: list[int] = []
        jobs = await queue.repartition(to, progress=seen.append)
        assert jobs == sum(len(before[state]) for state in ("waiting", "delayed", "completed", "failed"))
        assert seen == sorted(seen)
        fresh = make_queue("q", **KEPT)
        assert await fresh.is_paused()
        assert (await fresh.get_settings()).partitions == to
        assert await snapshot(fresh) == before
        assert await snapshot(queue) == before
    assert (await fresh.add("again", job_id="taken")).duplicate
    assert (await fresh.add("again", job_id="given", group_id="g1")).duplicate
    assert (await fresh.add("again", dedupe=Throttle("key", 3600))).duplicate
    assert (await fresh.add("again", group_id="g2", dedupe=Throttle("key", 3600))).duplicate
    ran = await run_all(fresh)
    for g in GROUPS:
        waiting = [i for i in before["lines"][g][2] if i in before["waiting"]]
        held = before["lines"][g][1] in ("paused", "blocked", "backoff")
        assert [job_id for _, job_id in ran.get(g, [])] == ([] if held else waiting)
    assert {i for _, i in ran[None]} == {i for i, job in before["waiting"].items() if job[1] is None}
    await fresh.obliterate()
    assert client.keys("*") == []


async def test_a_killed_repartition_can_be_continued(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch, client: redis.Redis
) -> None:
    monkeypatch.setattr(moving, "ABANDONED", 0.0)
    queue = make_queue("q", partitions=2, **KEPT)
    await fill(queue)
    await queue.pause()
    before = await snapshot(queue)
    left = [10**9]
    send = Connection.command

    async def command(self: Connection, *parts: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return await send(self, *parts, **options)

    monkeypatch.setattr(Connection, "command", command)
    partitions, step, killed = 2, 3, 0
    while step < 4000:
        to = 3 if partitions == 2 else 2
        left[0] = step
        step += 7 + step // 12
        try:
            await make_queue("q", **KEPT).repartition(to)
        except Killed:
            killed += 1
            left[0] = 10**9
            if killed % 4 == 0:
                pending: Any = client.hget("groupmq:{q}:meta", "moving")
                if pending is not None and pending.endswith(b"copy"):
                    with pytest.raises(ConfigurationError, match="is being repartitioned"):
                        await make_queue("q", **KEPT).add(1)
                    with pytest.raises(ConfigurationError, match=f"from {partitions} to {to}; finish that first"):
                        await make_queue("q", **KEPT).repartition(7)
            await make_queue("q", **KEPT).repartition(to)
        else:
            left[0] = 10**9
            if killed > 5:
                break
        partitions = to
        assert await snapshot(make_queue("q", **KEPT)) == before
    assert killed > 20


async def test_repartition_is_refused_while_the_queue_works(make_queue: MakeQueue) -> None:
    queue = make_queue("q", partitions=2)
    started, end = asyncio.Event(), asyncio.Event()

    async def wait(job: Job) -> None:
        started.set()
        await end.wait()

    await queue.add(1, group_id="g")
    async with Worker(queue, wait):
        await started.wait()
        with pytest.raises(ConfigurationError, match="is not paused"):
            await queue.repartition(4)
        await queue.pause()
        with pytest.raises(ConfigurationError, match="has 1 running job; wait until it has none"):
            await queue.repartition(4)
        end.set()
    await queue.repartition(4)
    assert (await queue.get_settings()).partitions == 4
    limited = make_queue("limited", rate_limit=RateLimit(5, per=1))
    await limited.pause()
    with pytest.raises(ConfigurationError, match="rate_limit: cannot be combined with partitions=4"):
        await limited.repartition(4)
    assert not (await limited.add(1)).duplicate


async def test_two_runs_at_once_do_not_meet(make_queue: MakeQueue) -> None:
    queue = make_queue("q", partitions=2)
    await queue.add_many({"data": i, "group_id": g} for i in range(30) for g in GROUPS)
    await queue.pause()
    one, other = make_queue("q"), make_queue("q")
    for each in (one, other):
        await each.get_job_counts()
    ends = await asyncio.gather(one.repartition(3), other.repartition(3), return_exceptions=True)
    assert [end for end in ends if end == 360]
    for end in ends:
        assert end == 360 or isinstance(end, GroupMQError)
    assert (await make_queue("q").get_job_counts()).waiting == 360


async def test_a_process_that_does_not_know_is_refused(make_queue: MakeQueue) -> None:
    for before, to in ((2, 3), (1, 3), (3, 1)):
        old = make_queue(f"q{before}{to}", partitions=before)
        await old.add_many({"data": 1, "group_id": g} for g in GROUPS)
        await old.pause()
        await make_queue(old.name).repartition(to)
        for call in (old.add(2, group_id="g1"), old.add_many([{"data": 2, "group_id": "g2"}]), old.get_group("g3")):
            with pytest.raises(ConfigurationError, match=f"partitions is {to} there and {before} here"):
                await call
        new = make_queue(old.name)
        assert (await new.get_job_counts()).waiting == len(GROUPS)
        assert (await new.repair()).clean
