"""Rate limits and windows while workers die and servers restart: no start is early, and no job is left waiting."""

from __future__ import annotations

import asyncio
import random

import pytest

from groupmq import Ordering, Queue, RateLimit
from tests.faults.conftest import StartServer
from tests.support.fleet import Fleet
from tests.support.history import History
from tests.support.producing import produce
from tests.support.rates import excesses
from tests.support.servers import Kind, available_kinds, prefer
from tests.support.waiting import eventually

LEASE = 1.0
LIMIT = RateLimit(10, per=0.25)


def starts(history: History) -> list[int]:
    """The times at which jobs were granted, in milliseconds: the fences contain them, even if an answer was resent.

    The fences of one call are consecutive microseconds from the time of the call on, so the last ones may lie in the
    next millisecond. The first one is the time at which all of them were granted.
    """
    found: list[int] = []
    before = 0
    for fence in sorted(run.fence for run in history.runs):
        found.append(found[-1] if fence == before + 1 else fence // 1000)
        before = fence
    return found


async def completed(fleet: Fleet, count: int) -> None:
    await eventually(lambda: len(fleet.lines("completed")) >= count, f"{count} jobs are done", timeout=20)


async def test_a_rate_limit_is_kept_while_workers_are_killed_and_replaced(start_server: StartServer) -> None:
    server = start_server(prefer("redis"))
    dice = random.Random(4)
    async with Queue("limited", server.url, job_timeout=LEASE, rate_limit=LIMIT) as queue:
        with Fleet(server.url, "limited", job_timeout=LEASE, rate_limit=LIMIT) as fleet:
            workers = fleet.start(3)
            added = await produce(queue, range(80), groups=20, seconds=0.02)
            for done in (15, 30):
                await completed(fleet, done)
                fleet.kill(workers.pop(dice.randrange(len(workers))))
                workers += await asyncio.to_thread(fleet.start)
            assert await queue.wait_for_empty(20)
    history = fleet.history()
    history.check(added)
    assert excesses(starts(history), LIMIT) == []


@pytest.mark.parametrize("kind", available_kinds())
async def test_a_rate_limit_survives_the_restart_of_its_server(start_server: StartServer, kind: Kind) -> None:
    server = start_server(kind, aof=True)
    async with Queue("limited", server.url, job_timeout=15, rate_limit=LIMIT) as queue:
        with Fleet(server.url, "limited", job_timeout=15, blocking_timeout=0.5, rate_limit=LIMIT) as fleet:
            fleet.start(2)
            added = await produce(queue, range(40), groups=20)
            await completed(fleet, 10)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.restart)
            assert await queue.wait_for_empty(20)
    history = fleet.history()
    history.check(added)
    assert len(history.runs) == 40
    assert excesses(starts(history), LIMIT) == []


@pytest.mark.parametrize("ordering", [Ordering.event_time(0.5), Ordering.arrival(0.5)])
async def test_a_window_that_only_a_dead_worker_knew_of_ends_all_the_same(
    start_server: StartServer, ordering: Ordering
) -> None:
    server = start_server(prefer("valkey"))
    async with Queue("windows", server.url, ordering=ordering) as queue:
        with Fleet(server.url, "windows", blocking_timeout=1, ordering=ordering) as fleet:
            victims = fleet.start(2)
            survivor = fleet.start(1)[0]
            jobs = [await queue.add({"n": n}, group_id="g") for n in range(3)]
            for victim in victims:
                fleet.kill(victim)
            assert await queue.wait_for_empty(10), "the group waits for ever"
    history = fleet.history()
    history.check([job.id for job in jobs])
    assert {run.pid for run in history.runs} == {survivor.pid}
    first = jobs[0].created_at
    assert first is not None
    assert min(starts(history)) >= round(first.timestamp() * 1000) + 500, "started before its window was over"
