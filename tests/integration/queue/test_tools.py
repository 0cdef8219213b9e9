"""The methods for tools: attach without creating, survey, run a duty once, follow the progress of long operations."""

from __future__ import annotations

import json
import time

import pytest
import redis
import redis.asyncio

from groupmq import (
    ConfigurationError,
    ConnectionLost,
    Duty,
    DutyReport,
    Every,
    ExpiredJob,
    Queue,
    QueueNotFound,
    Retention,
    ServerRefused,
    StalledJob,
    Worker,
)
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Waiting

NOWHERE = "redis://127.0.0.1:1"


class Enough(Exception):
    """Raised by a progress callback."""


async def take(queue: Queue, lease_ms: int = 1) -> None:
    """Act as a worker that takes a job and then dies."""
    policy = Policy(3, -1, {"completed": 100, "failed": 100})
    call = commands.advance(
        worker="gone", requester="gone:0", request=1, outcomes=[], take=1, lease_ms=lease_ms, policy=policy
    )
    assert len((await queue._connection.call(call)).jobs) == 1


async def run_until(queue: Queue, duty: Duty, done: int) -> list[DutyReport]:
    """Run a duty until it has handled this many due items: leases and delays of a millisecond are not over at once."""
    reports: list[DutyReport] = []

    async def run() -> bool:
        reports.append(await queue.run_duty_once(duty))
        return sum(report.done for report in reports) >= done

    await eventually(run, f"{duty} has handled {done} due items")
    return reports


# Attaching


async def test_an_attached_queue_is_not_made_and_found_once_it_exists(make_queue: MakeQueue, url: str) -> None:
    async with Queue.attach("orders", url) as tool:
        with pytest.raises(QueueNotFound):
            await tool.get_job_counts()
        with pytest.raises(QueueNotFound):
            await tool.add(1)
        await make_queue("orders", group_concurrency=3, exclusive=True).add(1, group_id="g")
        assert (await tool.get_job_counts()).waiting == 1, "an attached queue accepts any stored settings"


async def test_an_attached_queue_is_made_if_that_is_asked_for(url: str) -> None:
    async with Queue.attach("orders", url, make=True, group_concurrency=2) as tool:
        await tool.add(1)
        assert (await tool.get_settings()).group_concurrency == 2


async def test_attaching_sends_nothing() -> None:
    async with Queue.attach("orders", NOWHERE) as tool:
        assert tool.address == NOWHERE


async def test_an_attached_queue_without_patience_raises_at_once() -> None:
    before = time.monotonic()
    async with Queue.attach("orders", NOWHERE, patience=0) as tool:
        with pytest.raises(ConnectionLost):
            await tool.get_job_counts()
        without = time.monotonic() - before
        with pytest.raises(ConnectionLost):
            await tool.ensure_writable(timeout=without + 0.3)
    assert time.monotonic() - before > 2 * without


@pytest.mark.one_server("a client of one server is handed in")
async def test_a_blocking_queue_is_attached_beside_one_with_a_client_of_the_users(url: str) -> None:
    client = redis.asyncio.Redis.from_url(url)
    async with Queue("orders", client) as queue:
        await queue.add(1)
        with SyncQueue.attach("orders", queue, call_timeout=2) as beside:
            assert beside.get_job_counts().waiting == 1
            assert beside.address == queue.address
    await client.aclose()


def test_the_address_of_a_url_has_no_secrets_and_a_wrong_url_is_refused() -> None:
    assert Queue.address_of("redis://:secret@shop.example:6379/1") == "redis://shop.example:6379/1"
    with pytest.raises(ConfigurationError):
        SyncQueue.address_of("http://shop.example")


# The server


@pytest.mark.one_server("makes the server a replica of another one")
async def test_a_replica_is_not_writable(queue: Queue, client: redis.Redis) -> None:
    await queue.ensure_writable()
    client.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(ServerRefused):
            await queue.ensure_writable(timeout=0)
    finally:
        client.replicaof("NO", "ONE")


