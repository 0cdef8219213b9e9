"""Results of jobs whose record, log or queue is gone when the result is requested, and ids that are used again."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from groupmq import Job, JobFailed, JobRemoved, Queue, Throttle, Worker
from groupmq.protocol.keys import Keys
from groupmq.sync import Job as SyncJob
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.listening import Heard, hears, readers
from tests.support.waiting import wait_until

LARGE, HUGE = "x" * 50_000, "x" * 600_000
"""The event of a job that is kept does not contain a huge result."""
NEVER = 3600.0


async def handle(job: Job) -> Any:
    return {"large": LARGE, "huge": HUGE}.get(job.data, {"did": job.data})


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the periodic check of the job, so that a waiting call depends on the event."""
    monkeypatch.setattr("groupmq.client.events.results._LOOK_AGAIN", NEVER)


async def result(job: Job | SyncJob) -> Any:
    """The result of a job, of either client."""
    return await job.result(20) if isinstance(job, Job) else await asyncio.to_thread(job.result, 20)


async def listen(queue: Queue) -> Heard:
    """Subscribe to all events of the queue, so that this process need not read jobs that are made later."""
    heard = Heard()
    queue.on("added", heard.append)
    await queue.add("witness", delay=60)
    await heard.has("added")
    return heard


@pytest.mark.parametrize("hears_all", [True, False])
async def test_a_result_call_of_an_obliterated_queue_ends_at_its_next_look(
    queue: Queue, client: Any, monkeypatch: pytest.MonkeyPatch, hears_all: bool
) -> None:
    monkeypatch.setattr("groupmq.client.events.results._LOOK_AGAIN", 0.1)
    if hears_all:
        await listen(queue)
    job = await queue.add(1)
    task = asyncio.create_task(job.result(20))
    await hears(client)
    assert not task.done()
    await queue.obliterate()
    with pytest.raises(JobRemoved, match=job.id):
        async with asyncio.timeout(5):
            await task


@pytest.mark.usefixtures("patient")
async def test_a_result_call_of_an_obliterated_queue_ends_with_the_next_event(queue: Queue, client: Any) -> None:
    await listen(queue)
    job = await queue.add(1)
    task = asyncio.create_task(job.result(20))
    await hears(client)
    await queue.obliterate()
    await queue.add("new")
    with pytest.raises(JobRemoved, match=job.id):
        async with asyncio.timeout(5):
            await task


def test_the_blocking_twin_learns_that_the_queue_was_obliterated(
    url: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupmq.client.events.results._LOOK_AGAIN", 0.1)
    ends: list[Exception] = []

    def wait(job: Any) -> None:
        try:
            job.result(20)
        except Exception as error:
            ends.append(error)

    with SyncQueue("doomed", url) as queue:
        thread = threading.Thread(target=wait, args=(queue.add(1),), daemon=True)
        thread.start()
        wait_until(lambda: readers(client), "a call waits for the result")
        queue.obliterate()
        thread.join(5)
        assert [type(error) for error in ends] == [JobRemoved]


@pytest.mark.parametrize("when", ["before", "during"])
async def test_without_events_a_result_that_is_not_kept_raises_job_removed(make_queue: MakeQueue, when: str) -> None:
    """Without an event log, a queue must keep the jobs whose results are wanted."""
    queue = make_queue(events=False, keep_completed=0)
    job = await queue.add(1)
    if when == "before":
        await Worker(queue, handle).run(burst=True)
    task = asyncio.create_task(job.result(20))
    if when == "during":
        await asyncio.sleep(0)
        await Worker(queue, handle).run(burst=True)
    with pytest.raises(JobRemoved, match=job.id):
        async with asyncio.timeout(5):
            await task


async def test_of_a_job_that_retention_removed_the_log_knows_a_small_result_and_of_a_huge_one_that_it_is_gone(
    make_queue: MakeQueue, url: str
) -> None:
    queue = make_queue(keep_completed=1)
    small, huge = await queue.add("small"), await queue.add("huge")
    with SyncQueue(queue.name, url, keep_completed=1) as twin:
        askers: list[list[Job | SyncJob]] = [[small, huge], [twin.require_job(job.id) for job in (small, huge)]]
        await Worker(queue, handle).run(burst=True)
        assert await huge.result(5) == HUGE, "the huge job is still kept"
        await queue.add("last")
        await Worker(queue, handle).run(burst=True)
        assert await queue.get_job(huge.id) is None
        for ask_small, ask_huge in askers:
            assert await result(ask_small) == {"did": "small"}
            with pytest.raises(JobRemoved, match="gone before its large result"):
                await result(ask_huge)


async def test_large_results_reach_all_waiting_callers_though_fewer_jobs_are_kept(
    make_queue: MakeQueue, client: Any
) -> None:
    queue = make_queue(keep_completed=1)
    jobs = await queue.add_many({"data": "large", "group_id": f"g{n % 20}"} for n in range(60))
    waiting = [asyncio.create_task(job.result(20)) for job in jobs]
    await hears(client)
    async with Worker(queue, handle, concurrency=20):
        ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end).__name__ for end in ends if end != LARGE] == []


