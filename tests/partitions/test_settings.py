"""The settings of a queue with partitions: stored with the queue itself and copied to each partition."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from groupmq import Backoff, ConfigurationError, Job, Queue, RateLimit, Retention, Worker
from groupmq.core.partitions import Part
from groupmq.core.settings import QueueSettings, StoredQueue
from groupmq.protocol import commands
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from groupmq.sync.connection.mail import MailConnection
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Recorder

P = 4
NAME = "spread"
GROUPS = [f"g{i}" for i in range(12)]
STORED: dict[str, Any] = {
    "max_attempts": 7,
    "backoff": Backoff.fixed(0.001),
    "on_retry": "yield",
    "keep_failed": 5000,
    "group_concurrency": 2,
}


def stored_in(client: Any, part: Part | None = None) -> StoredQueue:
    key = Keys("groupmq", NAME, part).meta
    return commands.stored_queue(client.execute_command(*commands.read_settings(key)))


def partitions_of(client: redis.Redis, n: int = P) -> list[StoredQueue]:
    return [stored_in(client, Part(i, n)) for i in range(n)]


def agree(client: redis.Redis, n: int = P) -> bool:
    """Whether every partition has the settings and the revision of the queue."""
    queue = stored_in(client)
    found = partitions_of(client, n)
    return all(one == queue._replace(schema=commands.SCHEMA) for one in found) and bool(queue.revision)


async def fails(_job: Job) -> None:
    raise ValueError("on purpose")


async def test_a_process_without_options_learns_the_partitions_and_all_settings(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    made = make_queue(NAME, partitions=P, **STORED)
    await made.add_many({"data": 1, "group_id": g} for g in GROUPS)
    await made.get_job_counts()
    assert agree(client)
    other = make_queue(NAME)
    settings = await other.get_settings()
    assert settings == QueueSettings(**{**STORED, "keep_failed": Retention(5000)}, partitions=P)
    assert settings == await made.get_settings()
    assert (other.options.partitions, other.options.max_attempts) == (P, 7)
    assert (await other.add(1, group_id="g1")).max_attempts == 7
    with SyncQueue(NAME, url) as blocking:
        assert blocking.get_settings() == settings
        assert blocking.get_job_counts().waiting == len(GROUPS) + 1


@pytest.mark.parametrize(
    ("given", "said"),
    [({"max_attempts": 3}, "max_attempts is 7 there and 3 here"), ({"partitions": 2}, "partitions is 4 there and 2")],
    ids=["a setting", "partitions"],
)
async def test_a_process_that_was_given_something_else_is_refused(
    make_queue: MakeQueue, given: dict[str, Any], said: str
) -> None:
    await make_queue(NAME, partitions=P, **STORED).add(1)
    with pytest.raises(ConfigurationError, match=said):
        await make_queue(NAME, **given).add(2)


async def test_a_change_reaches_all_partitions(make_queue: MakeQueue, url: str, client: redis.Redis) -> None:
    running = make_queue(NAME, partitions=P)
    await running.add_many({"data": 1, "group_id": g} for g in GROUPS)
    before = stored_in(client).revision
    after = await make_queue(NAME).reconfigure(max_attempts=9, group_concurrency=3)
    assert (after.max_attempts, after.group_concurrency, after.partitions) == (9, 3, P)
    assert agree(client)
    assert int(stored_in(client).revision) > int(before)
    assert (await running.add(1, group_id="g1")).max_attempts == 9
    with SyncQueue(NAME, url) as blocking:
        assert blocking.reconfigure(max_attempts=4).max_attempts == 4
    assert agree(client)
    await running.get_job_counts()
    assert running.options.max_attempts == 4


async def test_a_worker_that_runs_goes_on_by_the_new_settings(make_queue: MakeQueue) -> None:
    queue = make_queue(NAME, partitions=P, backoff=0)
    async with Worker(queue, fails, concurrency=4, blocking_timeout=0.5):
        before = await queue.add(1, group_id="g1")
        await eventually(lambda: have_failed(queue, [before], 3), "it has the old number of attempts")
        await make_queue(NAME).reconfigure(max_attempts=5)
        after = await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
        await eventually(lambda: have_failed(queue, after, 5), "they have the new number of attempts")


async def have_failed(queue: Queue, jobs: Sequence[Job], attempts: int) -> bool:
    found = [await queue.require_job(job.id) for job in jobs]
    return all(job.state == "failed" and job.attempts_made == attempts for job in found)


async def test_changes_at_the_same_time_lose_none(make_queue: MakeQueue, client: redis.Redis) -> None:
    await make_queue(NAME, partitions=P).add(1)
    changes: list[dict[str, Any]] = [
        {"max_attempts": 9},
        {"on_retry": "yield"},
        {"keep_failed": 70},
        {"group_concurrency": 7},
        {"group_rate_limit": RateLimit(7, per=1.0)},
        {"on_failed": "hold"},
    ]
    await asyncio.gather(*(make_queue(NAME).reconfigure(**change) for change in changes))
    settings = await make_queue(NAME).get_settings()
    expected = {name: value for change in changes for name, value in change.items()} | {"keep_failed": Retention(70)}
    assert {name: getattr(settings, name) for name in expected} == expected
    assert agree(client)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"exclusive": True}, "exclusive: cannot be combined with partitions=4"),
        ({"rate_limit": RateLimit(1, per=1)}, "rate_limit: cannot be combined with partitions=4"),
        ({"partitions": 8}, "partitions: cannot be changed by reconfigure"),
    ],
    ids=["exclusive", "rate_limit", "partitions"],
)
async def test_impossible_settings_are_refused_and_nothing_is_written(
    make_queue: MakeQueue, client: redis.Redis, changes: Any, said: str
) -> None:
    queue = make_queue(NAME, partitions=P)
    await queue.get_job_counts()
    before = stored_in(client)
    with pytest.raises(ConfigurationError, match=said):
        await queue.reconfigure(**changes)
    assert stored_in(client) == before


async def test_what_an_object_was_given_is_stored_but_for_its_partitions(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    await make_queue(NAME, partitions=P, max_attempts=4).get_job_counts()
    assert (await make_queue(NAME, partitions=P, max_attempts=6).reconfigure()).max_attempts == 6
    assert agree(client)
    new = make_queue("new", partitions=P, max_attempts=6)
    assert (await new.reconfigure()).partitions == P


# A change that was interrupted


async def interrupted(queue: Queue, told: int, **changes: Any) -> None:
    """Change settings like a process that dies after `told` partitions have received the change."""
    await queue._connection.reconfigure(changes)  # type: ignore[arg-type]
    for part in (await queue._learn())[:told]:
        await part._connection.open()


@pytest.mark.parametrize("told", [1, 3])
async def test_the_next_process_that_uses_a_partition_completes_an_interrupted_change(
    make_queue: MakeQueue, client: redis.Redis, told: int
) -> None:
    running = make_queue(NAME, partitions=P)
    await running.get_job_counts()
    await interrupted(make_queue(NAME), told, group_concurrency=3)
    assert not agree(client)
    await running.get_job_counts()  # a changed partition refuses, so it learns of the change and passes it on
    await running.get_job_counts()
    assert agree(client)
    assert running.options.group_concurrency == 3


async def test_a_change_that_reached_no_partition_is_noticed_by_the_clean_up_duty(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    running = make_queue(NAME, partitions=P)
    await running.get_job_counts()
    await interrupted(make_queue(NAME), 0, max_attempts=9)
    await running.get_job_counts()
    assert running.options.max_attempts == 3  # all partitions still have the settings that it knows
    await running.run_duty_once("cleanup")
    assert running.options.max_attempts == 9
    assert agree(client)


async def test_the_same_change_again_completes_one_that_was_interrupted(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    """Waiting groups also follow the new settings, though the second call does not change the queue's settings."""
    queue = make_queue(NAME, partitions=P)
    await queue.add_many({"data": i, "group_id": g} for i in range(3) for g in GROUPS)
    await interrupted(make_queue(NAME), 2, ordering=None, group_concurrency=2)
    await make_queue(NAME).reconfigure(group_concurrency=2)
    assert agree(client)
    async with Worker(queue, recorder := Holding(), concurrency=64):
        await eventually(lambda: recorder.began(2 * len(GROUPS)), "two jobs of each group run")
        recorder.let_go.set()