async def test_a_server_is_checked_without_a_queue(url: str, client: redis.Redis) -> None:
    found = await Queue.check_server(url)
    assert [one.name for one in found] == [one.name for one in SyncQueue.check_server(url)]
    assert {"version", "role", "clock"} <= {one.name for one in found}
    assert client.keys() == []


async def test_libraries_that_a_worker_uses_are_not_pruned(queue: Queue, url: str, client: redis.Redis) -> None:
    client.function_flush()  # libraries that other tests have loaded
    for name in ("groupmq_used", "groupmq_idle"):
        client.function_load(f"#!lua name={name}\nredis.register_function('{name}_f', function() return 1 end)")
    handler = Waiting()
    async with Worker(queue, handler):
        await eventually(queue.get_workers, "the worker is listed")
        (worker,) = await queue.get_workers()
        seen, _, info = client.hget(f"groupmq:{{{queue.name}}}:workers", worker.id).decode().partition(" ")  # type: ignore[union-attr]
        old = f"{seen} {json.dumps(json.loads(info) | {'library': 'groupmq_used'})}"
        client.hset(f"groupmq:{{{queue.name}}}:workers", "of-an-older-release", old)
        assert await Queue.prune_libraries(url) == ["groupmq_idle"]
        assert SyncQueue.prune_libraries(url) == []
        client.hdel(f"groupmq:{{{queue.name}}}:workers", "of-an-older-release")
    client.function_delete("groupmq_used")


# Duties


async def test_the_scheduler_adds_ticks_and_moves_what_is_due_and_leaves_leases_alone(queue: Queue) -> None:
    await queue.add(1, group_id="lost")
    await take(queue)
    await queue.add(2, group_id="g", delay=0.001)
    await queue.add(3, group_id="r", repeat=Every(3600, immediately=False))
    *_, report = await run_until(queue, "scheduler", 1)
    assert (report.done, report.promoted, report.added, report.stalled, report.errors) == (1, 1, 0, (), ())
    assert report.next_in is not None
    assert 0 < report.next_in <= 3600
    assert (await queue.get_job_counts()).active == 1


async def test_recovery_takes_back_what_stalled_and_leaves_delayed_jobs_alone(queue: Queue) -> None:
    job = await queue.add(1, group_id="lost")
    await take(queue)
    delayed = await queue.add(2, group_id="g", delay=0.001)
    *_, report = await run_until(queue, "recovery", 1)
    assert report.stalled == (StalledJob(job.id, "lost", False),)
    assert await delayed.get_state() == "delayed"


async def test_recovery_fails_what_had_not_started_when_its_ttl_ended(queue: Queue) -> None:
    late = await queue.add(1, group_id="late", ttl=0.001)
    *_, report = await run_until(queue, "recovery", 1)
    assert (report.done, report.expired) == (1, (ExpiredJob(late.id, "late", blocks=False),))
    assert await late.get_state() == "failed"


