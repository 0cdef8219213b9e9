"""Events of all workers in all processes: received in order, each once, resumable, and a gap is reported as one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import ConfigurationError, Event, FailJob, GroupMQError, Job, Queue, RetryJob, Worker
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.listening import Heard, hears, listening, take
from tests.support.waiting import eventually
from tests.support.workers import one_kind


async def handle(job: Job) -> Any:
    match job.data:
        case "retry" if job.attempt == 1:
            raise RetryJob("once more", delay=0.01)
        case "fail":
            raise FailJob("no use")
    return {"did": job.data}


async def test_events_of_the_life_of_a_job_come_in_order_with_the_fields_of_each_step(
    queue: Queue, client: Any
) -> None:
    async with listening(queue, client) as heard, Worker(queue, handle):
        job = await queue.add("retry", group_id="g", max_attempts=3)
        await heard.has("drained")
    assert heard.kinds() == ["added", "active", "retrying", "active", "completed", "drained"]
    added, first, retrying, second, completed, _ = heard
    assert {(event.job_id, event.group_id) for event in heard[:5]} == {(job.id, "g")}
    assert (first.attempt, second.attempt, first.worker) == (1, 2, (await queue.require_job(job.id)).worker)
    assert (retrying.attempt, retrying.delay, retrying.reason) == (1, 0.01, "once more")
    assert (completed.attempt, completed.result) == (2, {"did": "retry"})
    assert added.at <= first.at <= completed.at
    assert added.at.tzinfo is not None


async def test_failures_removals_pauses_and_resumes_are_published(queue: Queue, client: Any) -> None:
    async with listening(queue, client) as heard:
        bad = await queue.add("fail", group_id="g")
        await Worker(queue, handle).run(burst=True)
        gone = await queue.add("never", group_id="h")
        await gone.remove()
        await queue.pause()
        await queue.resume()
        await queue.pause_group("g")
        await queue.resume_group("g")
        await heard.has("resumed", 2)
    failed, removed = heard.of("failed")[0], heard.of("removed")[0]
    assert (failed.job_id, failed.reason, failed.attempt) == (bad.id, "no use", 1)
    assert "FailJob" in (failed.stacktrace or "")
    assert (removed.job_id, removed.group_id) == (gone.id, "h")
    assert [event.group_id for event in heard if event.kind in ("paused", "resumed")] == [None, None, "g", "g"]


async def test_a_stall_is_published(make_queue: MakeQueue, client: Any, url: str) -> None:
    queue = make_queue(job_timeout=0.2)
    async with listening(queue, client) as heard:
        with Fleet(url, queue.name, job_timeout=0.2, worker={"maintenance": False}) as fleet:
            [process] = fleet.start()
            job = await queue.add({"seconds": 60})
            await heard.has("active")
            await eventually(lambda: fleet.lines("start"), "the job runs")
            fleet.kill(process)
            await eventually(queue.check_stalled_jobs, "the lease has expired")
            stalled = await heard.has("stalled")
            assert (stalled.job_id, stalled.attempt, stalled.final) == (job.id, 1, False)
            await job.remove()


async def test_the_events_of_all_workers_in_all_processes_are_delivered_once_each(
    queue: Queue, client: Any, url: str
) -> None:
    async with listening(queue, client) as heard:
        with Fleet(url, queue.name, worker={"concurrency": 2}) as fleet:
            fleet.start(2)
            await queue.add_many({"data": {"seconds": 0.01}, "group_id": f"g{n % 20}"} for n in range(100))
            await heard.has("completed", 100)
            runs = fleet.history().runs
    ids = sorted(heard.ids("added"))  # type: ignore[type-var]
    assert len(set(ids)) == 100
    assert sorted(heard.ids("active")) == sorted(heard.ids("completed")) == ids  # type: ignore[type-var]
    assert len({event.worker for event in heard.of("active")}) == len({run.pid for run in runs}) == 2
    assert all(event.result == event.job_id for event in heard.of("completed"))
    assert heard.of("gap") == []


async def test_a_loop_may_be_taken_up_after_any_event(queue: Queue, client: Any) -> None:
    async with listening(queue, client) as heard:
        await queue.add_many({"data": n, "group_id": f"g{n % 3}"} for n in range(10))
        await Worker(queue, handle, concurrency=3).run(burst=True)
        await heard.has("drained")
    assert len({event.id for event in heard}) == len(heard) >= 31
    for at in range(0, len(heard) - 1):
        rest = await take(queue, len(heard) - 1 - at, since=heard[at].id)
        assert rest == heard[at + 1 :]


async def test_a_loop_that_is_taken_up_hears_what_is_past_and_then_what_is_new(queue: Queue, client: Any) -> None:
    async with listening(queue, client) as heard:
        await queue.add(1)
        await heard.has("added")
    for n in range(450):  # more than a page of the log
        await queue.add(n, job_id=f"past-{n}")
    async with listening(queue, since=heard[-1].id) as resumed:
        await resumed.has("added", 450)
        await queue.add(3, job_id="new")
        await resumed.has("added", 451)
    assert resumed.ids("added") == [*(f"past-{n}" for n in range(450)), "new"]
    assert resumed.of("gap") == []


async def test_a_reader_that_is_slower_than_the_log_misses_nothing(queue: Queue, client: Any) -> None:
    seen, go_on = Heard(), asyncio.Event()

    async def listen() -> None:
        async for event in queue.events():
            seen.append(event)
            await go_on.wait()

    task = asyncio.create_task(listen())
    await hears(client)
    for n in range(1200):
        await queue.add(n, job_id=str(n))
    go_on.set()
    await seen.has("added", 1200)
    task.cancel()
    assert seen.ids("added") == [str(n) for n in range(1200)]
    assert seen.of("gap") == []


@one_kind
async def test_events_that_the_log_no_longer_holds_are_reported_as_a_gap(queue: Queue, client: Any) -> None:
    async def talk(job: Job) -> None:
        for _ in range(30):
            await job.report_progress("x" * 300_000)

    gaps: list[Event] = []
    async with listening(queue, client) as heard:
        await queue.add(1)
        await heard.has("added")
    await Worker(queue, talk).run(burst=True)
    resumed = await take(queue, 3, since=heard[-1].id)
    assert resumed.kinds()[:2] == ["gap", "progress"]
    queue.on("gap", gaps.append)
    await queue.add(2)
    again = await take(queue, 1, since=resumed[0].id)
    assert again.kinds() == ["progress"], "events that resume after a gap must not report it again"
    assert gaps == [], "a listener that was never cut off has no gap"


async def test_an_id_that_is_none_is_refused(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match="since: expected the id of an event, got 'yesterday'"):
        await take(queue, 1, since="yesterday")


async def test_a_log_that_was_deleted_and_began_again_is_reported_as_a_gap(queue: Queue, client: Any) -> None:
    async with listening(queue, client) as heard:
        await queue.add(1)
        await queue.add(2)
        await heard.has("added", 2)
        await queue.obliterate()
        await queue.add(3, job_id="new")
        await heard.has("added", 3)
    assert heard.kinds()[-2:] == ["gap", "added"]


async def test_a_queue_without_events_has_nothing_to_listen_to(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue(events=False)
    job = await queue.add(1)
    with pytest.raises(ConfigurationError, match="events=False"):
        queue.on("completed", print)
    with pytest.raises(ConfigurationError, match="events=False"):
        job.on("completed", print)
    with pytest.raises(ConfigurationError, match="events=False"):
        await take(queue, 1)
    await Worker(queue, handle).run(burst=True)
    keys = Keys("groupmq", queue.name)
    assert client.exists(keys.fixed("events"), keys.fixed("segments")) == 0


async def test_closing_the_queue_ends_the_loop(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue()

    async def listen() -> str:
        try:
            async for _ in queue.events():
                pass
        except GroupMQError:
            return "closed"
        return "ended"

    task = asyncio.create_task(listen())
    await hears(client)
    await queue.close()
    async with asyncio.timeout(2):
        assert await task in ("ended", "closed")


async def test_everything_after_the_last_event_id_is_delivered(queue: Queue) -> None:
    before_any = await queue.get_last_event_id()
    await queue.add(1, job_id="a")
    after_one = await queue.get_last_event_id()
    await queue.add(2, job_id="b")
    for since, ids in ((before_any, ["a", "b"]), (after_one, ["b"])):
        async with listening(queue, since=since) as heard:
            await heard.has("added", len(ids))
            assert heard.ids("added") == ids
            assert not heard.of("gap")
