"""Settings belong to the queue: a process that gives none uses the stored ones."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import redis

from groupmq import Backoff, ConfigurationError, Job, Queue, RateLimit, Retention, Worker
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.stored import META, STORED, fails, nothing
from tests.support.waiting import eventually
from tests.support.workers import Recorder


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
    """Run bursts until no job is left: with "yield" a retry is delayed outside its group, and a burst may miss it."""
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


async def test_the_first_process_creates_the_queue_with_its_options(make_queue: MakeQueue) -> None:
    await Worker(make_queue("orders", max_attempts=5), nothing).run(burst=True)
    assert (await make_queue("orders").get_settings()).max_attempts == 5
    with pytest.raises(ConfigurationError, match="on_retry is 'hold' there and 'yield' here"):
        await make_queue("orders", on_retry="yield").add(1)


async def test_a_later_release_with_other_defaults_uses_those_that_were_stored(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_queue("orders").add(1)
    monkeypatch.setitem(__import__("groupmq.core.queue_options").core.queue_options.QUEUE_DEFAULTS, "max_attempts", 9)
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


# Other releases


async def test_a_queue_of_a_release_that_stored_less_gets_what_the_first_process_gives(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders", group_concurrency=2).add(1)
    client.hdel(META, "handling", "revision")
    tool = Queue.attach("orders", url)
    assert (await tool.get_jobs_by_id(["none"])) == [None]
    assert (tool.options.max_attempts, tool.options.keep["failed"]) == (65_535, -1), "a tool must end no job"
    assert client.hget(META, "handling") is None, "a tool must not store settings"
    await make_queue("orders", max_attempts=6).add(2)
    settings = await make_queue("orders").get_settings()
    assert (settings.max_attempts, settings.group_concurrency) == (6, 2)
    assert (await tool.add(3)).max_attempts in (6, 65_535)
    await tool.close()


async def test_a_process_of_a_release_that_stored_less_goes_on_with_its_own(
    make_queue: MakeQueue, client: redis.Redis
) -> None:
    """That process compares the stored schema and config with its own, and sends its own policy with each call."""
    queue = make_queue("orders", max_attempts=7, keep_failed=5, group_concurrency=2)
    await queue.add(1, job_id="a")
    assert client.hmget(META, "schema", "config") == [
        commands.SCHEMA.encode(),
        json.dumps({"group_concurrency": 2}).encode(),
    ]
    await make_queue("orders").reconfigure(max_attempts=8)
    assert client.hmget(META, "schema", "config") == [
        commands.SCHEMA.encode(),
        json.dumps({"group_concurrency": 2}).encode(),
    ]
    old = make_queue("orders", group_concurrency=2)
    old._connection.session.known.opened = True  # it knows no revision, so it sends none
    assert old._connection.session.known.revision == b""
    policy = Policy(2, -1, {"completed": 9, "failed": 9})
    call = commands.advance(
        worker="old", requester="old:0", request=1, outcomes=[], take=1, lease_ms=5000, policy=policy
    )
    taken = (await old._connection.call(call)).jobs[0]
    call = commands.advance(
        worker="old",
        requester="old:0",
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
    assert worker.heartbeat == 60
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


async def test_what_a_dead_worker_ran_is_taken_back_by_the_stored_settings(make_queue: MakeQueue, url: str) -> None:
    """The worker wrote its bequest before it knew these settings."""
    queue = make_queue("orders", max_attempts=1, keep_failed=0)
    await queue.add(1)
    dead = make_queue("orders", redis=url)
    for own, expected in ((None, 0), (2, 1)):
        worker = Worker(dead, nothing) if own is None else Worker(dead, nothing, max_attempts=own)
        left = worker.bequest()
        assert left is not None
        call = commands.advance(
            worker=worker.id,
            requester=f"{worker.id}:0",
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
