"""Bounds of groups, times to live and adds that stand for one job, through both clients and with real workers."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
import redis

from groupmq import Debounce, GroupFull, Job, Queue, Throttle, Worker
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.ticking import pass_by, server_ms
from tests.support.waiting import eventually
from tests.support.workers import Recorder, looked_once

# Groups that are full


async def test_a_full_group_refuses_by_name_and_takes_again_what_it_has_room_for(make_queue: MakeQueue) -> None:
    queue, handler = make_queue(max_group_size=3), Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler):
        await queue.add(0, group_id="g")
        await eventually(lambda: handler.started, "one runs, which counts too")
        await queue.add(1, group_id="g", delay=0.05)
        await queue.add(2, group_id="g")
        with pytest.raises(GroupFull, match="group 'g' is full: it has 3 live jobs, the most it may have"):
            await queue.add(3, group_id="g")
        await queue.add("other", group_id="h")
        await queue.add_many([{"data": f"free {n}"} for n in range(10)])
        handler.gate.set()
        assert await queue.wait_for_empty(10)
        await queue.add(3, group_id="g")
        assert await queue.wait_for_empty(10)
    assert [data for data in handler.started if data == 3] == [3]


async def test_of_concurrent_adds_exactly_as_many_succeed_as_there_is_room_for(make_queue: MakeQueue) -> None:
    queues = [make_queue("shared", max_group_size=5) for _ in range(3)]
    adds = [queue.add(n, group_id=f"g{n % 2}") for queue in queues for n in range(20)]
    answers = await asyncio.gather(*adds, return_exceptions=True)
    jobs = [answer for answer in answers if isinstance(answer, Job)]
    refused = [answer for answer in answers if isinstance(answer, GroupFull)]
    assert (len(jobs), len(refused)) == (10, 50)
    assert {error.group_id for error in refused} == {"g0", "g1"}
    assert (await queues[0].get_job_counts()).waiting == 10


async def test_a_refused_add_does_not_harm_its_neighbours_of_the_same_batch(make_queue: MakeQueue) -> None:
    queue = make_queue(max_group_size=1)
    one, two, other, free = await asyncio.gather(
        queue.add(1, group_id="g"),
        queue.add(2, group_id="g"),
        queue.add(3, group_id="h"),
        queue.add(4),
        return_exceptions=True,
    )
    assert isinstance(two, GroupFull)
    assert [job.data for job in (one, other, free) if isinstance(job, Job)] == [1, 3, 4]


async def test_add_many_writes_all_or_nothing(make_queue: MakeQueue) -> None:
    queue = make_queue(max_group_size=3)
    with pytest.raises(GroupFull):
        await queue.add_many([{"data": n, "group_id": "h" if n % 2 else "g"} for n in range(8)])
    assert (await queue.get_job_counts()).total == 0
    assert len(await queue.add_many([{"data": n, "group_id": "g"} for n in range(3)])) == 3


def test_the_blocking_client_raises_group_full_too(url: str) -> None:
    with SyncQueue("sync", url, max_group_size=1) as queue:
        queue.add(1, group_id="g")
        with pytest.raises(GroupFull) as caught:
            queue.add(2, group_id="g")
        assert (caught.value.group_id, caught.value.size) == ("g", 1)
        with pytest.raises(GroupFull):
            queue.add_many([{"data": 1, "group_id": "new"}, {"data": 2, "group_id": "g"}])
        assert queue.get_waiting_count() == 1


# Times to live


async def test_a_job_that_no_worker_was_free_for_in_time_fails_and_its_group_goes_on(queue: Queue) -> None:
    """A worker without a free slot still handles due work every `stalled_interval`."""
    handler = Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler, blocking_timeout=30, stalled_interval=0.1):
        await queue.add("blocks", group_id="g")
        await eventually(lambda: handler.started, "the only slot is taken")
        late = await queue.add("late", group_id="g", ttl=0.1)
        behind = await queue.add("behind", group_id="g", ttl=timedelta(seconds=60))
        await eventually(lambda: state_is(late, "failed"), "it fails without a free worker", timeout=5)
        handler.gate.set()
        assert await queue.wait_for_empty(5)
    assert handler.started == ["blocks", "behind"]
    await asyncio.gather(late.refresh(), behind.refresh())
    assert late.failed_reason == "expired: not started within its ttl"
    assert (late.attempts_made, late.started_at, behind.state) == (0, None, "completed")
    failures = await queue.get_failures()
    assert [(failure.job_id, failure.final) for failure in failures] == [(late.id, True)]


async def state_is(job: Job, state: str) -> bool:
    return await job.get_state() == state


async def test_a_ttl_runs_out_in_a_paused_group_while_the_worker_sleeps(queue: Queue) -> None:
    handler = Recorder()
    async with Worker(queue, handler, blocking_timeout=30) as worker:
        await looked_once(worker)
        await queue.pause_group("g")
        late = await queue.add("late", group_id="g", ttl=0.1)
        stays = await queue.add("stays", group_id="g")
        await eventually(lambda: state_is(late, "failed"), "it fails though its group is paused", timeout=5)
        assert await stays.get_state() == "waiting"
        await queue.resume_group("g")
        assert await queue.wait_for_empty(5)
    assert handler.started == ["stays"]


async def test_a_ttl_runs_out_in_a_paused_queue(queue: Queue) -> None:
    await queue.pause()
    late = await queue.add("late", group_id="g", ttl=0.1)
    async with Worker(queue, Recorder(), blocking_timeout=30):
        await eventually(lambda: state_is(late, "failed"), "it fails though the queue is paused", timeout=5)
    await queue.resume()


async def test_without_any_worker_the_scheduler_by_hand_lets_ttls_run_out(queue: Queue, client: redis.Redis) -> None:
    jobs = [await queue.add(n, group_id="g", ttl=0.05) for n in range(3)]
    await pass_by(client, server_ms(client) + 60)
    await queue.run_scheduler_once()
    assert [await job.get_state() for job in jobs] == ["failed"] * 3


async def test_a_ttl_that_has_run_out_is_never_started_late(queue: Queue, client: redis.Redis) -> None:
    """There was no call in between, so the call that would take the job must notice that its ttl is over."""
    handler = Recorder()
    await queue.add_many([{"data": n, "group_id": f"g{n % 5}", "ttl": 0.05} for n in range(20)])
    fine = await queue.add("fine", group_id="g0", ttl=60)
    await pass_by(client, server_ms(client) + 60)
    await Worker(queue, handler, concurrency=5).run(burst=True)
    assert handler.started == ["fine"]
    assert await queue.get_failed_count() == 20
    assert await fine.get_state() == "completed"


async def test_a_job_that_started_in_time_is_not_touched_by_its_ttl(queue: Queue, client: redis.Redis) -> None:
    handler = Recorder()
    handler.gate = asyncio.Event()
    job = await queue.add("runs", group_id="g", ttl=1.5)
    async with Worker(queue, handler):
        await eventually(lambda: handler.started, "it started in time")
        await pass_by(client, server_ms(client) + 1500)
        await queue.run_scheduler_once()
        assert await job.get_state() == "active"
        handler.gate.set()
        assert await queue.wait_for_empty(5)
    assert await job.get_state() == "completed"


async def test_the_ttl_of_a_delayed_job_begins_with_its_due_time(queue: Queue) -> None:
    handler = Recorder()
    async with Worker(queue, handler):
        await queue.add("delayed", group_id="g", delay=1, ttl=0.9)
        await handler.has_run("delayed")
    assert await queue.get_failed_count() == 0


# Adds that stand for one job


async def test_a_throttle_lets_only_the_first_through_even_once_it_is_done(queue: Queue) -> None:
    handler = Recorder()
    async with Worker(queue, handler):
        jobs = await asyncio.gather(*(queue.add(n, group_id="g", dedupe=Throttle("k", 60)) for n in range(10)))
        await handler.has_run(0)
        again = await queue.add("again", group_id="g", dedupe=Throttle("k", 60))
        other = await queue.add("other", group_id="h", dedupe=Throttle("k", 60))
        assert await queue.wait_for_empty(5)
    assert len({job.id for job in [*jobs, again]}) == 1
    assert [job.duplicate for job in jobs] == [False, *[True] * 9]
    assert (again.duplicate, again.data, other.duplicate) == (True, 0, False)
    assert handler.started == [0, "other"]


async def test_a_throttle_is_over_when_its_time_is(queue: Queue, client: redis.Redis) -> None:
    first = await queue.add("first", group_id="g", dedupe=Throttle("k", 0.1))
    assert first.created_at is not None
    await pass_by(client, round(first.created_at.timestamp() * 1000) + 100)
    second = await queue.add("second", group_id="g", dedupe=Throttle("k", 0.1))
    assert (second.duplicate, second.id != first.id) == (False, True)


async def test_a_debounce_runs_once_with_the_last_data_after_the_last_add(queue: Queue) -> None:
    runs: list[Job] = []

    async def handle(job: Job) -> None:
        runs.append(job)

    async with Worker(queue, handle, blocking_timeout=30) as worker:
        await looked_once(worker)
        burst = await asyncio.gather(*(queue.add(n, group_id="g", dedupe=Debounce("k", 0.8)) for n in range(10)))
        last = await queue.add("last", group_id="g", dedupe=Debounce("k", 0.8))
        assert len({job.id for job in [*burst, last]}) == 1
        await eventually(lambda: runs, "it runs after the silence")
        assert await queue.wait_for_empty(5)
        fresh = await queue.add("fresh", group_id="g", dedupe=Debounce("k", 0.05))
        assert not fresh.duplicate
        await eventually(lambda: len(runs) == 2, "the next one is a new job")
    assert [job.data for job in runs] == ["last", "fresh"]
    started, due = runs[0].started_at, last.run_at
    assert started is not None
    assert due is not None
    assert started >= due


def test_threads_of_the_blocking_client_share_one_throttle_and_one_debounce(url: str) -> None:
    with SyncQueue("sync", url) as queue:
        jobs: list[tuple[str, str]] = []

        def add(n: int) -> None:
            jobs.append(("throttle", queue.add(n, group_id="g", dedupe=Throttle("t", 60)).id))
            jobs.append(("debounce", queue.add(n, group_id="g", dedupe=Debounce("d", 60)).id))

        threads = [threading.Thread(target=add, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(jobs) == 16
        assert len(set(jobs)) == 2
        counts = queue.get_job_counts()
        assert (counts.waiting, counts.delayed) == (1, 1)
        queue.add("last", group_id="g", dedupe=Debounce("d", 60))
        (delayed,) = queue.get_delayed_jobs()
        assert queue.require_job(delayed).data == "last"


async def test_every_kind_of_limit_travels_in_one_batch(make_queue: MakeQueue) -> None:
    queue = make_queue(max_group_size=2)
    answers = await asyncio.gather(
        queue.add(1, group_id="g", dedupe=Throttle("k", 60)),
        queue.add(2, group_id="g", dedupe=Throttle("k", 60)),
        queue.add(3, group_id="g", ttl=60),
        queue.add(4, group_id="g"),
        queue.add(5, group_id="h", dedupe=Debounce("k", 60)),
        queue.add(6, group_id="h", dedupe=Debounce("k", 60)),
        queue.add(7, group_id="h", job_id="same"),
        queue.add(8, group_id="i", job_id="same"),
        return_exceptions=True,
    )
    told = [type(answer).__name__ if isinstance(answer, Exception) else answer.duplicate for answer in answers]  # type: ignore[union-attr]
    assert told == [False, True, False, "GroupFull", False, True, False, True]
    counts = await queue.get_job_counts()
    assert (counts.waiting, counts.delayed) == (3, 1)
