"""Rows that are interrupted: whatever happens to one of their jobs, those behind it run later, in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import FailJob, HandlerTimeout, Job, Queue, RateLimited, RetryJob, Worker
from tests.conftest import MakeQueue
from tests.support.rows import add_row, attempts_made, used_to_short_handlers
from tests.support.workers import Listener

N, BAD = 8, 3
ALL = list(range(N))
TWICE = sorted([*ALL, BAD])


class Stumbling:
    """A handler that does something unusual with one job of a row, the first time."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.seen: list[int] = []
        self.attempts: dict[int, list[int]] = {}

    async def __call__(self, job: Job) -> object:
        again = job.data in self.seen
        self.seen.append(job.data)
        self.attempts.setdefault(job.data, []).append(job.attempt)
        return None if job.data != BAD or again else await self.stumble()

    async def stumble(self) -> object:
        match self.how:
            case "raises":
                raise ValueError("stumbled")
            case "raises CancelledError":
                raise asyncio.CancelledError
            case "raises GeneratorExit":
                raise GeneratorExit
            case "raises SystemExit":
                raise SystemExit(1)
            case "raises FailJob":
                raise FailJob("no use")
            case "raises RetryJob":
                raise RetryJob("later", delay=0.05)
            case "raises RateLimited":
                raise RateLimited("429", retry_after=0.05)
            case "returns what cannot be stored":
                return object()
            case "hangs":
                await asyncio.Event().wait()
        return None


@pytest.mark.parametrize(
    ("how", "seen", "state", "attempts"),
    [
        ("raises", TWICE, "completed", [1, 2]),
        ("raises CancelledError", TWICE, "completed", [1, 2]),
        ("raises GeneratorExit", TWICE, "completed", [1, 2]),
        ("raises SystemExit", TWICE, "completed", [1, 2]),
        ("raises RetryJob", TWICE, "completed", [1, 2]),
        ("hangs", TWICE, "completed", [1, 2]),
        ("raises RateLimited", TWICE, "completed", [1, 1]),
        ("raises FailJob", ALL, "failed", [1]),
        ("returns what cannot be stored", ALL, "failed", [1]),
    ],
)
async def test_prefetched_jobs_behind_one_that_does_not_complete_run_after_it_and_use_no_attempt(
    queue: Queue, how: str, seen: list[int], state: str, attempts: list[int]
) -> None:
    handler = Stumbling(how)
    # The timeout is shorter than the time for which jobs behind it may wait.
    options: dict[str, Any] = {"timeout": 0.005} if how == "hangs" else {}
    jobs = await queue.add_many(
        [{"data": i, "group_id": "g", "backoff": 0, **(options if i == BAD else {})} for i in ALL]
    )
    worker = used_to_short_handlers(Worker(queue, handler, blocking_timeout=30))
    heard = Listener(worker, "completed", "retrying", "failed", "lease-lost", "error")
    async with worker:
        assert await queue.wait_for_empty(10)
    assert handler.seen == seen
    assert handler.attempts == {i: attempts if i == BAD else [1] for i in ALL}
    assert await attempts_made(jobs) == [attempts[-1] if i == BAD else 1 for i in ALL]
    assert [job.state for job in jobs] == [state if i == BAD else "completed" for i in ALL]
    assert [job.stalls for job in jobs] == [0] * N
    assert worker.get_worker_metrics().released >= N - 1 - BAD
    assert not {"lease-lost", "error"} & set(heard.names())
    if how == "hangs":
        assert isinstance(heard.args("retrying")[0][1], HandlerTimeout)


async def test_a_job_that_gives_up_its_place_lets_those_behind_it_pass(make_queue: MakeQueue) -> None:
    queue = make_queue(on_retry="yield")
    handler = Stumbling("raises")
    jobs = await add_row(queue, N, backoff=0.1)
    async with used_to_short_handlers(Worker(queue, handler)) as worker:
        assert await queue.wait_for_empty(10)
        assert worker.get_worker_metrics().released >= N - 1 - BAD
    assert handler.seen == [*ALL, BAD]
    assert await attempts_made(jobs) == [2 if i == BAD else 1 for i in ALL]


async def test_a_group_in_which_every_second_job_fails_keeps_its_order(queue: Queue) -> None:
    seen: list[int] = []

    async def handle(job: Job) -> None:
        seen.append(job.data)
        if job.attempt == 1 and job.data % 2:
            raise ValueError

    jobs = await add_row(queue, 60, backoff=0)
    worker = used_to_short_handlers(Worker(queue, handle, concurrency=3))
    await worker.run(burst=True)
    assert seen == sorted([*range(60), *range(1, 60, 2)])
    assert await attempts_made(jobs) == [1, 2] * 30
    assert worker.get_worker_metrics().retried == 30


async def test_on_error_is_called_for_the_failed_job_and_for_none_behind_it(queue: Queue) -> None:
    told: list[tuple[str, Any]] = []

    def note(error: BaseException, job: Job | None) -> None:
        told.append((str(error), job.data if job else None))

    await add_row(queue, N, backoff=0)
    await used_to_short_handlers(Worker(queue, Stumbling("raises"), on_error=note)).run(burst=True)
    assert told == [("stumbled", BAD)]
    assert [failure.attempt for failure in await queue.get_failures()] == [1]
