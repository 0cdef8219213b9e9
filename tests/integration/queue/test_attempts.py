"""The attempts of a job: each run and how it ended. They are deleted with the job."""

from __future__ import annotations

import asyncio
from typing import Any

import redis

from groupmq import Attempt, Job, Queue, RateLimited, RetryJob, Worker
from groupmq.protocol.keys import Keys
from tests.support.waiting import eventually


class CardDeclined(Exception):
    """An error class of the user."""


async def run_all(queue: Queue, handle: Any, **options: Any) -> None:
    async with asyncio.timeout(20):
        await Worker(queue, handle, backoff=0, **options).run(burst=True)


def outcomes(attempts: list[Attempt]) -> list[tuple[int, str, str | None]]:
    return [(one.number, one.outcome, one.error) for one in attempts]


async def test_each_failed_attempt_has_class_reason_stack_worker_and_times(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        raise CardDeclined(f"attempt {job.attempt}") if job.attempt < 3 else ValueError("the end")

    job = await queue.add("x", group_id="g")
    await run_all(queue, handle)
    attempts = await job.get_attempts()
    path = f"{__name__}.CardDeclined"
    assert outcomes(attempts) == [(1, "retried", path), (2, "retried", path), (3, "failed", "ValueError")]
    assert [one.reason for one in attempts] == [
        "CardDeclined: attempt 1",
        "CardDeclined: attempt 2",
        "ValueError: the end",
    ]
    for one in attempts:
        assert "in handle" in str(one.stack)
        assert str(one.worker).startswith(queue.name)
        assert one.started_at is not None
        assert one.ended_at is not None
        assert one.duration == (one.ended_at - one.started_at).total_seconds() >= 0
    assert (await job.refresh()).error_class == "ValueError"


async def test_a_job_that_completes_has_its_failed_attempts_and_the_completed_one(queue: Queue) -> None:
    async def handle(job: Job) -> str:
        if job.attempt == 1:
            raise RetryJob("not yet")
        return "done"

    job = await queue.add("x", group_id="g")
    await run_all(queue, handle)
    assert outcomes(await job.get_attempts()) == [(1, "retried", "groupmq.errors.RetryJob"), (2, "completed", None)]


async def test_a_first_attempt_that_completes_is_listed_and_stores_nothing(queue: Queue, client: redis.Redis) -> None:
    job = await queue.add("x", group_id="g")
    assert await job.get_attempts() == []
    await run_all(queue, lambda job: None)
    (attempt,) = await job.get_attempts()
    assert (attempt.number, attempt.outcome, attempt.reason) == (1, "completed", None)
    fields = client.hkeys(Keys("groupmq", queue.name).fixed("state"))
    assert fields == [job.id.encode()]


def in_a_process(job: Job) -> None:
    """A handler that a child process can import."""
    raise CardDeclined("no money") if job.data == "own" else RateLimited("slow", retry_after=0)


async def test_an_error_raised_in_another_process_keeps_its_class(queue: Queue) -> None:
    job = await queue.add("own", max_attempts=1)
    await run_all(queue, in_a_process, executor="process")
    (attempt,) = await job.get_attempts()
    assert (attempt.error, attempt.reason) == (f"{__name__}.CardDeclined", "CardDeclined: no money")


async def test_a_worker_that_closes_gives_its_run_back(queue: Queue) -> None:
    started = asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    job = await queue.add("x", group_id="g")
    worker = await Worker(queue, handle).start()
    await started.wait()
    assert outcomes(await job.get_attempts()) == [(1, "running", None)]
    await worker.close(timeout=0)
    assert outcomes(await job.get_attempts()) == [(1, "released", None)]


async def test_a_run_that_an_operator_cancels_is_recorded_as_cancelled(queue: Queue) -> None:
    started = asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    job = await queue.add("x", group_id="g")
    async with Worker(queue, handle):
        await started.wait()
        await job.cancel()
        await eventually(lambda: failed(job), "the job has failed")
    assert outcomes(await job.get_attempts()) == [(1, "cancelled", None)]


async def failed(job: Job) -> bool:
    return await job.get_state() == "failed"


async def test_a_handler_that_takes_too_long_failed_with_a_timeout(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        await asyncio.Event().wait()

    job = await queue.add("x", timeout=0.01, max_attempts=1)
    await run_all(queue, handle)
    assert outcomes(await job.get_attempts()) == [(1, "failed", "groupmq.errors.HandlerTimeout")]


async def test_an_error_message_of_a_megabyte_is_kept_in_few_bytes(queue: Queue, client: redis.Redis) -> None:
    async def handle(job: Job) -> None:
        raise ValueError("x" * 1024 * 1024)

    job = await queue.add("x", max_attempts=3)
    await run_all(queue, handle)
    assert [one.outcome for one in await job.get_attempts()] == ["retried", "retried", "failed"]
    stored = client.hvals(Keys("groupmq", queue.name).fixed("state"))
    assert sum(len(value) for value in stored) < 40_000
