"""`await job.result()`: the end of a job is found whenever it comes, before, during or after the call."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from groupmq import Event, FailJob, GroupMQError, Job, JobFailed, JobRemoved, Queue, RetryJob, Worker
from groupmq.client.events import Channel
from groupmq.core.events import Entry
from tests.conftest import MakeQueue
from tests.support.fleet import Fleet
from tests.support.listening import end_connections, hears, nobody_hears, readers
from tests.support.waiting import eventually, wait_until
from tests.support.workers import Recorder

LARGE = "x" * 100_000
"""Larger than the results that an event carries if the job is kept."""


async def handle(job: Job) -> Any:
    match job.data:
        case "fail":
            raise FailJob("no use")
        case "retry" if job.attempt < 3:
            raise RetryJob("again", delay=0.01)
        case "nothing":
            return None
        case "large":
            return LARGE
    return {"did": job.data}


def micros(time: tuple[int, int]) -> int:
    return time[0] * 1_000_000 + time[1]


async def waiting_for(job: Job, client: Any) -> asyncio.Task[Any]:
    """Start to wait for the result of a job. Returns when the call reads the log."""
    task = asyncio.create_task(job.result(timeout=10))
    await hears(client)
    return task


@pytest.mark.parametrize("kept", [0, 1, 100])
@pytest.mark.parametrize("when", ["before", "during"])
@pytest.mark.parametrize("data", ["work", "nothing", "large", "retry"])
async def test_a_result_is_what_the_handler_returned(
    make_queue: MakeQueue, client: Any, kept: int, when: str, data: str
) -> None:
    queue = make_queue(keep_completed=kept, keep_failed=kept)
    job = await queue.add(data, group_id="g")
    expected = {"nothing": None, "large": LARGE}.get(data, {"did": data})
    task = await waiting_for(job, client) if when == "during" else None
    async with Worker(queue, handle):
        if task is None:
            assert await queue.wait_for_empty(5)
            assert await job.result() == expected
        else:
            assert await task == expected


@pytest.mark.parametrize("kept", [0, 100])
@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_failure_is_raised_with_reason_and_stack(
    make_queue: MakeQueue, client: Any, kept: int, when: str
) -> None:
    queue = make_queue(keep_failed=kept)
    job = await queue.add("fail")
    task = await waiting_for(job, client) if when == "during" else None
    async with Worker(queue, handle):
        assert await queue.wait_for_empty(5)
        with pytest.raises(JobFailed, match="no use") as caught:
            await (task or job.result())
    assert (caught.value.job_id, caught.value.reason) == (job.id, "no use")
    assert "FailJob: no use" in caught.value.stacktrace


@pytest.mark.parametrize("how", ["remove", "cancel", "purge", "clean"])
async def test_the_result_of_a_job_removed_during_the_wait_raises_job_removed(
    queue: Queue, client: Any, how: str
) -> None:
    job = await queue.add(1)
    task = await waiting_for(job, client)
    match how:
        case "remove":
            await job.remove()
        case "cancel":
            await job.cancel()
        case "purge":
            await queue.purge()
        case "clean":
            await queue.clean("waiting")
    with pytest.raises(JobRemoved):
        await task


async def test_the_result_of_a_job_removed_before_raises_job_removed(queue: Queue) -> None:
    job = await queue.add(1)
    await job.remove()
    with pytest.raises(JobRemoved, match=job.id):
        await job.result(timeout=5)


async def test_the_result_of_a_job_removed_while_it_runs_raises_job_removed(queue: Queue) -> None:
    recorder = Recorder()
    recorder.gate = asyncio.Event()
    async with Worker(queue, recorder):
        job = await queue.add(1)
        await eventually(lambda: recorder.started, "the job runs")
        task = asyncio.create_task(job.result(5))
        await job.remove()
        with pytest.raises(JobRemoved):
            await task
        recorder.gate.set()


async def test_a_timeout_is_a_timeout_and_the_job_is_left_alone(
    queue: Queue, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupmq.client.events.hub._LINGER", 0.0)
    job = await queue.add(1)
    with pytest.raises(TimeoutError):
        await job.result(timeout=0.05)
    assert await job.get_state() == "waiting"
    await nobody_hears(queue, client)
    await Worker(queue, handle).run(burst=True)
    assert await job.result(timeout=5) == {"did": 1}


async def test_a_job_that_ended_before_add_returned_has_its_result(
    make_queue: MakeQueue, url: str, client: Any
) -> None:
    queue = make_queue(keep_completed=0)
    with Fleet(url, queue.name, keep_completed=0) as fleet:
        fleet.start()
        await queue.get_job_counts()
        adding = asyncio.create_task(queue.add({}))
        while not client.exists(f"groupmq:{{{queue.name}}}:events"):  # noqa: ASYNC110 - until the call has left
            await asyncio.sleep(0)
        # This blocks the loop, so the answer to the add stays unread meanwhile.
        wait_until(lambda: fleet.lines("completed"), "the job is done, and nothing of it is kept")
        job = await adding
        assert await job.result(timeout=5) == job.id
        assert await queue.get_job(job.id) is None


async def test_results_come_from_other_processes(queue: Queue, url: str) -> None:
    with Fleet(url, queue.name) as fleet:
        fleet.start(2)
        jobs = await queue.add_many({"data": {}, "group_id": f"g{n}"} for n in range(40))
        assert await asyncio.gather(*(job.result(10) for job in jobs)) == [job.id for job in jobs]


async def test_a_thousand_wait_at_once(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue(keep_completed=0)
    jobs = await queue.add_many({"data": n, "group_id": f"g{n % 50}"} for n in range(1000))
    waiting = [asyncio.create_task(job.result(20)) for job in jobs]
    await hears(client)
    async with Worker(queue, handle, concurrency=50):
        assert await asyncio.gather(*waiting) == [{"did": n} for n in range(1000)]


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_results_of_many_jobs_that_are_gone_do_not_read_the_log_once_for_each(
    make_queue: MakeQueue, client: Any, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """Otherwise callers that wait for a thousand ended jobs would time out: the log would be read a thousand times."""
    queue = make_queue(keep_completed=0)
    jobs = await queue.add_many([{"data": i, "group_id": f"g{i % 7}"} for i in range(300)])
    async with Worker(queue, handle, concurrency=4):
        assert await queue.wait_for_empty(10)
    read, page = list[Entry](), Channel.page

    async def counted(channel: Channel, since: str, most: int) -> list[Entry]:
        entries = await page(channel, since, most)
        read.extend(entries)
        return entries

    monkeypatch.setattr(Channel, "page", counted)
    if at_once:
        values = await asyncio.gather(*(job.result(timeout=30) for job in jobs))
    else:
        values = [await job.result(timeout=30) for job in jobs]
    assert values == [{"did": i} for i in range(300)]
    stored = client.xlen(queue._local.here().channel.key)
    assert len(read) <= 10 * stored, "the log was read again for each job"


async def test_many_may_wait_for_one_job(queue: Queue, client: Any) -> None:
    job = await queue.add("large")
    same = await queue.require_job(job.id)
    waiting = [asyncio.create_task(one.result(5)) for one in (job, same) * 10]
    await hears(client)
    waiting[0].cancel()
    await Worker(queue, handle).run(burst=True)
    assert await asyncio.gather(*waiting[1:]) == [LARGE] * 19


@pytest.mark.parametrize("data", ["work", "large", "fail"])
async def test_without_events_results_are_asked_for(make_queue: MakeQueue, client: Any, data: str) -> None:
    queue = make_queue(events=False)
    job = await queue.add(data)
    task = asyncio.create_task(job.result(5))
    async with Worker(queue, handle):
        if data == "fail":
            with pytest.raises(JobFailed, match="no use"):
                await task
        else:
            assert await task == (LARGE if data == "large" else {"did": "work"})
        gone = await queue.add(1, delay=60)
        task = asyncio.create_task(gone.result(5))
        await gone.remove()
        with pytest.raises(JobRemoved):
            await task
        with pytest.raises(TimeoutError):
            await (await queue.add(1, delay=60)).result(timeout=0.02)
    assert readers(client) == []


async def test_a_job_is_not_answered_by_an_earlier_one_of_the_same_id(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue(keep_completed=0)
    listener = asyncio.create_task((await queue.add("other", delay=60)).result())
    await hears(client)
    end_connections(client, readers(client))
    # No listener learns of this job, since its connection was cut:
    await queue.add("first", job_id="same")
    await Worker(queue, handle).run(burst=True)
    assert await queue.get_job("same") is None
    ended = client.time()
    wait_until(lambda: micros(client.time()) > micros(ended) + 3000, "the server's clock has advanced")
    second = await queue.add("second", job_id="same", delay=0.3)
    task = asyncio.create_task(second.result(5))
    async with Worker(queue, handle):
        assert await task == {"did": "second"}
    listener.cancel()


async def test_closing_the_queue_ends_the_waiting(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue()
    task = await waiting_for(await queue.add(1), client)
    await queue.close()
    with pytest.raises(GroupMQError, match="closed"):
        async with asyncio.timeout(2):
            await task


async def test_a_failed_job_that_is_retried_may_be_waited_for_again(queue: Queue) -> None:
    fails = True

    async def once(job: Job) -> str:
        if fails:
            raise FailJob("not yet")
        return "now"

    job = await queue.add(1)
    async with Worker(queue, once):
        with pytest.raises(JobFailed):
            await job.result(5)
        fails = False
        await job.retry()
        assert await job.result(5) == "now"


async def test_large_results_are_not_remembered(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=0)
    queue.on("completed", lambda event: None)
    async with Worker(queue, handle, concurrency=10):
        for _ in range(5):
            jobs = await queue.add_many({"data": "large"} for _ in range(20))
            assert await asyncio.gather(*(job.result(10) for job in jobs)) == [LARGE] * 20

    def remembered() -> int:
        gc.collect()
        return sum(len(one.raw_result or b"") for one in gc.get_objects() if isinstance(one, Event))

    await eventually(lambda: remembered() < 10 * len(LARGE), "delivered events are forgotten")


async def test_a_large_result_that_came_before_anybody_asked_is_returned(make_queue: MakeQueue) -> None:
    queue = make_queue(keep_completed=0)
    heard = asyncio.Event()
    queue.on("completed", lambda event: heard.set())
    async with Worker(queue, handle):
        for data, expected in (("large", LARGE), ("work", {"did": "work"})):
            heard.clear()
            job = await queue.add(data)
            await heard.wait()
            assert [await job.result(5) for _ in range(2)] == [expected] * 2
