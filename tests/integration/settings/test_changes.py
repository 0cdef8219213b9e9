"""Stored settings that change: in one write, noticed by running processes; those that disagree are refused."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import redis

from groupmq import Backoff, Breaker, ConfigurationError, FailJob, Job, Queue, RateLimit, Retention, Worker
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.proxy import Proxy
from tests.support.stored import META, STORED, fails, nothing
from tests.support.waiting import eventually
from tests.support.workers import Recorder


async def test_a_change_is_one_write_and_leaves_all_else_as_it_was(make_queue: MakeQueue) -> None:
    queue = make_queue("orders", **STORED)
    before = await queue.get_settings()
    after = await make_queue("orders").reconfigure(max_attempts=9, breaker=Breaker(2, 5))
    assert (after.max_attempts, after.breaker) == (9, Breaker(2, 5))
    assert {**after.to_dict(), "max_attempts": 7, "breaker": None} == before.to_dict()
    assert await queue.get_settings() == after


async def test_what_an_object_was_given_can_be_stored_in_place_of_what_is_there(make_queue: MakeQueue) -> None:
    await make_queue("orders", **STORED).add(1)
    queue = make_queue("orders", max_attempts=2, backoff=lambda attempt: 0.0)
    assert (await queue.reconfigure()).max_attempts == 2
    assert (await queue.get_settings()).on_retry == "yield"
    assert (await queue.add(2)).max_attempts == 2


async def test_changes_at_the_same_time_lose_none(make_queue: MakeQueue, url: str) -> None:
    await make_queue("orders").add(1)
    changes: list[dict[str, Any]] = [
        {"max_attempts": 9},
        {"on_retry": "yield"},
        {"backoff": 7},
        {"keep_failed": 70},
        {"keep_completed": 7},
        {"job_timeout": 70},
        {"group_concurrency": 7},
        {"rate_limit": RateLimit(7, per=1.0)},
        {"max_group_size": 70},
        {"on_failed": "hold"},
    ]
    await asyncio.gather(*(make_queue("orders").reconfigure(**change) for change in changes))
    settings = await make_queue("orders").get_settings()
    expected = {name: value for change in changes for name, value in change.items()}
    expected |= {"backoff": Backoff.fixed(7), "keep_failed": Retention(70), "keep_completed": Retention(7)}
    assert {name: getattr(settings, name) for name in expected} == expected
    with SyncQueue("orders", url) as blocking:
        assert blocking.reconfigure(max_attempts=4).max_attempts == 4


async def test_a_worker_that_runs_goes_on_by_the_new_settings(make_queue: MakeQueue) -> None:
    """Whether it is idle or busy, its next call is refused as outdated. It then reads the settings and calls again."""
    queue = make_queue("orders")
    async with Worker(queue, fails, blocking_timeout=0.5):
        await queue.add(1, job_id="before", group_id="g", backoff=0)
        assert await queue.wait_for_empty(10)
        await make_queue("orders").reconfigure(max_attempts=5, backoff=0)
        await queue.add(1, job_id="after", group_id="g")
        assert await queue.wait_for_empty(10)
    assert [(await queue.require_job(i)).attempts_made for i in ("before", "after")] == [3, 5]


async def test_a_job_that_runs_meanwhile_is_ended_by_the_new_settings(make_queue: MakeQueue) -> None:
    """The heartbeat notices the change, since the worker makes no other call while the job runs."""
    queue, begun, goes_on = make_queue("orders", max_attempts=1, job_timeout=0.6), asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        if job.attempt == 1:
            begun.set()
            await goes_on.wait()
            raise ValueError("on purpose")

    async with Worker(queue, handle):
        await queue.add(1, job_id="a")
        await begun.wait()
        await make_queue("orders").reconfigure(max_attempts=2, backoff=0, job_timeout=20)
        await eventually(lambda: queue.options.max_attempts == 2, "the heartbeat has noticed")
        await eventually(lambda: queue.options.job_timeout_ms == 20_000, "the worker uses the longer lease")
        goes_on.set()
        assert await queue.wait_for_empty(10)
    job = await queue.require_job("a")
    assert (job.state, job.attempts_made) == ("completed", 2)


async def test_the_lease_follows_a_change(make_queue: MakeQueue, client: redis.Redis) -> None:
    queue, handler = make_queue("orders", job_timeout=30), Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler, heartbeat=0.1):
        await queue.add(1, job_id="a")
        await eventually(lambda: handler.started, "the job runs")
        await make_queue("orders").reconfigure(job_timeout=300)
        active = META.replace("meta", "active")

        def left() -> Any:
            return float(client.zscore(active, "a") or 0) / 1000 - client.time()[0]

        await eventually(lambda: left() > 200, "the lease was renewed for the new time")
        handler.gate.set()
        assert await queue.wait_for_empty(10)


async def test_a_lease_that_becomes_shorter_is_renewed_in_time(make_queue: MakeQueue, client: redis.Redis) -> None:
    """With the long lease the next heartbeat would come after 100 s, but new jobs are leased for one second."""
    queue, handler = make_queue("orders"), Recorder()
    handler.gate = asyncio.Event()
    await make_queue("orders").reconfigure(job_timeout=300)
    async with Worker(queue, handler, concurrency=2, blocking_timeout=0.5) as worker:
        await queue.add(1, job_id="long", group_id="a")
        await eventually(lambda: handler.started, "a job runs under the long lease")
        await make_queue("orders").reconfigure(job_timeout=1)
        await queue.add(1, job_id="short", group_id="b")
        await eventually(lambda: len(handler.started) == 2, "another job runs under the short lease")
        active = META.replace("meta", "active")
        first = client.zscore(active, "short")
        assert isinstance(first, float)
        for n in range(1, 4):
            renewed = first + 400 * n
            await eventually(lambda: (client.zscore(active, "short") or 0) >= renewed, "renewed")  # noqa: B023
        handler.gate.set()
        assert await queue.wait_for_empty(10)
        assert worker.get_worker_metrics().stalled_seen == 0
    assert (await queue.get_metrics(0)).stalled == 0


async def test_a_running_process_that_was_given_the_old_value_says_so_once_and_a_new_one_is_refused(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    old = make_queue("orders", max_attempts=5)
    await old.add(1)
    async with Worker(old, nothing, heartbeat=0.05, blocking_timeout=0.1):
        with caplog.at_level(logging.WARNING, logger="groupmq.queue"):
            await make_queue("orders").reconfigure(max_attempts=8)
            assert (await old.add(2)).max_attempts == 8
            await old.add(3)
            assert await old.wait_for_empty(10)
    said = [record.getMessage() for record in caplog.records if "settings have changed" in record.getMessage()]
    assert len(said) == 1
    assert "max_attempts is 8 there and 5 here" in said[0]
    with pytest.raises(ConfigurationError, match="max_attempts is 8 there and 5 here"):
        await make_queue("orders", max_attempts=5).add(1)


async def test_the_process_that_makes_a_change_logs_nothing(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue("orders", max_attempts=5)
    await queue.add(1)
    await queue.reconfigure(max_attempts=8)
    assert (await queue.add(2)).max_attempts == 8
    assert caplog.records == []


async def test_a_change_from_an_object_that_disagrees_otherwise_is_refused_before_it_is_written(
    make_queue: MakeQueue,
) -> None:
    await make_queue("orders", group_concurrency=2).add(1)
    with pytest.raises(ConfigurationError, match="group_concurrency is 2 there and 3 here"):
        await make_queue("orders", group_concurrency=3).reconfigure(max_attempts=9)
    assert (await make_queue("orders").get_settings()).max_attempts == 3


async def test_a_queue_that_was_flushed_is_made_again_as_it_was_known(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    await make_queue("orders", max_attempts=7, on_failed="hold").add(1)
    other = make_queue("orders")
    await other.add(1)
    client.flushall()
    await other.add(2)
    settings = await make_queue("orders").get_settings()
    assert (settings.max_attempts, settings.on_failed) == (7, "hold")


async def test_settings_of_a_queue_of_the_same_name_that_was_removed_are_not_taken_for_those_of_the_new_one(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    queue = make_queue("orders", max_attempts=7)
    await queue.add(1)
    await make_queue("orders").obliterate()
    await make_queue("orders", max_attempts=4).add(1)
    assert (await queue.add(2)).max_attempts == 4
    assert client.hget(META, "revision") != b"1"


async def test_events_that_are_turned_off_leave_no_log(make_queue: MakeQueue, client: redis.Redis) -> None:
    queue = make_queue("orders")
    await queue.add(1)
    await queue.reconfigure(events=False)
    await queue.add(2)
    assert client.exists(META.replace("meta", "events")) == 0
    await queue.reconfigure(events=True)
    await queue.add(3)
    assert client.xlen(META.replace("meta", "events")) == 1


async def test_a_change_of_how_jobs_are_handled_leaves_what_the_scripts_count(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    queue = make_queue("orders", rate_limit=RateLimit(2, per=60.0))
    await queue.add_many([{"data": n} for n in range(3)])
    await Worker(queue, nothing).run(burst=True)
    before = client.hget(META, "numbers"), client.lrange(META.replace("meta", "starts"), 0, -1)
    await make_queue("orders").reconfigure(max_attempts=9)
    assert (client.hget(META, "numbers"), client.lrange(META.replace("meta", "starts"), 0, -1)) == before
    await Worker(queue, nothing).run(burst=True)
    assert (await queue.get_job_counts()).completed == 2, "the rate limit still counts the starts before the change"


async def test_a_thousand_failures_of_a_bad_deploy_are_all_kept(make_queue: MakeQueue) -> None:
    async def fails_for_good(_job: Job) -> None:
        raise FailJob("a bad deploy")

    queue = make_queue("orders")
    await queue.add_many([{"data": n} for n in range(1000)])
    await Worker(queue, fails_for_good, concurrency=50).run(burst=True)
    assert (await queue.get_job_counts()).failed == 1000
    [kept] = [one for one in await queue.check() if one.name == "retention"]
    assert kept.status == "ok"
    await queue.reconfigure(keep_failed=900)
    await queue.add(1)
    await Worker(queue, fails_for_good).run(burst=True)
    [dropped] = [one for one in await queue.check() if one.name == "retention"]
    assert (dropped.status, dropped.detail.endswith("dropped in the last hour")) == ("warn", True)
    assert "groupmq queue settings" in (dropped.hint or "")


@pytest.mark.one_server("its proxy stands before one server; a cluster gives its clients the addresses of its nodes")
async def test_a_change_rides_over_connections_that_break_and_is_made_once(make_queue: MakeQueue, url: str) -> None:
    """Each reply is lost once. The call has taken effect, and when it is resent, its change is already made."""
    await make_queue("orders").add(1, group_id="g")
    lost: set[bytes] = set()

    def cut(request: bytes) -> bool:
        name = next((word for word in request.split(b"\r\n") if word.startswith(b"groupmq_")), b"")
        is_first = bool(name) and name not in lost
        lost.add(name)
        return is_first

    with Proxy(int(url.rpartition(":")[2].partition("/")[0]), cut=cut) as proxy:
        async with Queue("orders", proxy.url) as queue:
            before = await queue.get_settings()
            lost.clear()
            settings = await queue.reconfigure(max_attempts=9, fairness="round-robin")
        assert proxy.cuts >= 3
    assert (before.max_attempts, settings.max_attempts, settings.fairness) == (3, 9, "round-robin")
    assert (await make_queue("orders").repair()).clean
