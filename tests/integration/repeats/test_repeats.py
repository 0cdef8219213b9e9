"""Repeating jobs and real workers: every tick once, on its grid, with any number of workers, however busy."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise

import pytest
import redis

from groupmq import ConfigurationError, Cron, Every, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.ticking import Ticker, check_grid, check_unbroken, pass_by, server_ms
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once, one_kind, watching

PERIOD = 50
FAST = Every(PERIOD / 1000)


async def test_each_tick_runs_once_in_order_and_exactly_on_the_grid(queue: Queue) -> None:
    handler = Ticker()
    async with Worker(queue, handler) as worker:
        await watching(worker)
        first = await queue.add({"n": 1}, group_id="g", repeat=FAST)
        await handler.has_run(25)
    check_unbroken(handler.ticks, first.order_ms, PERIOD)
    handler.check_never_early()
    assert handler.jobs[0].id == first.id
    assert {job.group_id for job in handler.jobs} == {"g"}
    assert all(data == {"n": 1} for data in handler.data)


async def test_of_many_workers_one_makes_each_tick(make_queue: MakeQueue) -> None:
    handler = Ticker()
    queues = [make_queue("shared") for _ in range(4)]
    workers = [Worker(queue, handler, concurrency=2) for queue in queues for _ in range(2)]
    for worker in workers:
        await worker.start()
    await watching(*workers)
    first = await queues[0].add({}, group_id="g", repeat=FAST)
    await handler.has_run(25)
    await asyncio.gather(*(worker.close() for worker in workers))
    check_unbroken(handler.ticks, first.order_ms, PERIOD)


async def test_repeats_of_many_groups_tick_side_by_side(queue: Queue) -> None:
    handler = Ticker()
    firsts = {}
    async with Worker(queue, handler, concurrency=4) as worker:
        await watching(worker)
        for i in range(5):
            firsts[f"g{i}"] = (await queue.add(i, group_id=f"g{i}", repeat=FAST)).order_ms
        firsts["slow"] = (await queue.add("s", group_id="slow", repeat=Every(0.2))).order_ms
        await eventually(lambda: sum(job.group_id == "slow" for job in handler.jobs) >= 4, "the slow repeat ticks")
    for group, first in firsts.items():
        ticks = [job.order_ms for job in handler.jobs if job.group_id == group]
        check_unbroken(ticks, first, 200 if group == "slow" else PERIOD)
        assert len(ticks) >= 3


async def test_a_worker_whose_slots_are_all_taken_ticks_on_time(queue: Queue) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler) as worker:
        await watching(worker)
        await queue.add("blocks", group_id="other")
        await eventually(lambda: handler.started, "the only slot is taken")
        first = await queue.add("tick", group_id="g", repeat=FAST)
        await eventually(lambda: has_waiting(queue, 12), "the ticks still add jobs")
        ids = await queue.get_waiting_jobs()
        jobs = [job for job in [await queue.get_job(job_id) for job_id in ids] if job is not None]
        handler.gate.set()
    assert handler.started[0] == "blocks"
    check_unbroken(sorted(job.order_ms for job in jobs), first.order_ms, PERIOD)
    late = [created_ms(job) - job.order_ms for job in jobs]
    assert min(late) >= 0, "added before its tick"
    assert sorted(late)[len(late) // 2] < 1000, late


def created_ms(job: Job) -> int:
    assert job.created_at is not None
    return round(job.created_at.timestamp() * 1000)


async def has_waiting(queue: Queue, count: int) -> bool:
    return await queue.get_waiting_count() >= count


async def test_a_worker_without_maintenance_does_not_tick_and_the_scheduler_by_hand_does(
    queue: Queue, client: redis.Redis
) -> None:
    handler = Ticker()
    async with Worker(queue, handler, maintenance=False) as worker:
        await looked_once(worker)
        first = await queue.add({}, group_id="g", repeat=Every(0.1, catch_up="all"))
        await pass_by(client, first.order_ms + 300)
        assert (handler.jobs, (await queue.get_job_counts()).total) == ([], 0)
        assert await queue.run_scheduler_once() >= 4
        await handler.has_run(4)
        check_unbroken(handler.ticks, first.order_ms, 100)


async def test_a_repeat_that_is_defined_while_workers_sleep_ticks_in_time(queue: Queue) -> None:
    """Their blocking read is far longer than the period: they must be woken, from the first tick on."""
    handler = Ticker()
    async with Worker(queue, handler, blocking_timeout=30) as worker:
        await looked_once(worker)
        await watching(worker)
        hourly = await queue.add("rare", group_id="rare", repeat=Every(3600))
        first = await queue.add("often", group_id="often", repeat=FAST)
        await handler.has_run(5)
    assert hourly.order_ms > first.order_ms
    check_unbroken(handler.ticks, first.order_ms, PERIOD)


@pytest.mark.parametrize("limit", [1, 7])
async def test_a_limit_is_the_number_of_occurrences(queue: Queue, limit: int) -> None:
    handler = Ticker()
    async with Worker(queue, handler) as worker:
        await watching(worker)
        first = await queue.add({}, group_id="g", repeat=Every(0.03, limit=limit))
        await handler.has_run(limit)
        await eventually(lambda: gone(queue), "the repeat is over")
    check_unbroken(handler.ticks, first.order_ms, 30)
    assert len(handler.ticks) == limit


async def gone(queue: Queue) -> bool:
    return not await queue.get_repeating_jobs()


async def test_nothing_ticks_before_the_start_nor_after_the_end(queue: Queue, client: redis.Redis) -> None:
    handler = Ticker()
    async with Worker(queue, handler) as worker:
        await watching(worker)
        start = server_ms(client) + 200
        end = start + 5 * PERIOD
        repeat = Every(PERIOD / 1000, start=start / 1000, end=end / 1000)
        first = await queue.add({}, group_id="g", repeat=repeat)
        await eventually(lambda: gone(queue), "the repeat is over")
        await queue.wait_for_empty()
    assert first.order_ms == start
    assert handler.ticks == list(range(start, end + 1, PERIOD))
    handler.check_never_early()


async def test_immediately_runs_once_at_the_definition_and_not_again_at_an_update(queue: Queue) -> None:
    handler = Ticker()
    repeat = Every(3600, immediately=True)
    async with Worker(queue, handler):
        first = await queue.add("now", group_id="g", repeat=repeat)
        assert first.state == "waiting"
        await handler.has_run(1)
        again = await queue.add("later", group_id="g", repeat=repeat)
        assert (again.state, again.order_ms) == ("delayed", first.order_ms + 3_600_000)
        await queue.wait_for_empty()
    assert handler.data == ["now"]
    assert [(job.count, job.data) for job in await queue.get_repeating_jobs()] == [(1, "later")]


@one_kind
async def test_cron_with_seconds_ticks_on_whole_seconds(queue: Queue) -> None:
    handler = Ticker()
    async with Worker(queue, handler):
        first = await queue.add({}, group_id="g", repeat=Cron("* * * * * *", tz="Europe/Stockholm"))
        await handler.has_run(2)
    assert first.order_ms % 1000 == 0
    check_unbroken(handler.ticks, first.order_ms, 1000)
    handler.check_never_early()


async def test_an_occurrence_has_the_options_of_its_definition(queue: Queue) -> None:
    attempts: list[tuple[int, int]] = []

    async def handle(job: Job) -> None:
        attempts.append((job.attempt, job.priority))
        raise ValueError

    async with Worker(queue, handle):
        repeat = Every(0.02, limit=1)
        await queue.add({}, group_id="g", repeat=repeat, max_attempts=2, backoff=0, priority=7, timeout=5)
        await eventually(lambda: failed(queue), "the occurrence has failed")
    assert attempts == [(1, 7), (2, 7)]


async def failed(queue: Queue) -> bool:
    return await queue.get_failed_count() == 1


async def test_occurrences_that_run_longer_than_the_period_queue_up_and_none_is_lost(queue: Queue) -> None:
    handler = Recorder(seconds=0.04)
    async with Worker(queue, handler, concurrency=4):
        await queue.add("slow", group_id="g", repeat=Every(0.02, limit=10))
        await handler.has_run("slow", times=10, timeout=15)
    assert handler.most_in_group == 1


async def test_repeats_are_listed_with_what_they_did_and_a_removed_one_ticks_no_more(
    queue: Queue, client: redis.Redis
) -> None:
    handler = Ticker()
    async with Worker(queue, handler):
        first = await queue.add({"n": 1}, group_id="g", repeat=FAST)
        await queue.add({"n": 2}, repeat=Cron("0 9 * * 1-5", key="morning", end=datetime(2100, 1, 1, tzinfo=UTC)))
        await handler.has_run(3)
        soon, morning = await queue.get_repeating_jobs()
        assert (soon.key, soon.group_id, soon.schedule, soon.data) == ("every 0.05 s", "g", "every 0.05 s", {"n": 1})
        assert soon.count >= 3
        assert soon.last_run is not None
        assert soon.last_run < soon.next_run
        check_grid([round(soon.last_run.timestamp() * 1000)], first.order_ms, PERIOD)
        assert (morning.key, morning.group_id, morning.count, morning.last_run) == ("morning", None, 0, None)
        assert await queue.remove_repeating_job("g", FAST)
        assert not await queue.remove_repeating_job("g", FAST)
        assert not await queue.remove_repeating_job("other", "morning")
        await queue.wait_for_empty()
        ran = len(handler.jobs)
        await pass_by(client, server_ms(client) + 4 * PERIOD)
        assert len(handler.jobs) == ran
        assert await queue.remove_repeating_job(None, "morning")
        assert await queue.get_repeating_jobs() == []


@one_kind
async def test_workers_close_in_the_middle_of_fast_ticks(queue: Queue) -> None:
    """On Python 3.11 the client library can swallow a cancellation: closing must not wait for one to arrive."""
    handler = Ticker()
    await queue.add({}, group_id="g", repeat=Every(0.002, catch_up="none"))
    for _ in range(4):
        workers = [Worker(queue, handler) for _ in range(6)]
        for worker in workers:
            await worker.start()
        ran = len(handler.jobs)
        await handler.has_run(ran + 10)
        async with asyncio.timeout(10):
            await asyncio.gather(*(worker.close() for worker in workers))
    await queue.remove_repeating_job("g", Every(0.002))
    assert all(before < after for before, after in pairwise(handler.ticks))


async def test_a_repeat_that_has_ended_already_is_refused(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match="repeat: expected a repeat that still ticks"):
        await queue.add({}, repeat=Every(1, end=datetime(2020, 1, 1, tzinfo=UTC)))
