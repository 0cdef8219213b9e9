"""Settings belong to the queue: a process that gives none uses those that are stored, also when they change."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
import redis

from groupmq import Backoff, Breaker, ConfigurationError, FailJob, Job, Queue, RateLimit, Retention, Worker
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Recorder

META = Keys("groupmq", "orders").meta
STORED: dict[str, Any] = {
    "job_timeout": 45,
    "max_attempts": 7,
    "backoff": Backoff.fixed(0.001),
    "on_retry": "yield",
    "keep_failed": 5000,
}


async def nothing(_job: Job) -> None: ...


async def fails(_job: Job) -> None:
    raise ValueError("on purpose")


async def test_a_worker_that_gives_nothing_works_by_the_settings_of_the_producer(make_queue: MakeQueue) -> None:
    await make_queue("orders", **STORED).add(1, job_id="a", group_id="g")
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.max_attempts)
        raise ValueError("on purpose")

    queue = make_queue("orders")
    await Worker(queue, handle).run(burst=True)
    await eventually_failed(queue, handle)
    job = await queue.require_job("a")
    assert (job.state, job.attempts_made, job.max_attempts, set(seen)) == ("failed", 7, 7, {7})


async def eventually_failed(queue: Queue, handle: Any) -> None:
    """Run what is left until no job is delayed or waits: with "yield" a retry is outside its group."""
    while (await queue.get_job_counts()).total:
        await Worker(queue, handle).run(burst=True)


async def test_whatever_opens_the_queue_by_its_name_sees_what_is_stored(make_queue: MakeQueue, url: str) -> None:
    made = make_queue("orders", **STORED, rate_limit=RateLimit(5, per=1))
    job = await made.add(1, job_id="a")
    assert job.max_attempts == 7
    settings = await made.get_settings()
    assert (settings.max_attempts, settings.job_timeout, settings.on_retry) == (7, 45, "yield")
    assert (settings.backoff, settings.keep_failed) == (Backoff.fixed(0.001), Retention(count=5000))
    assert settings.rate_limit == RateLimit(5, per=1.0)
    second = make_queue("orders")
    assert await second.get_settings() == settings
    assert (await second.require_job("a")).max_attempts == 7
    with SyncQueue("orders", url) as blocking:
        assert blocking.get_settings() == settings
        assert blocking.add(2).max_attempts == 7
    tool = Queue.attach("orders", url)
    assert (await tool.require_job("a")).max_attempts == 7
    assert tool.options.keep == {"completed": 100, "failed": 5000}
    await tool.close()


async def test_the_job_comes_before_the_worker_and_the_worker_before_the_queue(make_queue: MakeQueue) -> None:
    queue = make_queue("orders", max_attempts=4, backoff=0)
    await queue.add(1, job_id="its own", max_attempts=1)
    await queue.add(1, job_id="the worker's")
    other = make_queue("orders")
    await Worker(other, fails, max_attempts=2).run(burst=True)
    assert [(await queue.require_job(i)).attempts_made for i in ("its own", "the worker's")] == [1, 2]
    await queue.add(1, job_id="the queue's")
    await Worker(other, fails).run(burst=True)
    assert (await queue.require_job("the queue's")).attempts_made == 4


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_attempts": 5}, "max_attempts is 7 there and 5 here"),
        ({"job_timeout": 30}, "job_timeout is 45.0 there and 30.0 here"),
        ({"on_retry": "hold"}, "on_retry is 'yield' there and 'hold' here"),
        (
            {"keep_failed": 100},
            r"keep_failed is \{'count': 5000, 'age': None\} there and \{'count': 100, .*\} here",
        ),
        ({"backoff": 2}, r"backoff is \{'base': 0.001, .*\} there and \{'base': 2.0, .*\} here"),
        ({"keep_completed": 1}, "keep_completed is"),
    ],
)
async def test_a_setting_that_is_given_and_differs_is_refused_with_both_values(
    make_queue: MakeQueue, url: str, given: dict[str, Any], told: str
) -> None:
    await make_queue("orders", **STORED).add(1)
    with pytest.raises(ConfigurationError, match=f"queue 'orders' exists with other settings: {told}"):
        await make_queue("orders", **given).add(2)
    with pytest.raises(ConfigurationError, match=told):
        await Worker(make_queue("orders", **given), nothing).start()
    with SyncQueue("orders", url, **given) as blocking, pytest.raises(ConfigurationError, match=told):
        blocking.add(2)
    await make_queue("orders", **STORED).add(2)
    assert (await make_queue("orders").get_job_counts()).waiting == 2


async def test_whoever_comes_first_makes_the_queue_with_what_it_gives(make_queue: MakeQueue) -> None:
    await Worker(make_queue("orders", max_attempts=5), nothing).run(burst=True)
    assert (await make_queue("orders").get_settings()).max_attempts == 5
    with pytest.raises(ConfigurationError, match="on_retry is 'hold' there and 'yield' here"):
        await make_queue("orders", on_retry="yield").add(1)


async def test_a_later_release_with_other_defaults_uses_those_that_were_stored(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_queue("orders").add(1)
    monkeypatch.setitem(__import__("groupmq.core.options").core.options.QUEUE_DEFAULTS, "max_attempts", 9)
    later = make_queue("orders")
    assert later.options.max_attempts == 9
    assert (await later.add(2)).max_attempts == 3


async def test_a_callable_back_off_is_each_process_own(make_queue: MakeQueue) -> None:
    waits: list[int] = []

    def backoff(attempt: int) -> float:
        waits.append(attempt)
        return 0.0

    await make_queue("orders", backoff=5).add(1)
    await Worker(make_queue("orders", backoff=backoff), fails).run(burst=True)
    assert waits == [1, 2]
    assert (await make_queue("orders").get_settings()).backoff == Backoff.fixed(5)


async def test_a_worker_takes_turns_of_a_queue_that_it_does_not_know_to_be_exclusive(make_queue: MakeQueue) -> None:
    await make_queue("orders", exclusive=True).add_many([{"data": n, "group_id": f"g{n}"} for n in range(6)])
    handler = Recorder()
    handler.gate = asyncio.Event()
    async with Worker(make_queue("orders"), handler, concurrency=2, name="a") as worker:
        await eventually(lambda: len(handler.started) == 2, "two jobs run")
        turn = await make_queue("orders").get_turn()
        assert turn is not None
        assert turn.worker == worker.id
        handler.gate.set()
        assert await make_queue("orders").wait_for_empty(10)


async def test_options_of_a_worker_that_do_not_go_with_what_is_stored_are_refused_at_the_start(
    make_queue: MakeQueue,
) -> None:
    await make_queue("orders", exclusive=True, job_timeout=5).add(1)

    async def batch(_jobs: list[Job]) -> None: ...

    with pytest.raises(ConfigurationError, match="batch: cannot be combined with exclusive=True"):
        await Worker(make_queue("orders"), batch, batch=5).start()
    with pytest.raises(ConfigurationError, match=r"heartbeat: expected less than job_timeout \(5 s\)"):
        await Worker(make_queue("orders"), nothing, heartbeat=6).start()
    assert (await make_queue("orders").get_job_counts()).waiting == 1


# Changes


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
    """Idle or busy: its next call is refused as out of date, reads the settings, and is made again."""
    queue = make_queue("orders")
    async with Worker(queue, fails, blocking_timeout=0.5):
        await queue.add(1, job_id="before", group_id="g", backoff=0)
        assert await queue.wait_for_empty(10)
        await make_queue("orders").reconfigure(max_attempts=5, backoff=0)
        await queue.add(1, job_id="after", group_id="g")
        assert await queue.wait_for_empty(10)
    assert [(await queue.require_job(i)).attempts_made for i in ("before", "after")] == [3, 5]


async def test_a_job_that_runs_meanwhile_is_ended_by_the_new_settings(make_queue: MakeQueue) -> None:
    """The heartbeat notices, though the worker makes no other call for as long as the job runs."""
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
        await eventually(lambda: queue.options.job_timeout_ms == 20_000, "and the lease is longer")
        goes_on.set()
        assert await queue.wait_for_empty(10)
    job = await queue.require_job("a")
    assert (job.state, job.attempts_made) == ("completed", 2)


async def test_the_lease_follows_a_change(make_queue: MakeQueue, client: redis.Redis) -> None:
    queue, handler = make_queue("orders", job_timeout=30), Recorder()
    handler.gate = asyncio.Event()
    async with Worker(queue, handler, heartbeat=0.1):
        await queue.add(1, job_id="a")
        await eventually(lambda: handler.started, "it runs")
        await make_queue("orders").reconfigure(job_timeout=300)
        active = META.replace("meta", "active")

        def left() -> Any:
            return float(client.zscore(active, "a") or 0) / 1000 - client.time()[0]

        await eventually(lambda: left() > 200, "the lease was renewed by the new setting")
        handler.gate.set()
        assert await queue.wait_for_empty(10)


async def test_a_lease_that_becomes_shorter_is_renewed_in_time(make_queue: MakeQueue, client: redis.Redis) -> None:
    """The heartbeat of the long lease would come after 100 s; jobs taken from now on are leased for one second."""
    queue, handler = make_queue("orders"), Recorder()
    handler.gate = asyncio.Event()
    await make_queue("orders").reconfigure(job_timeout=300)
    async with Worker(queue, handler, concurrency=2, blocking_timeout=0.5) as worker:
        await queue.add(1, job_id="long", group_id="a")
        await eventually(lambda: handler.started, "it runs under the long lease")
        await make_queue("orders").reconfigure(job_timeout=1)
        await queue.add(1, job_id="short", group_id="b")
        await eventually(lambda: len(handler.started) == 2, "another one runs under the short lease")
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


async def test_the_process_that_makes_a_change_is_not_told_of_it(
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


# Other releases


async def test_a_queue_of_a_release_that_stored_less_gets_what_the_first_process_gives(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders", group_concurrency=2).add(1)
    client.hdel(META, "handling", "revision")
    tool = Queue.attach("orders", url)
    assert (await tool.get_jobs_by_id(["none"])) == [None]
    assert (tool.options.max_attempts, tool.options.keep["failed"]) == (65_535, -1), "a tool must leave jobs alone"
    assert client.hget(META, "handling") is None, "a tool writes nothing"
    await make_queue("orders", max_attempts=6).add(2)
    settings = await make_queue("orders").get_settings()
    assert (settings.max_attempts, settings.group_concurrency) == (6, 2)
    assert (await tool.add(3)).max_attempts in (6, 65_535)
    await tool.close()


async def test_a_process_of_a_release_that_stored_less_goes_on_with_its_own(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    """It compares schema and config with what it would have written, and sends its own policy with each call."""
    queue = make_queue("orders", max_attempts=7, keep_failed=5, group_concurrency=2)
    await queue.add(1, job_id="a")
    assert client.hmget(META, "schema", "config") == [b"3", json.dumps({"group_concurrency": 2}).encode()]
    await make_queue("orders").reconfigure(max_attempts=8)
    assert client.hmget(META, "schema", "config") == [b"3", json.dumps({"group_concurrency": 2}).encode()]
    old = make_queue("orders", group_concurrency=2)
    old._connection.session.known.opened = True  # it knows no revision, so none is sent
    assert old._connection.session.known.revision == b""
    policy = Policy(2, -1, {"completed": 9, "failed": 9})
    call = commands.advance(worker="old", lane="old:0", request=1, outcomes=[], take=1, lease_ms=5000, policy=policy)
    taken = (await old._connection.call(call)).jobs[0]
    call = commands.advance(
        worker="old",
        lane="old:0",
        request=2,
        outcomes=[commands.failed(taken.id, taken.fence, "boom", "")],
        take=0,
        lease_ms=5000,
        policy=policy,
    )
    assert (await old._connection.call(call)).accepted == [1]
    assert (await queue.get_job_counts()).failed == 1


async def test_a_heartbeat_that_fits_the_stored_lease_only_is_accepted(make_queue: MakeQueue) -> None:
    await make_queue("orders", job_timeout=120).add(1)
    worker = Worker(make_queue("orders"), nothing, heartbeat=60)
    await worker.run(burst=True)
    assert worker.options.heartbeat == 60
    assert (await make_queue("orders").get_job_counts()).completed == 1


async def test_listening_to_a_queue_that_is_stored_without_events_is_refused(make_queue: MakeQueue, url: str) -> None:
    await make_queue("orders", events=False).add(1)
    with pytest.raises(ConfigurationError, match="this queue is stored with events=False"):
        await anext(make_queue("orders").events())
    with (
        SyncQueue("orders", url) as blocking,
        pytest.raises(ConfigurationError, match="this queue is stored with events=False"),
    ):
        next(iter(blocking.events()))


async def test_results_of_a_queue_that_is_stored_without_events_are_found(make_queue: MakeQueue, url: str) -> None:
    await make_queue("orders", events=False).get_job_counts()

    async def handle(job: Job) -> Any:
        return job.data

    queue = make_queue("orders")
    async with Worker(queue, handle):
        assert await (await queue.add(5)).result(10) == 5
        with SyncQueue("orders", url) as blocking:
            assert await asyncio.to_thread(lambda: blocking.add(6).result(10)) == 6


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
    assert (await queue.get_job_counts()).completed == 2, "the rate limit still counts the starts of before"


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


async def test_what_a_dead_worker_ran_is_taken_back_by_the_stored_settings(make_queue: MakeQueue, url: str) -> None:
    """What it leaves behind was written before it knew them."""
    queue = make_queue("orders", max_attempts=1, keep_failed=0)
    await queue.add(1)
    dead = make_queue("orders", redis=url)
    for own, expected in ((None, 0), (2, 1)):
        worker = Worker(dead, nothing) if own is None else Worker(dead, nothing, max_attempts=own)
        left = worker.bequest()
        assert left is not None
        call = commands.advance(
            worker=worker.id,
            lane=f"{worker.id}:0",
            request=1,
            outcomes=[],
            take=1,
            lease_ms=60_000,
            policy=Policy(1, -1, {"completed": 0, "failed": 0}),
        )
        assert len((await queue._connection.call(call)).jobs) == 1
        assert len(await Worker.take_back(left)) == 1
        counts = await queue.get_job_counts()
        assert (counts.waiting, counts.failed) == (expected, 0)
        await queue.add(2)
