"""What handlers report while they run: stored, delivered, only under their own lease, and deleted with the job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from groupmq import ConfigurationError, Job, LeaseLost, PayloadTooLarge, Queue, Worker
from groupmq.protocol.keys import Keys
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.listening import Heard
from tests.support.waiting import eventually
from tests.support.workers import Listener, one_kind

VALUES = [0.5, {"done": [1, 2], "ü": "\x00"}, None, "half", False, 100]


async def tell(job: Job) -> None:
    for value in job.data["progress"]:
        await job.report_progress(value)
    for line in job.data["lines"]:
        await job.log(line)


async def check_told(queue: Queue, worker: Worker) -> None:
    """Check that everything that is reported arrives everywhere, in order."""
    by_job, by_queue, by_worker = Heard(), Heard(), Listener(worker, "progress")
    job = await queue.add({"progress": VALUES, "lines": ["one", "zwei ü"]})
    job.on("progress", by_job.append)
    queue.on("progress", by_queue.append)
    queue.on("completed", by_queue.append)
    async with worker:
        await job.result(20)
    await by_queue.has("completed")
    await by_job.has("progress", len(VALUES))
    assert [event.progress for event in by_job] == [event.progress for event in by_queue.of("progress")] == VALUES
    assert [value for _, value in by_worker.args("progress")] == VALUES
    found = await queue.require_job(job.id)
    assert found.progress == 100
    assert [line.text for line in found.logs] == ["one", "zwei ü"]
    assert all(line.at.tzinfo is not None and line.at >= found.started_at for line in found.logs)  # type: ignore[operator]
    as_dict = found.to_dict()
    assert (as_dict["progress"], [line["text"] for line in as_dict["logs"]]) == (100, ["one", "zwei ü"])


async def test_reports_of_an_async_handler_arrive(queue: Queue) -> None:
    await check_told(queue, Worker(queue, tell))


async def test_reports_of_a_handler_in_a_thread_arrive(queue: Queue) -> None:
    await check_told(queue, Worker(queue, handlers.tell))


@one_kind
async def test_reports_of_a_handler_in_another_process_arrive(queue: Queue) -> None:
    await check_told(queue, Worker(queue, handlers.tell, executor="process"))


async def test_progress_is_stored_before_the_handler_goes_on(queue: Queue) -> None:
    seen: list[Any] = []

    async def handle(job: Job) -> None:
        for value in (1, None, 3):
            await job.report_progress(value)
            seen.append(((await queue.require_job(job.id)).progress, job.progress))

    await queue.add(1)
    await Worker(queue, handle).run(burst=True)
    assert seen == [(1, 1), (None, None), (3, 3)]


async def test_a_thread_may_await_nothing_and_still_has_said_it(queue: Queue) -> None:
    seen: list[Any] = []
    loop = asyncio.get_running_loop()

    def handle(job: Job) -> None:
        job.report_progress(7)
        seen.append(asyncio.run_coroutine_threadsafe(queue.require_job(job.id), loop).result(5).progress)

    await queue.add(1)
    await Worker(queue, handle).run(burst=True)
    assert seen == [7]


async def test_the_newest_hundred_lines_are_kept(queue: Queue) -> None:
    job = await queue.add({"progress": [], "lines": [f"line {n}" for n in range(120)]})
    await Worker(queue, tell).run(burst=True)
    assert [line.text for line in (await job.refresh()).logs] == [f"line {n}" for n in range(20, 120)]


async def test_a_long_line_is_cut_and_an_odd_one_is_stored(queue: Queue) -> None:
    job = await queue.add({"progress": [], "lines": []})

    async def handle(job: Job) -> None:
        for line in ("x" * 10_000, "", "\ud800", "two\nlines"):
            await job.log(line)

    await Worker(queue, handle).run(burst=True)
    long, *rest = [line.text for line in (await job.refresh()).logs]
    assert len(long) < 3000
    assert rest == ["", "\\ud800", "two\nlines"]


async def test_what_cannot_be_stored_is_refused_and_the_run_goes_on(make_queue: MakeQueue) -> None:
    queue = make_queue(max_payload=1000)
    refused: list[type[Exception]] = []

    async def handle(job: Job) -> str:
        says: list[Callable[[], Any]] = [
            lambda: job.report_progress(object()),
            lambda: job.report_progress("x" * 2000),
            lambda: job.log(5),  # type: ignore[arg-type]
        ]
        for say in says:
            try:
                await say()
            except ConfigurationError as error:
                refused.append(type(error))
        return "fine"

    job = await queue.add(1)
    await Worker(queue, handle).run(burst=True)
    assert refused == [ConfigurationError, PayloadTooLarge, ConfigurationError]
    assert (await job.refresh()).return_value == "fine"
    assert (job.progress, job.logs) == (None, [])


@pytest.mark.parametrize("how", ["remove", "fail", "retry"])
async def test_a_run_that_lost_its_lease_gets_lease_lost_and_reports_nothing(queue: Queue, how: str) -> None:
    told: list[str] = []

    async def handle(job: Job) -> None:
        if told:
            return
        # A separate task reports, since the handler is stopped as soon as its job has been ended.
        speaking = asyncio.create_task(speak(job))
        try:
            await asyncio.shield(speaking)
        finally:
            await speaking

    async def speak(job: Job) -> None:
        await (job.remove() if how == "remove" else job.fail("by hand"))
        if how == "retry":
            await job.retry()
        for say in (job.report_progress(1), job.log("late")):
            try:
                await say
            except LeaseLost as error:
                told.append(error.job_id)

    job = await queue.add(1)
    await Worker(queue, handle).run(burst=True)
    assert told == [job.id] * 2
    found = await queue.get_job(job.id)
    assert found is None or (found.progress, found.logs) == (None, [])


async def test_a_job_that_does_not_run_says_nothing(queue: Queue) -> None:
    job = await queue.add(1)
    with pytest.raises(LeaseLost):
        await job.report_progress(1)
    await Worker(queue, tell).run(burst=True)
    with pytest.raises(LeaseLost):
        await job.log("late")


async def test_a_handler_may_speak_no_more_once_its_run_is_over(queue: Queue) -> None:
    kept: list[Job] = []

    async def handle(job: Job) -> None:
        await job.report_progress(1)
        kept.append(job)

    job = await queue.add(1)
    await Worker(queue, handle).run(burst=True)
    with pytest.raises(LeaseLost):
        await kept[0].report_progress(2)
    assert (await job.refresh()).progress == 1


async def test_progress_and_log_stay_over_attempts(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        await job.log(f"attempt {job.attempt}")
        if job.attempt == 1:
            await job.report_progress("first half")
            raise ValueError("once")

    job = await queue.add(1, backoff=0.01)
    async with Worker(queue, handle):
        await job.result(5)
    await job.refresh()
    assert (job.progress, [line.text for line in job.logs]) == ("first half", ["attempt 1", "attempt 2"])


async def test_progress_and_logs_are_deleted_with_the_job(make_queue: MakeQueue, client: Any) -> None:
    queue = make_queue(keep_completed=3)
    for n in range(20):
        await queue.add({"progress": [n], "lines": ["x"]}, group_id=f"g{n % 4}")
    async with Worker(queue, tell, concurrency=4):
        assert await queue.wait_for_empty(5)
    keys = Keys("groupmq", queue.name)

    def kept() -> tuple[int, int]:
        return client.hlen(keys.fixed("progress")), client.hlen(keys.fixed("logs"))

    assert kept() == (3, 3)
    await queue.clean("completed")
    assert kept() == (0, 0)


async def test_progress_that_many_jobs_report_at_once_is_all_delivered(queue: Queue) -> None:
    heard = Heard()
    queue.on("progress", heard.append)
    go = asyncio.Event()

    async def handle(job: Job) -> None:
        await go.wait()
        await job.report_progress(job.data)

    await queue.add_many({"data": n} for n in range(200))
    async with Worker(queue, handle, concurrency=200) as worker:
        await eventually(lambda: len(worker.get_current_jobs()) == 200, "all run")
        go.set()
        await heard.has("progress", 200)
    assert sorted(event.progress for event in heard) == list(range(200))
