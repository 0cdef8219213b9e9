"""Repeating jobs that had no scheduler for a while, and definitions that change while they tick."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Literal

import pytest
import redis

from groupmq import Every, Queue, Worker
from groupmq.client.duties.scheduler import Scheduler
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.by_hand import asked
from tests.support.fleet import ROOT
from tests.support.ticking import Ticker, check_grid, check_unbroken, holes, pass_by, server_ms
from tests.support.waiting import eventually
from tests.support.workers import one_kind, watching

PERIOD = 50
MISSED = 8


async def ran_after_an_outage(
    queue: Queue, client: redis.Redis, catch_up: Literal["one", "all", "none"]
) -> tuple[list[int], int, int]:
    """The ticks that ran after a time without workers, the first tick of the grid, and when workers came back."""
    first = await queue.add({}, group_id="g", repeat=Every(PERIOD / 1000, catch_up=catch_up))
    await pass_by(client, first.order_ms + MISSED * PERIOD)
    back = server_ms(client)
    handler = Ticker()
    async with Worker(queue, handler):
        await handler.has_run(MISSED + 5)
    return handler.ticks, first.order_ms, back


async def test_missed_ticks_are_one_run_by_default_and_then_it_goes_on(queue: Queue, client: redis.Redis) -> None:
    ticks, first, back = await ran_after_an_outage(queue, client, "one")
    assert ticks[0] >= first + MISSED * PERIOD, "a tick before the last missed one ran"
    check_grid(ticks, first, PERIOD)
    # One tick stands for all that were missed, and then every tick follows.
    assert holes(ticks, PERIOD) == []
    assert ticks[0] > back - PERIOD


async def test_missed_ticks_are_all_run_with_catch_up_all(queue: Queue, client: redis.Redis) -> None:
    ticks, first, _ = await ran_after_an_outage(queue, client, "all")
    check_unbroken(ticks, first, PERIOD)


async def test_missed_ticks_are_not_run_with_catch_up_none(queue: Queue, client: redis.Redis) -> None:
    ticks, first, back = await ran_after_an_outage(queue, client, "none")
    check_grid(ticks, first, PERIOD)
    assert ticks[0] > back
    assert holes(ticks, PERIOD) == []


async def test_what_becomes_due_during_the_first_look_is_late_and_not_missed(queue: Queue, client: redis.Redis) -> None:
    """A new scheduler counts from its first answer on: ticks that become due before its last answer are not missed."""
    first = await queue.add({}, group_id="g", repeat=Every(PERIOD / 1000))
    await pass_by(client, first.order_ms + MISSED * PERIOD)
    look = Scheduler(asked).run_once()
    call, ran, step = look.send(None), None, 0
    while ran is None:
        answer = await queue._connection.call(call)
        if step == 1:
            await pass_by(client, server_ms(client) + 3 * PERIOD)
        step += 1
        try:
            call = look.send(answer)
        except StopIteration as stop:
            ran = stop.value
    jobs = [await queue.require_job(job_id) for job_id in await queue.get_waiting_jobs()]
    ticks = sorted(job.order_ms for job in jobs)
    assert len(ticks) >= 4, "the ticks that became due after the first answer"
    assert ticks[0] >= first.order_ms + MISSED * PERIOD
    assert holes(ticks, PERIOD) == []


@pytest.mark.parametrize("catch_up", ["one", "all"])
async def test_a_limit_counts_what_was_caught_up(
    queue: Queue, client: redis.Redis, catch_up: Literal["one", "all"]
) -> None:
    first = await queue.add({}, group_id="g", repeat=Every(PERIOD / 1000, catch_up=catch_up, limit=3))
    await pass_by(client, first.order_ms + MISSED * PERIOD)
    handler = Ticker()
    async with Worker(queue, handler):
        await eventually(lambda: ended(queue), "the repeat is over")
        await queue.wait_for_empty()
    check_grid(handler.ticks, first.order_ms, PERIOD)
    assert len(handler.ticks) == 3
    assert (handler.ticks[0] == first.order_ms) == (catch_up == "all")


async def ended(queue: Queue) -> bool:
    return not await queue.get_repeating_jobs()


async def test_an_update_changes_the_data_and_neither_doubles_nor_moves_a_tick(queue: Queue) -> None:
    handler = Ticker()
    repeat = Every(PERIOD / 1000)
    async with Worker(queue, handler) as worker:
        await watching(worker)
        first = await queue.add(0, group_id="g", repeat=repeat)
        for version in range(1, 60):
            await queue.add(version, group_id="g", repeat=repeat)
            await asyncio.sleep(0.01)
        await eventually(lambda: 59 in handler.data, "the last version ran")
    check_unbroken(handler.ticks, first.order_ms, PERIOD)
    assert handler.data == sorted(handler.data), "an older version ran after a newer one"
    assert len(await queue.get_repeating_jobs()) == 1


async def test_an_update_while_nobody_watches_leaves_a_due_tick_due(queue: Queue, client: redis.Redis) -> None:
    repeat = Every(0.1, catch_up="all")
    first = await queue.add("old", group_id="g", repeat=repeat)
    await pass_by(client, first.order_ms + 200)
    again = await queue.add("new", group_id="g", repeat=repeat)
    assert again.order_ms == first.order_ms
    await queue.run_scheduler_once()
    handler = Ticker()
    async with Worker(queue, handler):
        await handler.has_run(3)
    check_unbroken(handler.ticks, first.order_ms, 100)
    assert set(handler.data) == {"new"}


async def test_a_new_period_under_the_same_key_begins_a_new_grid(queue: Queue, client: redis.Redis) -> None:
    handler = Ticker()
    async with Worker(queue, handler) as worker:
        await watching(worker)
        await queue.add("rare", group_id="g", repeat=Every(3600, key="report"))
        before = server_ms(client)
        first = await queue.add("often", group_id="g", repeat=Every(PERIOD / 1000, key="report"))
        assert before + PERIOD <= first.order_ms <= server_ms(client) + PERIOD
        await handler.has_run(5)
        assert [job.schedule for job in await queue.get_repeating_jobs()] == ["every 0.05 s"]
    check_unbroken(handler.ticks, first.order_ms, PERIOD)


@one_kind
async def test_two_processes_that_define_the_same_at_once_make_one_repeat_on_one_grid(
    make_queue: MakeQueue, url: str
) -> None:
    queue, handler = make_queue(), Ticker()
    told = {"queue": queue.name, "url": url, "group": "g", "key": "k", "every": PERIOD / 1000, "times": 150}
    async with Worker(queue, handler) as worker:
        await watching(worker)
        first = await queue.add({"by": "us", "n": 0}, group_id="g", repeat=Every(PERIOD / 1000, key="k"))
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.support.definer", json.dumps(told | {"name": name}), cwd=ROOT
            )
            for name in ("one", "two")
        ]
        assert await asyncio.gather(*(program.wait() for program in programs)) == [0, 0]
        (definition,) = await queue.get_repeating_jobs()
        ran = len(handler.jobs)
        await handler.has_run(ran + 3)
    check_unbroken(handler.ticks, first.order_ms, PERIOD)
    assert definition.data["n"] == 149
    assert handler.jobs[-1].data == definition.data
    for name in ("one", "two"):
        numbers = [data["n"] for data in handler.data if data["by"] == name]
        assert numbers == sorted(numbers), f"an older version of {name} ran after a newer one"


def test_the_blocking_client_defines_lists_ticks_and_removes(url: str, client: redis.Redis) -> None:
    with SyncQueue("sync", url) as queue:
        first = queue.add({"n": 1}, group_id="g", repeat=Every(0.1, catch_up="all"))
        assert (first.state, queue.get_job(first.id)) == ("delayed", None)
        asyncio.run(pass_by(client, first.order_ms + 200))
        assert queue.run_scheduler_once() >= 3
        (definition,) = queue.get_repeating_jobs()
        assert (definition.group_id, definition.data, definition.count >= 3) == ("g", {"n": 1}, True)
        jobs = [queue.require_job(job_id) for job_id in queue.get_waiting_jobs()]
        check_unbroken([job.order_ms for job in jobs], first.order_ms, 100)
        now = queue.add({"n": 2}, group_id="h", repeat=Every(60, key="k", immediately=True))
        assert queue.require_job(now.id).state == "waiting"
        assert queue.remove_repeating_job("h", "k")
        assert queue.remove_repeating_job("g", Every(0.1))
        assert queue.get_repeating_jobs() == []
