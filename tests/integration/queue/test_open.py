"""`Queue.open` takes the settings that are stored. It never creates a queue, and never conflicts with its workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis

from groupmq import (
    ConfigurationError,
    FailJob,
    GroupMQError,
    Ordering,
    Queue,
    QueueNotFound,
    QueueSettings,
    RateLimit,
    Worker,
)
from groupmq.protocol.keys import Keys
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue

EVERYTHING: dict[str, Any] = {
    "group_concurrency": 3,
    "ordering": Ordering.arrival(0.5, max_wait=2),
    "fairness": "round-robin",
    "exclusive": True,
    "rate_limit": RateLimit(100, per=1.0),
    "group_rate_limit": RateLimit(5, per=0.5),
    "max_group_size": 1000,
    "events": False,
}


async def test_the_stored_settings_are_those_of_the_process_that_made_it(make_queue: MakeQueue, url: str) -> None:
    made = make_queue("orders", **EVERYTHING)
    await made.get_job_counts()
    opened = await Queue.open("orders", url)
    settings = await opened.get_settings()
    assert settings == QueueSettings(**EVERYTHING) == await made.get_settings()
    assert opened.options.shared == made.options.shared
    assert json.loads(json.dumps(settings.to_dict())) == {
        "job_timeout": 30.0,
        "max_attempts": 3,
        "backoff": {"base": 0.5, "factor": 2.0, "max": 30.0, "jitter": 0.25},
        "on_retry": "hold",
        "keep_completed": {"count": 100, "age": None},
        "keep_failed": {"count": 10_000, "age": 2_592_000.0},
        "group_concurrency": 3,
        "on_failed": "continue",
        "breaker": None,
        "ordering": {"kind": "arrival", "window": 0.5, "max_wait": 2.0},
        "fairness": "round-robin",
        "exclusive": True,
        "rate_limit": {"count": 100, "per": 1.0},
        "group_rate_limit": {"count": 5, "per": 0.5},
        "max_group_size": 1000,
        "priority_ageing": None,
        "partitions": 1,
        "events": False,
        "unknown": {},
    }
    await opened.close()


async def test_a_setting_that_was_not_given_has_its_default(make_queue: MakeQueue, url: str) -> None:
    await make_queue("orders", ordering=Ordering.event_time(2)).get_job_counts()
    await make_queue("ageing", priority_ageing=60).get_job_counts()
    opened = await Queue.open("orders", url)
    assert await opened.get_settings() == QueueSettings(ordering=Ordering.event_time(2))
    await opened.close()
    with SyncQueue.open("ageing", url) as ageing:
        assert ageing.get_settings() == QueueSettings(priority_ageing=60.0)
        assert ageing.options.priority_ageing_ms == 60_000


async def test_a_queue_that_does_not_exist_is_not_made(url: str, client: redis.Redis) -> None:
    for name in ("orders", "b"):
        with pytest.raises(QueueNotFound, match=f"queue '{name}' does not exist") as caught:
            await Queue.open(name, url)
        assert caught.value.name == name
        with pytest.raises(GroupMQError):
            SyncQueue.open(name, url)
    assert client.keys() == []


@pytest.mark.parametrize(
    "argument", [{"name": ""}, {"name": "a{b}"}, {"prefix": "{"}, {"serializer": 7}, {"logger": 7}]
)
async def test_a_bad_argument_is_named(url: str, argument: dict[str, Any]) -> None:
    given: dict[str, Any] = {"name": "orders"} | argument
    with pytest.raises(ConfigurationError, match=f"^{next(iter(argument))}: expected"):
        await Queue.open(given.pop("name"), url, **given)


async def test_an_opened_queue_goes_on_when_another_process_changes_what_is_stored(
    make_queue: MakeQueue, url: str
) -> None:
    await make_queue("orders", group_concurrency=2).add(1)
    opened = await Queue.open("orders", url)
    await make_queue("orders", group_concurrency=3, max_group_size=9).reconfigure()
    assert (await opened.get_job_counts()).waiting == 1
    assert await opened.get_settings() == QueueSettings(group_concurrency=3, max_group_size=9)
    await opened.close()


async def test_an_opened_queue_that_goes_is_not_made_again(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    queue = make_queue("orders")
    await queue.add(1)
    calls: list[Callable[[Queue], Any]] = [
        Queue.get_job_counts,
        Queue.get_settings,
        Queue.get_marks,
        lambda opened: opened.mark("v1"),
        lambda opened: opened.add(1),
    ]
    all_opened = [await Queue.open("orders", url) for _ in range(len(calls) + 1)]
    for opened in all_opened:
        await opened.get_job_counts()
    await queue.obliterate()
    for opened, call in zip(all_opened, calls, strict=False):
        with pytest.raises(QueueNotFound):
            await call(opened)
        await opened.close()
    opened = all_opened[-1]
    [only] = [one for one in await opened.check() if one.name == "queue"]
    assert (only.status, only.detail) == ("fail", "'orders' does not exist")
    assert client.keys() == []
    await queue.add(2)
    assert (await opened.get_job_counts()).waiting == 1
    await opened.close()


async def test_an_opened_queue_removes_nothing_that_workers_keep(make_queue: MakeQueue, url: str) -> None:
    async def fails(_job: Any) -> None:
        raise FailJob("on purpose")

    queue = make_queue("orders", keep_failed=1000)
    await queue.add_many({"data": n, "job_id": f"j{n}"} for n in range(150))
    await Worker(queue, fails, concurrency=10).run(burst=True)
    await queue.add(1, job_id="one more")
    opened = await Queue.open("orders", url)
    assert await opened.fail("one more", "by hand")
    assert (await opened.get_job_counts()).failed == 151
    assert await opened.retry("j0")
    assert [job.id for job in await opened.get_failed_jobs(limit=1)] == ["one more"]
    await opened.close()


async def test_data_is_read_with_the_serializer_that_is_given(make_queue: MakeQueue, url: str) -> None:
    class Upper:
        def encode(self, value: Any, /) -> bytes:
            return str(value).encode()

        def decode(self, raw: bytes, /) -> Any:
            return raw.decode().upper()

    job = await make_queue("orders", serializer=Upper()).add("hello")
    opened = await Queue.open("orders", url, serializer=Upper())
    assert (await opened.require_job(job.id)).data == "HELLO"
    await opened.close()


async def test_settings_of_a_newer_release_are_listed_as_unknown_and_stop_nobody(
    make_queue: MakeQueue, url: str, client: redis.Redis
) -> None:
    await make_queue("orders", group_concurrency=2).add(1)
    meta = Keys("groupmq", "orders").meta
    newer = {"group_concurrency": 2, "shards": 8, "ordering": {"kind": "by moon", "window": 1}}
    client.hset(meta, "config", json.dumps(newer))
    opened = await Queue.open("orders", url)
    settings = await opened.get_settings()
    assert settings.group_concurrency == 2
    assert settings.ordering is None
    assert settings.unknown == {"shards": 8, "ordering": {"kind": "by moon", "window": 1}}
    assert settings.to_dict()["unknown"]["shards"] == 8
    assert (await opened.get_job_counts()).waiting == 1
    await opened.close()


async def test_a_queue_of_another_format_is_refused(make_queue: MakeQueue, url: str, client: redis.Redis) -> None:
    await make_queue("orders").add(1)
    client.hset(Keys("groupmq", "orders").meta, "schema", "999")
    with pytest.raises(ConfigurationError, match="stored in format 999"):
        await Queue.open("orders", url)
    client.flushall()