class Holding:
    def __init__(self) -> None:
        self.started, self.let_go = 0, asyncio.Event()

    async def __call__(self, job: Job) -> None:
        self.started += 1
        await self.let_go.wait()

    async def began(self, n: int) -> bool:
        return self.started == n


async def test_older_settings_never_replace_newer_ones(make_queue: MakeQueue, client: redis.Redis) -> None:
    """A process reads the settings, another changes them, and then the first writes to a partition."""
    slow, queue = make_queue(NAME, partitions=P), make_queue(NAME)
    await slow.get_job_counts()
    part = (await slow._learn())[0]._connection
    read = stored_in(client, Part(0, P))
    await interrupted(queue, 0, max_attempts=8)
    await slow._connection.open()
    late = part.session.updating_call(read)
    await queue.reconfigure(max_attempts=9)
    stored = await part.call_closed(late)
    assert stored == stored_in(client, Part(0, P))
    assert agree(client)


async def test_partitions_follow_a_queue_that_was_thrown_back(make_queue: MakeQueue, client: redis.Redis) -> None:
    """A failover of the queue's primary lost the last change, which the partitions have already received."""
    queue = make_queue(NAME, partitions=P, max_attempts=4)
    await queue.get_job_counts()
    key = Keys("groupmq", NAME).meta
    before = client.hgetall(key)
    await queue.reconfigure(max_attempts=9, group_concurrency=2)
    client.hset(key, mapping=before)  # type: ignore[arg-type]
    other = make_queue(NAME)
    assert (await other.get_settings()).max_attempts == 4
    await other.get_job_counts()
    assert agree(client)
    await queue.get_job_counts()
    assert (queue.options.max_attempts, queue.options.group_concurrency) == (4, 1)


