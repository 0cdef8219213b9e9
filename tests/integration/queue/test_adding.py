"""Adding jobs: the returned jobs, duplicates, several jobs at once, hostile ids."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from groupmq import Backoff, ConfigurationError, Job, Queue, Worker
from groupmq.core.drafts import draft
from groupmq.protocol import commands
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue


async def ids_in_order(queue: Queue, **options: Any) -> list[str]:
    """Run every job that can start. Returns the ids in the order they started."""
    started: list[str] = []

    async def handle(job: Job) -> None:
        started.append(job.id)

    await Worker(queue, handle, **options).run(burst=True)
    return started


async def test_an_added_job_says_what_it_is_without_a_second_look(queue: Queue) -> None:
    job = await queue.add(
        {"x": [1, None, "ö"]},
        group_id="g",
        order_ms=-7,
        priority=3,
        max_attempts=9,
        timeout=timedelta(seconds=4),
        backoff=Backoff.fixed(2),
        on_retry="yield",
        job_id="mine",
    )
    assert isinstance(job, Job)
    for seen in (job, await queue.require_job("mine")):
        assert (seen.id, seen.group_id, seen.data, seen.state) == ("mine", "g", {"x": [1, None, "ö"]}, "waiting")
        assert (seen.order_ms, seen.priority, seen.max_attempts, seen.timeout) == (-7, 3, 9, 4.0)
        assert (seen.backoff, seen.on_retry, seen.duplicate) == (Backoff.fixed(2), "yield", False)
        assert (seen.attempts_made, seen.attempt, seen.run_at, seen.started_at) == (0, 1, None, None)
    assert job.to_dict() == (await queue.require_job("mine")).to_dict()


async def test_a_job_without_a_group_and_settings_has_those_of_the_queue(make_queue: MakeQueue) -> None:
    job = await make_queue(max_attempts=7).add(None)
    assert (job.group_id, job.data, job.priority, job.max_attempts, job.timeout) == (None, None, 0, 7, None)


async def test_ids_of_jobs_are_made_unique(queue: Queue) -> None:
    jobs = await asyncio.gather(*(queue.add(i) for i in range(500)))
    assert len({job.id for job in jobs}) == 500


@pytest.mark.parametrize("how", ["delay", "timedelta", "run_at", "epoch"])
async def test_a_job_for_later_is_delayed_until_then(queue: Queue, how: str) -> None:
    when = datetime.now(UTC) + timedelta(seconds=60)
    given: dict[str, dict[str, Any]] = {
        "delay": {"delay": 60},
        "timedelta": {"delay": timedelta(minutes=1)},
        "run_at": {"run_at": when},
        "epoch": {"run_at": when.timestamp()},
    }
    job = await queue.add(1, **given[how])
    found = await queue.require_job(job.id)
    assert job.state == found.state == "delayed"
    assert job.run_at == found.run_at
    assert found.run_at is not None
    assert abs(found.run_at - when) < timedelta(seconds=5)


@pytest.mark.parametrize("given", [{"run_at": datetime(1999, 1, 1, tzinfo=UTC)}, {"run_at": 0}, {"delay": 0}])
async def test_a_time_that_has_passed_is_now(queue: Queue, given: dict[str, Any]) -> None:
    job = await queue.add(1, **given)
    assert (job.state, job.run_at) == ("waiting", None)


async def test_an_existing_id_returns_the_existing_job_and_the_first_data_wins(queue: Queue) -> None:
    first = await queue.add("first", group_id="a", job_id="x")
    second = await queue.add("second", group_id="b", priority=9, job_id="x")
    assert (first.duplicate, second.duplicate) == (False, True)
    assert (second.data, second.group_id, second.priority) == ("first", "a", 0)
    assert (await queue.get_job_counts()).waiting == 1


async def test_an_id_added_many_times_at_once_is_added_once(make_queue: MakeQueue) -> None:
    queues = [make_queue("shared") for _ in range(3)]
    jobs = await asyncio.gather(*(queue.add(i, job_id="x") for i, queue in enumerate(queues * 10)))
    assert sum(not job.duplicate for job in jobs) == 1
    assert len({job.data for job in jobs}) == 1


async def test_an_id_is_free_again_once_its_job_is_gone(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=0)
    for _ in range(3):
        assert not (await queue.add(1, job_id="x")).duplicate
        assert await ids_in_order(queue) == ["x"]


async def test_many_items_are_added_in_their_order(queue: Queue) -> None:
    jobs = await queue.add_many({"data": i, "group_id": "g", "job_id": f"j{i}"} for i in range(2500))
    assert [job.id for job in jobs] == [f"j{i}" for i in range(2500)]
    assert [job.data for job in jobs] == list(range(2500))
    assert (await queue.get_job_counts()).waiting == 2500
    assert await queue.get_waiting_jobs(limit=5) == [f"j{i}" for i in range(5)]


async def test_many_items_may_be_drafts_and_mappings(queue: Queue) -> None:
    described = queue.create_job("a").group("g").retries(4).priority(2).set_id("a")
    first, second = await queue.add_many([described, {"data": "b", "delay": 60}])
    assert (first.id, first.group_id, first.max_attempts, first.priority) == ("a", "g", 5, 2)
    assert (second.data, second.state) == ("b", "delayed")


async def test_many_items_say_which_of_them_existed(queue: Queue) -> None:
    await queue.add("old", job_id="b")
    jobs = await queue.add_many({"data": name, "job_id": name} for name in "abca")
    assert [job.duplicate for job in jobs] == [False, True, False, True]
    assert [job.data for job in jobs] == ["a", "old", "c", "a"]


async def test_no_items_are_no_jobs(queue: Queue) -> None:
    assert await queue.add_many([]) == []


@pytest.mark.parametrize("position", [0, 700, 1500, 2499])
@pytest.mark.parametrize("bad", [{"priority": -1}, {"data": object()}, {"prio": 1}, {"delay": 1, "run_at": 1}])
async def test_one_bad_item_and_nothing_of_all_is_written(
    queue: Queue, client: redis.Redis, position: int, bad: dict[str, Any]
) -> None:
    items = [{"data": i} for i in range(2500)]
    items[position] = {"data": 1, **bad}
    with pytest.raises(ConfigurationError, match=rf"^items\[{position}\]"):
        await queue.add_many(items)
    assert client.dbsize() == 0


async def test_items_that_stop_coming_leave_nothing(queue: Queue, client: redis.Redis) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from ({"data": i} for i in range(1500))
        raise RuntimeError("source broke")

    with pytest.raises(RuntimeError, match="source broke"):
        await queue.add_many(broken())
    assert client.dbsize() == 0


async def test_a_refused_add_does_not_harm_its_neighbours_of_the_same_tick(queue: Queue) -> None:
    results = await asyncio.gather(
        queue.add(1), queue.add(object()), queue.add(2, priority=-1), queue.add(3), return_exceptions=True
    )
    assert [type(result).__name__ for result in results] == ["Job", "ConfigurationError", "ConfigurationError", "Job"]
    assert (await queue.get_job_counts()).waiting == 2


async def test_adds_of_one_tick_travel_as_one_call(queue: Queue, client: Any) -> None:
    await queue.add("open the queue, load the script")
    client.config_resetstat()
    await asyncio.gather(*(queue.add(i, group_id=f"g{i % 10}") for i in range(commands.CHUNK)))
    assert client.info("commandstats")["cmdstat_fcall"]["calls"] == 1


async def test_a_job_described_step_by_step_is_saved_at_the_end(queue: Queue) -> None:
    described = queue.create_job({"x": 1}).group("g").retries(2).timeout(9).delay(60).backoff(1).order(5).set_id("me")
    assert (await queue.get_job_counts()).total == 0
    job = await described.save()
    found = await queue.require_job("me")
    assert (found.data, found.group_id, found.max_attempts, found.timeout) == ({"x": 1}, "g", 3, 9.0)
    assert (found.order_ms, found.state, job.state) == (5, "delayed", "delayed")


HOSTILE = ["|||", "x:active", "{}", "a}b{c", "\n\r\n", "\x00", "*?[x]", "ö\U0001f600\u202e", "g:", "meta", "'\"\\", "0"]


async def test_hostile_ids_come_back_unchanged_everywhere(queue: Queue) -> None:
    for name in HOSTILE:
        job = await queue.add({name: name}, group_id=name, job_id=name)
        assert (job.id, job.group_id, job.data) == (name, name, {name: name})
    assert sorted(await queue.get_unique_groups()) == sorted(HOSTILE)
    assert sorted(await queue.get_waiting_jobs()) == sorted(HOSTILE)
    for name in HOSTILE:
        found = await queue.require_job(name)
        assert (found.id, found.group_id, found.data) == (name, name, {name: name})
        assert (await queue.get_group(name)).waiting == 1
        assert await queue.get_group_job_count(name) == 1
    assert sorted(await ids_in_order(queue, concurrency=4)) == sorted(HOSTILE)
    assert sorted(job.id for job in await queue.get_completed_jobs()) == sorted(HOSTILE)
    assert [await queue.remove(name) for name in HOSTILE] == [True] * len(HOSTILE)


async def test_a_hostile_queue_name_touches_no_other_queue(make_queue: MakeQueue, client: Any) -> None:
    for name in ("q", "q*", "q:meta", "q\n", "q ö"):
        await make_queue(name).add(1)
    await make_queue("q*").obliterate()
    base = Keys("groupmq", "q*").base.encode()
    assert not [key for key in client.scan_iter() if key.startswith(base)]
    for name in ("q", "q:meta", "q\n", "q ö"):
        assert (await make_queue(name).get_job_counts()).waiting == 1


async def test_queues_of_different_prefixes_are_different_queues(make_queue: MakeQueue) -> None:
    one, two = make_queue("q", prefix="one"), make_queue("q", prefix="two")
    await one.add(1)
    assert ((await one.get_job_counts()).total, (await two.get_job_counts()).total) == (1, 0)


async def test_an_add_sent_twice_because_its_reply_was_lost_adds_one_job_and_is_no_duplicate(queue: Queue) -> None:
    d = draft(queue.options, "x")
    await queue._connection.call(commands.add([d]))
    [job] = await queue._send_adds([d])
    assert isinstance(job, Job)
    assert not job.duplicate
    assert (await queue.get_job_counts()).total == 1