async def test_the_clean_up_removes_what_is_too_old_and_forgets_dead_workers(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    queue = make_queue(keep_failed=Retention(age=0.001))
    await queue.add(1, job_id="old")
    await queue.fail("old", "no")
    async with Worker(queue, Waiting(), maintenance=False):
        await eventually(queue.get_workers, "the worker is listed")
        (worker,) = await queue.get_workers()
        key = f"groupmq:{{{queue.name}}}:workers"
        _, _, info = client.hget(key, worker.id).decode().partition(" ")  # type: ignore[union-attr]
        client.hset(key, "dead", f"1 {info}")
        reports = await run_until(queue, "cleanup", 2)
        assert sum(report.removed for report in reports) == 1
        assert [name for report in reports for name in report.gone_workers] == ["dead"]
        assert await queue.run_duty_once("cleanup") == DutyReport()


async def test_a_duty_that_does_not_exist_is_refused(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match="duty"):
        await queue.run_duty_once("cooking")  # type: ignore[arg-type]


# Reading and changing


async def test_a_survey_agrees_with_the_getters(queue: Queue, url: str) -> None:
    await queue.add_many([{"data": n, "group_id": group} for group in "ab" for n in range(3)])
    await queue.add(0, job_id="bad")
    await queue.fail("bad", "no such customer")
    found = await queue.survey(groups=1, failures=1)
    assert found.counts == await queue.get_job_counts()
    assert (found.totals.added, found.totals.failed, len(found.busiest)) == (7, 1, 1)
    assert [failure.id for failure in found.failures] == ["bad"]
    with SyncQueue(queue.name, url) as other:
        assert other.survey().counts == found.counts
    with pytest.raises(ConfigurationError, match="groups"):
        await queue.survey(groups=10_000)


async def test_jobs_are_found_by_state_group_and_ids(queue: Queue) -> None:
    jobs = await queue.add_many([{"data": n, "group_id": group} for group in "ab" for n in range(2)])
    for n in (1, 2):
        await queue.add(n, job_id=f"bad-{n}")
        await queue.fail(f"bad-{n}")
    assert await queue.get_job_ids("waiting", group_id="b") == [job.id for job in jobs[2:]]
    assert await queue.get_job_ids("waiting", 1, 1, group_id="b") == [jobs[3].id]
    assert sorted(await queue.get_job_ids("failed")) == sorted(await queue.get_job_ids("failed", newest=True))
    found = await queue.get_jobs_by_id([jobs[1].id, "nobody", "bad-1"])
    assert [job and job.data for job in found] == [1, None, 1]
    with pytest.raises(ConfigurationError, match="group_id"):
        await queue.get_job_ids("failed", group_id="b")
    with pytest.raises(ConfigurationError, match="state"):
        await queue.get_job_ids("lost")


async def test_a_job_is_removed_only_in_the_states_that_are_named(queue: Queue) -> None:
    job = await queue.add(1)
    assert not await queue.remove(job.id, states=["failed"])
    assert await job.get_state() == "waiting"
    assert await queue.remove(job.id, states=["failed", "waiting"])
    with pytest.raises(ConfigurationError, match="states"):
        await queue.remove(job.id, states=["lost"])


@pytest.mark.parametrize("state", ["waiting", "delayed"])
async def test_purging_reports_progress_and_ends_where_the_callback_raises(queue: Queue, state: str) -> None:
    delay = 60 if state == "delayed" else None
    await queue.add_many([{"data": n, "group_id": f"g{n % 7}", "delay": delay} for n in range(700)])
    seen: list[int] = []

    def stop_later(done: int) -> None:
        seen.append(done)
        if 0 < done < 700:
            raise Enough

    with pytest.raises(Enough):
        await queue.purge([state], progress=stop_later)
    assert (await queue.get_job_counts()).total == 700 - seen[-1]
    gone = seen[-1]
    assert await queue.purge([state], progress=seen.append) == 700 - gone == seen[-1]
    assert (await queue.get_job_counts()).total == 0


async def test_cleaning_and_repairing_report_progress(queue: Queue) -> None:
    await queue.add_many([{"data": n} for n in range(20)])
    looked_at: list[int] = []
    assert (await queue.repair(progress=looked_at.append)).clean
    assert looked_at == sorted(looked_at)
    assert looked_at[-1] >= 20
    removed: list[int] = []
    assert await queue.clean("waiting", progress=removed.append) == 20
    assert removed[-1] == 20


async def test_an_item_is_checked_without_being_added(queue: Queue) -> None:
    queue.check_job({"data": 1, "group_id": "g", "headers": {"trace": "1"}})
    for bad in ({"data": 1, "priority": -1}, {"data": 1, "headers": {"trace": 1}}, {"data": 1, "headers": "trace"}):
        with pytest.raises(ConfigurationError, match=r"^(priority|headers): "):
            queue.check_job(bad)
    (job,) = await queue.add_many([{"data": 1, "headers": {"trace": "1"}}])
    assert (await queue.require_job(job.id)).headers == {"trace": "1"}
    assert (await queue.get_job_counts()).total == 1