# Partitions that are created again


async def test_a_partition_that_was_flushed_is_made_again_with_the_settings_of_the_queue(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    """The options that only this process was given are not stored in it."""
    await make_queue(NAME, partitions=P, **STORED).get_job_counts()
    for process in (
        make_queue(NAME, backoff=lambda attempt: 0.0),
        Queue.attach(NAME, url, max_attempts=1),
    ):
        await process.get_job_counts()
        for i in range(P):
            client.delete(Keys("groupmq", NAME, Part(i, P)).meta)
        await process.get_job_counts()
        assert agree(client)
        await process.close()


async def test_a_queue_that_was_flushed_is_made_again(make_queue: MakeQueue, client: redis.Redis) -> None:
    queue = make_queue(NAME, partitions=P)
    await queue.reconfigure(max_attempts=6)
    client.flushall()
    await queue.add(1, group_id="g1")
    await queue.get_job_counts()
    assert agree(client)
    assert (await make_queue(NAME).get_settings()).max_attempts == 6


async def test_a_heartbeat_notices_a_change_by_its_own_connection(make_queue: MakeQueue, client: redis.Redis) -> None:
    """A heartbeat runs in a thread and cannot use the connections of the event loop."""
    queue = make_queue(NAME, partitions=P)
    await queue.get_job_counts()
    part = (await queue._learn())[2]._connection
    beating = MailConnection(part.endpoint, queue.options, 5, part.session.known)
    await interrupted(make_queue(NAME), 3, job_timeout=7)
    await asyncio.to_thread(beating.call, commands.counts())
    assert queue.options.job_timeout_ms == 7000
    await interrupted(make_queue(NAME), 0, job_timeout=8)
    await queue._connection.open()
    await asyncio.to_thread(beating.call, commands.counts())  # passes the change on to its partition
    assert stored_in(client, Part(2, P)) == stored_in(client)._replace(schema=commands.SCHEMA)
    beating.close()


# Another number of partitions


async def test_settings_outlive_a_change_of_the_number_and_are_those_of_the_queue(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    """A partition that has not received the last change does not bring back older settings."""
    queue = make_queue(NAME, partitions=P, **STORED)
    await queue.add_many({"data": 1, "group_id": g} for g in GROUPS)
    await queue.pause()
    await interrupted(make_queue(NAME), 1, max_attempts=9, group_concurrency=1)
    for to in (8, 1, 2):
        await queue.repartition(to)
        settings = await make_queue(NAME).get_settings()
        assert (settings.partitions, settings.max_attempts, settings.group_concurrency) == (to, 9, 1)
        assert to == 1 or agree(client, to)
        await queue.reconfigure(on_retry="hold" if to == 8 else "yield")
    await queue.resume()
    async with Worker(queue, recorder := Recorder(), concurrency=4):
        assert await queue.wait_for_empty(20)
    assert len(recorder.ended) == len(GROUPS)


@pytest.mark.parametrize(("before", "to"), [(1, P), (P, 1), (P, 8)])
async def test_processes_that_ran_meanwhile_are_refused(
    make_queue: MakeQueue, client: redis.Redis, before: int, to: int
) -> None:
    """The first process creates the old partition again before it reads the queue's settings. The next one must not use
    that partition."""
    running, queue = [make_queue(NAME, partitions=before) for _ in range(3)], make_queue(NAME)
    for process in running:
        await process.add(1, group_id="g1")
    await queue.pause()
    await queue.repartition(to)
    for process in (*running, *running):
        with pytest.raises(ConfigurationError, match=f"partitions is {to} there and {before} here"):
            await process.add(2, group_id="g1")
    assert (await queue.get_job_counts()).waiting == 3
    old = [Keys("groupmq", NAME, Part(i, before)).fixed("jobs") for i in range(before)]
    assert before == 1 or not client.exists(*old)
