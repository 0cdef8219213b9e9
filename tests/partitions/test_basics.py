"""A queue with four partitions on one server keeps the promises of a queue without partitions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from groupmq import ConfigurationError, Every, Job, JobNotFound, Queue, Worker
from groupmq.core.limits import RateLimit
from groupmq.core.partitions import Part, carried, place_of
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from groupmq.sync.portal import portal
from tests.conftest import MakeQueue
from tests.support.waiting import eventually, wait_until

P = 4
GROUPS = [f"g{i}" for i in range(20)]


async def nothing(_job: Job) -> None: ...


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    return make_queue("spread", partitions=P)


async def fill(queue: Queue, each: int = 3) -> list[Job]:
    return await queue.add_many([{"data": (g, i), "group_id": g} for i in range(each) for g in GROUPS])


async def test_jobs_of_a_group_run_in_order_and_groups_lie_in_all_partitions(queue: Queue, client: redis.Redis) -> None:
    await fill(queue)
    for i in range(3, 6):
        await asyncio.gather(*(queue.add((g, i), group_id=g) for g in GROUPS))
    metas = [Keys("groupmq", "spread", Part(i, P)) for i in range(P)]
    assert all(client.hlen(keys.fixed("jobs")) for keys in metas)
    assert not client.exists(Keys("groupmq", "spread").fixed("jobs"))
    ran: dict[str, list[int]] = defaultdict(list)

    async def handle(job: Job) -> None:
        ran[job.data[0]].append(job.data[1])

    await Worker(queue, handle, concurrency=8).run(burst=True)
    assert ran == {g: list(range(6)) for g in GROUPS}
    assert (await queue.get_job_counts()).completed == 120
    assert len({place_of(g) % P for g in GROUPS}) == P


async def test_adds_of_one_tick_keep_their_order_from_the_first_on(queue: Queue) -> None:
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)

    await asyncio.gather(*(queue.add(i, group_id="g") for i in range(50)))
    await Worker(queue, handle, concurrency=8).run(burst=True)
    assert seen == list(range(50))


@pytest.mark.parametrize("known", [False, True])
async def test_closing_finishes_what_was_added(make_queue: MakeQueue, known: bool) -> None:
    queue = make_queue("spread", partitions=P)
    if known:
        await queue.get_job_counts()
    ids = [None if i % 2 else f"of-{i}" for i in range(12)]
    adds = [asyncio.ensure_future(queue.add(i, group_id=f"g{i}", job_id=given)) for i, given in enumerate(ids)]
    await asyncio.sleep(0)
    await queue.close()
    assert len([add.result() for add in adds]) == 12
    assert (await make_queue("spread").get_job_counts()).waiting == 12


async def test_ids_find_their_job_without_asking_all(queue: Queue) -> None:
    made = await queue.add(1, group_id="g1")
    assert carried(made.id) == place_of("g1")
    loose = await queue.add(2)
    given = await queue.add(3, job_id="mine")
    away = [await queue.add(4, group_id=g, job_id=f"of-{g}") for g in GROUPS]
    for job in (made, loose, given, *away):
        found = await queue.get_job(job.id)
        assert found is not None
        assert found.data == job.data
    assert [job and job.data for job in await queue.get_jobs_by_id([made.id, "nobody", away[3].id])] == [1, None, 4]
    assert await queue.get_job("nobody") is None
    with pytest.raises(JobNotFound):
        await queue.retry("nobody")
    for job in (made, loose, given, *away):
        assert await queue.remove(job.id)
        assert await queue.get_job(job.id) is None


async def test_ungrouped_jobs_spread(queue: Queue) -> None:
    jobs = [await queue.add(i) for i in range(60)]
    assert len({(carried(job.id) or 0) % P for job in jobs}) == P


async def test_a_given_id_is_added_once(queue: Queue) -> None:
    for g in GROUPS[:6]:
        first = await queue.add(1, group_id=g, job_id=f"only-{g}")
        again = await queue.add(2, group_id=g, job_id=f"only-{g}")
        assert (first.duplicate, again.duplicate, again.data) == (False, True, 1)
    first, again = await queue.add(1, job_id="loose"), await queue.add(2, job_id="loose")
    assert (first.duplicate, again.duplicate, again.data) == (False, True, 1)


async def test_a_given_id_is_added_once_over_groups_too(queue: Queue) -> None:
    await queue.add("first", group_id="g0", job_id="x")
    for g in [*GROUPS[1:], None]:
        other = await queue.add("other", group_id=g, job_id="x")
        assert (other.duplicate, other.data, other.group_id) == (True, "first", "g0")
    await queue.remove("x")
    moved = await queue.add("moved", group_id="g7", job_id="x")
    assert not moved.duplicate
    assert (await queue.require_job("x")).data == "moved"


async def test_an_entry_without_a_job_harms_nobody_and_is_swept_away(queue: Queue, client: redis.Redis) -> None:
    away = await _away(queue)
    home = Keys("groupmq", "spread", Part(place_of("lost") % P, P))
    client.hset(home.elsewhere, "lost", f"{place_of(away)} {int(time.time() * 1000)}")
    assert await queue.get_job("lost") is None
    await queue.run_duty_once("cleanup")
    assert client.hexists(home.elsewhere, "lost")  # it is recent, so its add may still be in progress
    client.hset(home.elsewhere, "lost", f"{place_of(away)} 1700000000000")
    await queue.run_duty_once("cleanup")
    assert not client.hexists(home.elsewhere, "lost")
    job = await queue.add(1, group_id=away, job_id="lost")
    assert not job.duplicate
    client.hset(home.elsewhere, "lost", f"{place_of(away)} 1700000000000")
    await queue.run_duty_once("cleanup")
    assert client.hexists(home.elsewhere, "lost")


async def test_entries_of_live_jobs_are_not_all_read_by_each_sweep(
    make_queue: MakeQueue, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later sweeps find all entries of jobs that are gone."""
    queue = make_queue("spread", partitions=2)
    monkeypatch.setattr("groupmq.client.partitions.whereabouts.PAGE", 20)
    await queue.add_many({"data": i, "group_id": f"g{i}", "job_id": f"live-{i}"} for i in range(3000))
    books = [Keys("groupmq", "spread", Part(part, 2)).elsewhere for part in range(2)]
    for book in books:
        client.hset(book, mapping=dict.fromkeys(client.hkeys(book), "0 1700000000000"))
        client.hset(book, mapping={f"gone-{i}": "0 1700000000000" for i in range(3)})
    reads: list[int] = []
    read_at = queue._read_at

    async def counted(ids: Sequence[str], parts: Sequence[Queue]) -> list[Job | None]:
        reads.append(len(ids))
        return await read_at(ids, parts)

    monkeypatch.setattr(queue, "_read_at", counted)
    await queue.run_duty_once("cleanup")
    assert sum(reads) < 600
    for _ in range(30):
        await queue.run_duty_once("cleanup")
    assert not any(client.hexists(book, f"gone-{i}") for book in books for i in range(3))


