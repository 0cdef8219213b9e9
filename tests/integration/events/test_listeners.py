"""Callbacks on queues: which of them are called, from when until when, and how many connections they need."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import redis.asyncio

from groupmq import ConfigurationError, Event, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.listening import Heard, hears, listening, nobody_hears, readers
from tests.support.waiting import eventually


async def handle(job: Job) -> Any:
    if job.data == "talk":
        await job.report_progress("half")
    return job.data


async def test_a_listener_hears_whatever_is_done_after_it_began_and_the_rest_of_its_kind_alone(queue: Queue) -> None:
    heard = Heard()
    queue.on("completed", heard.append)
    jobs = [await queue.add(n) for n in range(3)]
    await Worker(queue, handle).run(burst=True)
    await heard.has("completed", 3)
    assert [(event.kind, event.job_id, event.result) for event in heard] == [
        ("completed", job.id, n) for n, job in enumerate(jobs)
    ]


@pytest.mark.parametrize("how", ["add", "add_many", "pause", "pause_group", "cancel", "create_job"])
async def test_the_event_of_the_very_next_call_is_delivered_whatever_it_is(queue: Queue, how: str) -> None:
    heard = Heard()
    if how == "cancel":
        await queue.add(1, job_id="x")
    for kind in ("added", "paused", "removed"):
        queue.on(kind, heard.append)
    match how:
        case "add":
            await queue.add(1)
        case "add_many":
            await queue.add_many([{"data": 1}])
        case "pause":
            await queue.pause()
        case "pause_group":
            await queue.pause_group("g")
        case "cancel":
            await queue.cancel("x")
        case "create_job":
            await queue.create_job(1).save()
    await eventually(lambda: heard, "the event is received", 3)


def test_a_listener_may_be_added_before_there_is_an_event_loop(url: str) -> None:
    heard = Heard()
    queue = Queue("early", url)
    queue.on("added", heard.append)

    async def main() -> None:
        async with queue:
            await queue.add(1)
            await heard.has("added")

    asyncio.run(main())


async def test_listeners_may_be_async_and_one_that_raises_harms_nobody(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    heard, later = Heard(), Heard()

    def broken(event: Event) -> None:
        raise ValueError("broken listener")

    async def broken_later(event: Event) -> None:
        await asyncio.sleep(0)
        raise ValueError("broken later")

    async def slow(event: Event) -> None:
        await asyncio.sleep(0)
        later.append(event)

    with caplog.at_level(logging.ERROR, "groupmq.events"):
        for listener in (broken, broken_later, slow, heard.append):
            queue.on("added", listener)
        await queue.add_many({"data": n} for n in range(3))
        await heard.has("added", 3)
        await later.has("added", 3)
    assert caplog.text.count("broken listener") == caplog.text.count("broken later") == 3


async def test_off_ends_one_listener_and_remove_all_the_rest(queue: Queue) -> None:
    one, two, witness = Heard(), Heard(), Heard()
    first, second = queue.on("added", lambda event: one.append(event)), queue.on("added", two.append)
    queue.on("paused", witness.append)
    assert queue.off("added", first)
    assert not queue.off("added", first)
    await queue.add(1)
    await two.has("added")
    queue.remove_all_listeners("added")
    assert not queue.off("added", second)
    await queue.add(2)
    await queue.pause()
    await witness.has("paused")
    assert (len(one), len(two)) == (0, 1)
    queue.remove_all_listeners()
    assert not queue.off("paused", witness.append)


async def test_unknown_events_and_bad_listeners_are_refused(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match=r"event: expected one of .*completed.*, got 'finished'"):
        queue.on("finished", print)
    with pytest.raises(ConfigurationError, match="listener: expected a callable"):
        queue.on("completed", "print")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="event: expected one of"):
        queue.off("finished", print)


async def test_listeners_of_two_queue_objects_of_one_name_are_both_called(make_queue: MakeQueue) -> None:
    one, two = Heard(), Heard()
    first, second = make_queue("twice"), make_queue("twice")
    first.on("added", one.append)
    await first.add(1)
    await one.has("added")
    second.on("added", two.append)
    await second.add(2)
    await two.has("added")
    await one.has("added", 2)
    job = await first.add(3)
    waiting = asyncio.create_task(job.result(5))
    await second.close()
    async with Worker(first, handle):
        assert await waiting == 3


async def test_an_entry_that_is_none_of_ours_stops_nobody(queue: Queue, client: Any) -> None:
    heard = Heard()
    queue.on("added", heard.append)
    await queue.add(1)
    await heard.has("added")
    try:
        client.xadd(f"groupmq:{{{queue.name}}}:events", {"by": "somebody"})
        await queue.add(2, job_id="after")
        await heard.has("added", 2)
        assert heard[-1].job_id == "after"
    finally:
        client.flushall()


@pytest.mark.one_server("one connection for each primary that has a queue")
async def test_one_connection_serves_however_many_queues_and_jobs(make_queue: MakeQueue, client: Any) -> None:
    queues = [make_queue() for _ in range(12)]
    heard = Heard()
    jobs = []
    for queue in queues:
        queue.on("added", heard.append)
        jobs += await queue.add_many({"data": n} for n in range(10))
    for job in jobs:
        job.on("removed", heard.append)
    waiting = [asyncio.create_task(job.result()) for job in jobs]
    await heard.has("added", 120)
    await hears(client, 1)
    for job in jobs:
        await job.remove()
    await heard.has("removed", 120)
    assert len(readers(client)) <= 1
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(one).__name__ for one in done} == {"JobRemoved"}


async def test_without_a_listener_there_is_no_connection(
    queue: Queue, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupmq.client.events.hub._LINGER", 0.0)
    heard = Heard()
    job = await queue.add(1)
    await Worker(queue, handle).run(burst=True)
    assert (await job.refresh()).state == "completed"
    assert readers(client) == []
    listener = queue.on("added", heard.append)
    await queue.add(2)
    await heard.has("added")
    await hears(client, 1)
    queue.off("added", listener)
    await nobody_hears(queue, client)


async def test_a_busy_log_is_not_read_on_for_nobody(queue: Queue, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupmq.client.events.hub._LINGER", 3600.0)
    monkeypatch.setattr("groupmq.client.events.hub._LINGER_EVENTS", 50)
    heard = Heard()
    listener = queue.on("added", heard.append)
    await queue.add(1)
    await heard.has("added")
    queue.off("added", listener)
    for _ in range(3):
        await queue.add_many({"data": n} for n in range(40))
    await nobody_hears(queue, client)


async def test_a_queue_that_subscribes_while_others_wait_gets_events_at_once(make_queue: MakeQueue) -> None:
    loop = asyncio.get_running_loop()
    first, second, third = make_queue(), make_queue(), make_queue()
    heard = Heard()
    for queue in (first, second):
        queue.on("added", heard.append)
        await queue.add(1)
    await heard.has("added", 2)
    await first.close()  # this may cancel the task that started the reading
    third.on("added", heard.append)
    began = loop.time()
    await third.add(1)
    await heard.has("added", 3)
    assert loop.time() - began < 2, "it was received only when the read of the others timed out"


@pytest.mark.one_server("a client of one server is handed in")
@pytest.mark.parametrize("options", [{"decode_responses": True}, {"protocol": 3}, {"protocol": 2}])
async def test_a_client_of_the_users_serves_too(url: str, client: Any, options: dict[str, Any]) -> None:
    mine = redis.asyncio.Redis.from_url(url, **options)
    async with Queue("mine", mine) as queue, listening(queue, client) as heard, Worker(queue, handle):
        job = await queue.add({"ü": "\x00"}, group_id="g {}")
        assert await job.result(5) == {"ü": "\x00"}
        await heard.has("completed")
        assert heard.kinds(job.id) == ["added", "active", "completed"]
    assert await mine.ping()
    await mine.aclose()