@pytest.mark.parametrize("end", ["completed", "removed"])
@pytest.mark.parametrize("second", ["waits", "is over"])
@pytest.mark.parametrize("blocking", [False, True])
async def test_the_result_of_the_first_job_of_an_id_is_not_that_of_the_second(
    make_queue: MakeQueue, url: str, end: str, second: str, blocking: bool
) -> None:
    queue = make_queue(keep_completed=0)
    twin = SyncQueue(queue.name, url, keep_completed=0)
    first: Job | SyncJob = await queue.add("first", job_id="same")
    if blocking:
        first = twin.require_job("same")
    if end == "removed":
        assert await queue.remove("same")
    await Worker(queue, handle).run(burst=True)
    await queue.add("second", job_id="same", delay=60 if second == "waits" else None)
    await Worker(queue, handle).run(burst=True)
    if end == "removed":
        with pytest.raises(JobRemoved):
            await result(first)
    else:
        assert await result(first) == {"did": "first"}
    twin.close()


async def test_the_result_of_the_first_job_of_an_id_raises_job_removed_when_the_log_no_longer_has_it(
    make_queue: MakeQueue, client: Any
) -> None:
    queue = make_queue(keep_completed=0)
    first = await queue.add("first", job_id="same")
    await Worker(queue, handle).run(burst=True)
    await queue.add("second", job_id="same", delay=0.2)
    client.xtrim(Keys("groupmq", queue.name).fixed("events"), maxlen=1, approximate=False)
    async with Worker(queue, handle):
        with pytest.raises(JobRemoved, match="same"):
            await first.result(5)


async def test_an_id_used_again_in_the_same_moment_is_not_answered_by_the_end_of_the_old_job(
    make_queue: MakeQueue,
) -> None:
    """Both calls are sent together, so the old job may end in the same millisecond in which the new one begins."""
    queue = make_queue(keep_completed=0)
    await listen(queue)
    answered = 0
    for n in range(80):
        old = await queue.add("old", job_id="same", delay=60)
        _, new = await asyncio.gather(old.remove(), queue.add(n, job_id="same", delay=60))
        if not new.duplicate:  # otherwise the add came before the removal, which removed its job
            answered += 1
            with pytest.raises(TimeoutError):
                await new.result(0.005)
            await new.remove()
    assert answered > 40


async def test_each_of_many_jobs_with_the_same_id_gets_its_own_result(
    make_queue: MakeQueue,
) -> None:
    queue = make_queue(keep_completed=0)
    async with Worker(queue, handle):
        for n in range(100):
            job = await queue.add(n, job_id="same")
            assert not job.duplicate
            assert await job.result(5) == {"did": n}


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("hears_all", [True, False])
@pytest.mark.parametrize("how", ["completed", "failed", "removed", "forgotten by the log"])
@pytest.mark.usefixtures("patient")
async def test_the_job_of_a_throttle_that_is_gone_says_so_and_its_result_ends(
    make_queue: MakeQueue, url: str, client: Any, hears_all: bool, blocking: bool, how: str
) -> None:
    queue = make_queue(keep_completed=0, keep_failed=0)
    if hears_all:
        await listen(queue)
    once = Throttle("k", 60)
    first = await queue.add("work", group_id="g", dedupe=once)
    if how == "failed":
        await first.fail("by hand")
    elif how == "removed":
        await first.remove()
    else:
        async with Worker(queue, handle):
            assert await first.result(5) == {"did": "work"}
    if how == "forgotten by the log":
        client.xtrim(Keys("groupmq", queue.name).fixed("events"), maxlen=0, approximate=False)
        queue._local.here().channel.ends._forget()  # forget the ends that this process has just read from the log
    with SyncQueue(queue.name, url, keep_completed=0, keep_failed=0) as other:
        again: Job | SyncJob = (
            other.add("more", group_id="g", dedupe=once)
            if blocking
            else await queue.add("more", group_id="g", dedupe=once)
        )
        assert (again.id, again.state, again.duplicate) == (first.id, "gone", True)
        assert await queue.get_job(again.id) is None
        if how == "completed":
            assert await result(again) == {"did": "work"}
        else:
            with pytest.raises(JobFailed if how == "failed" else JobRemoved, match=first.id):
                await result(again)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("events", [False, True])
async def test_a_result_that_takes_too_long_says_which_job_and_how_long_and_where_it_is(
    make_queue: MakeQueue, url: str, events: bool, blocking: bool
) -> None:
    queue = make_queue(events=events)
    job: Job | SyncJob = await queue.add(1, job_id="slow")
    with SyncQueue(queue.name, url, events=events) as other:
        if blocking:
            job = other.require_job("slow")
        with pytest.raises(TimeoutError, match=r"^job 'slow' did not end within 0\.05 s; it is waiting$"):
            await (job.result(0.05) if isinstance(job, Job) else asyncio.to_thread(job.result, 0.05))