async def test_an_add_that_took_long_enters_its_id_again(
    queue: Queue, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was suspended after it had written the entry, and the entry was swept meanwhile."""
    away = await _away(queue)
    home = Keys("groupmq", "spread", Part(place_of("lost") % P, P))
    clock = time.time
    part = queue._at(place_of(away))
    submit_all = part._submit_all

    async def suspended(chunks: Any) -> list[Job]:
        client.hdel(home.elsewhere, "lost")
        monkeypatch.setattr("groupmq.client.partitions.spreading.time.time", lambda: clock() + 3600)
        return await submit_all(chunks)

    monkeypatch.setattr(part, "_submit_all", suspended)
    await queue.add(1, group_id=away, job_id="lost")
    assert (await queue.require_job("lost")).group_id == away


async def _away(queue: Queue) -> str:
    """A group that is not in the home partition of the id `lost`."""
    await queue.get_job_counts()
    return next(g for g in GROUPS if place_of(g) % P != place_of("lost") % P)


async def test_an_id_of_our_form_in_the_wrong_place_is_refused(queue: Queue) -> None:
    made = await queue.add(1, group_id="g1")
    other = next(g for g in GROUPS if place_of(g) != place_of("g1"))
    with pytest.raises(ConfigurationError, match="looks like an id that groupmq makes"):
        await queue.add(2, group_id=other, job_id=made.id)
    assert (await queue.add(2, group_id="g1", job_id=made.id)).duplicate


async def test_another_number_is_refused_with_both_and_no_number_means_as_stored(
    queue: Queue, make_queue: MakeQueue, url: str
) -> None:
    await fill(queue)
    told = r"partitions is {there} there and {here} here\. .*; repartition\(\) changes the number of partitions$"
    for wrong in (1, 8):
        with pytest.raises(ConfigurationError, match=told.format(there=4, here=wrong)):
            await make_queue("spread", partitions=wrong).add(1)
    learned = make_queue("spread")
    assert (await learned.get_job_counts()).waiting == 60
    assert (await learned.get_settings()).partitions == P
    await make_queue("single").add(1)
    with pytest.raises(ConfigurationError, match=told.format(there=1, here=4)):
        await make_queue("single", partitions=4).add(1)
    opened = await Queue.open("spread", url)
    assert (await opened.get_job_counts()).waiting == 60
    await opened.close()
    assert [info.name for info in await Queue.list(url)] == ["single", "spread"]


def test_what_counts_over_the_whole_queue_is_refused() -> None:
    for options in ({"exclusive": True}, {"rate_limit": RateLimit(5, per=1)}):
        with pytest.raises(ConfigurationError, match="cannot be combined with partitions=4: each partition"):
            Queue("q", partitions=4, **options)
    for wrong in (0, -1, 1.5, True, 1025):
        with pytest.raises(ConfigurationError, match="partitions: expected an integer from 1 to 1024"):
            Queue("q", partitions=wrong)  # type: ignore[arg-type]


async def test_changes_reach_the_job_in_its_partition(queue: Queue) -> None:
    for i, g in enumerate(GROUPS[:8]):
        job = await queue.add(i, group_id=g, delay=60, job_id=f"j{i}" if i % 2 else None)
        assert await queue.change_delay(job.id, 30)
        assert await queue.promote(job.id)
        await queue.update_data(job.id, "new")
        assert (await queue.require_job(job.id)).data == "new"
        assert (await queue.get_position(job.id)).position == 1  # type: ignore[union-attr]
        assert await queue.fail(job.id, "because")
        assert await queue.retry(job.id)
        assert await queue.cancel(job.id)
    assert (await queue.get_job_counts()).total == 0


async def test_groups_are_paused_limited_and_looked_at(queue: Queue) -> None:
    await fill(queue)
    assert await queue.pause_group("g5")
    assert (await queue.get_group("g5")).paused
    assert await queue.set_group_concurrency("g6", 3)
    assert (await queue.get_group("g6")).concurrency == 3
    assert [job.data[1] for job in (await queue.get_group_jobs("g7", limit=2)).jobs] == [0, 1]
    assert await queue.get_group_job_count("g8") == 3
    assert await queue.cancel_group("g9") == 3
    await Worker(queue, nothing, concurrency=4).run(burst=True)
    assert (await queue.get_job_counts()).waiting == 3
    assert await queue.get_unique_groups() == ["g5"]
    assert await queue.resume_group("g5")


async def test_the_whole_queue_is_paused_and_resumed(queue: Queue) -> None:
    await fill(queue)
    await queue.pause()
    assert await queue.is_paused()
    await Worker(queue, nothing, concurrency=4).run(burst=True)
    assert (await queue.get_job_counts()).waiting == 60
    await queue.resume()
    await Worker(queue, nothing, concurrency=4).run(burst=True)
    assert await queue.wait_for_empty(5)


async def test_repeats_live_with_their_group(queue: Queue) -> None:
    for g in (*GROUPS[:6], None):
        await queue.add("tick", group_id=g, repeat=Every(60, immediately=True))
    assert len(await queue.get_repeating_jobs()) == 7
    assert await queue.run_scheduler_once() == 0, "the first ticks were added at once, and no other is due"
    jobs = [await queue.get_job(job_id) for job_id in await queue.get_waiting_jobs()]
    assert sorted(job.group_id or "" for job in jobs if job is not None) == sorted(["", *GROUPS[:6]])
    for g in (*GROUPS[:6], None):
        assert await queue.remove_repeating_job(g, Every(60))
    assert await queue.get_repeating_jobs() == []


async def test_results_events_and_listeners_come_from_all_partitions(queue: Queue) -> None:
    heard: list[str] = []
    queue.on("completed", lambda event: heard.append(event.job_id))

    async def handle(job: Job) -> Any:
        return job.data

    last = await queue.get_last_event_id()
    jobs = await fill(queue, 1)
    async with Worker(queue, handle, concurrency=4):
        assert [await job.result(10) for job in jobs] == [job.data for job in jobs]
    await eventually(lambda: len(heard) == len(jobs), "all `completed` events were received")
    assert sorted(heard) == sorted(job.id for job in jobs)
    ended: list[str] = []
    middle = None
    async for event in queue.events(since=last):
        if event.kind == "completed":
            ended.append(event.job_id or "")
        if len(ended) == 10 and middle is None:
            middle = event.id
        if len(ended) == len(jobs):
            break
    assert sorted(ended) == sorted(job.id for job in jobs)
    rest: list[str] = []
    async for event in queue.events(since=middle):
        if event.kind == "completed":
            rest.append(event.job_id or "")
        if len(rest) == len(jobs) - 10:
            break
    assert sorted(rest) == sorted(ended[10:])
    with pytest.raises(ConfigurationError, match="since: expected the id of an event"):
        async for _ in queue.events(since="1-0/1/0"):
            pass


async def test_obliterate_leaves_nothing(queue: Queue, client: redis.Redis) -> None:
    await fill(queue)
    await queue.add(1, group_id=await _away(queue), job_id="lost")
    await queue.obliterate()
    assert client.keys("*") == []
    await queue.add(1, group_id="g")
    assert (await queue.get_job_counts()).waiting == 1


def test_the_blocking_client_does_the_same(url: str) -> None:
    with SyncQueue("spread", url, partitions=P) as queue:
        jobs = queue.add_many([{"data": i, "group_id": g, "job_id": f"{g}-{i}"} for i in range(2) for g in GROUPS])
        assert [job.data for job in queue.get_jobs_by_id([job.id for job in jobs])] == [job.data for job in jobs]  # type: ignore[union-attr]
        assert queue.get_job_counts().waiting == 40
        assert len(queue.get_waiting_jobs()) == 40
        assert queue.search(state="waiting").total == 40
        assert queue.retry_many().matched == 0
        job = queue.add(1)
        assert queue.remove(job.id)
        assert queue.purge() == 40
        events = queue.events(since=queue.get_last_event_id())
        added = queue.add(2, group_id="g")
        assert next(events).job_id == added.id
        closed = threading.Event()
        # The garbage collector closes a generator without references in this way, in any thread.
        portal().call(events.close)  # type: ignore[attr-defined]
        portal().call(closed.set)
        assert closed.wait(10), "closing waits for nothing, not even in the loop that receives the events"
    with SyncQueue("spread", url) as queue, SyncQueue("spread", url) as other:
        heard: list[str | None] = []
        queue.on("added", lambda event: heard.append(event.job_id))
        ids = [other.add(i, group_id=g).id for i, g in enumerate(GROUPS)]
        wait_until(lambda: sorted(heard, key=str) == sorted(ids), "all events were received")
        queue.remove_all_listeners()
        assert queue.purge() == 21
        other.add(1)
        assert queue.get_job_counts().waiting == 1
        queue.obliterate()
