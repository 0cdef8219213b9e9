"""Failed attempts: how often and how soon they are repeated, and what decides that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groupmq import Backoff, Job, Queue, RetryJob, Worker
from groupmq.core import backoff as backoffs
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Listener


class Failing:
    """A handler that fails its first `times` attempts and records when each attempt started."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.starts: list[float] = []
        self.seen: list[Any] = []

    async def __call__(self, job: Job) -> None:
        self.starts.append(asyncio.get_running_loop().time())
        self.seen.append(job.data)
        if job.attempt <= self.times:
            raise ValueError(f"attempt {job.attempt}")

    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.starts, self.starts[1:], strict=False)]


@pytest.mark.parametrize(
    ("job", "worker", "queue_says", "runs"),
    [(None, None, 2, 2), (None, 4, 2, 4), (3, 4, 2, 3), (5, 1, 1, 5), (1, 4, 4, 1)],
    ids=["queue", "worker-over-queue", "job-over-all", "job-may-exceed", "job-may-be-one"],
)
async def test_max_attempts_of_the_job_go_before_the_workers_before_the_queues(
    make_queue: MakeQueue, job: int | None, worker: int | None, queue_says: int, runs: int
) -> None:
    queue = make_queue(max_attempts=queue_says, backoff=0)
    handler = Failing(times=100)
    added = await queue.add(None, max_attempts=job)
    await Worker(queue, handler, max_attempts=worker).run(burst=True)
    failed = await queue.get_job(added.id)
    assert failed is not None
    assert (len(handler.starts), failed.state, failed.attempts_made) == (runs, "failed", runs)


@pytest.mark.parametrize("decides", ["job", "worker", "queue"])
async def test_the_jobs_backoff_goes_before_the_workers_before_the_queues(make_queue: MakeQueue, decides: str) -> None:
    queue = make_queue(backoff=0 if decides == "queue" else 3600)
    handler = Failing(times=2)
    await queue.add(None, group_id="g", backoff=0 if decides == "job" else None)
    async with Worker(queue, handler, backoff={"queue": None, "worker": 0, "job": 3600}[decides]):
        await eventually(lambda: len(handler.starts) == 3, "the back-off of zero was used")


@pytest.mark.parametrize("group_id", ["g", None])
async def test_a_fixed_backoff_is_never_early_and_on_time(queue: Queue, group_id: str | None) -> None:
    handler = Failing(times=2)
    await queue.add(None, group_id=group_id, backoff=0.3)
    async with Worker(queue, handler, blocking_timeout=30):
        assert await queue.wait_for_empty(10)
    # The upper bound allows for a busy machine. Polling each second, or after the blocking read, would be far later.
    assert all(0.299 <= gap < 0.9 for gap in handler.gaps()), handler.gaps()


async def test_an_exponential_backoff_grows_up_to_its_maximum(queue: Queue) -> None:
    handler = Failing(times=4)
    await queue.add(None, group_id="g", max_attempts=5, backoff=Backoff.exponential(0.1, 2, max=0.3, jitter=0))
    async with Worker(queue, handler, blocking_timeout=30):
        assert await queue.wait_for_empty(10)
    assert [round(gap - 0.049, 1) for gap in handler.gaps()] == pytest.approx([0.1, 0.2, 0.3, 0.3], abs=0.11)
    assert all(gap >= least for gap, least in zip(handler.gaps(), [0.099, 0.199, 0.299, 0.299], strict=True))


async def test_a_backoff_function_is_asked_with_the_attempt_and_the_error(queue: Queue) -> None:
    asked: list[tuple[int, str]] = []

    def policy(attempt: int, error: BaseException) -> float:
        asked.append((attempt, str(error)))
        return 0.0

    await queue.add(None, max_attempts=3)
    await Worker(queue, Failing(times=9), backoff=policy).run(burst=True)
    assert asked == [(1, "attempt 1"), (2, "attempt 2")]


@pytest.mark.parametrize("answer", [-1, "soon", float("nan"), None, ValueError("no idea")], ids=repr)
async def test_a_backoff_function_that_answers_nonsense_does_not_cost_the_job_its_retry(
    queue: Queue, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The back-off is longer than the burst. Otherwise the job would run again in it.
    monkeypatch.setattr(backoffs, "DEFAULT", Backoff.fixed(60))

    def policy(attempt: int, error: BaseException) -> float:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    job = await queue.add(None, group_id="g", max_attempts=2)
    handler = Failing(times=1)
    await Worker(queue, handler, backoff=policy).run(burst=True)
    await job.refresh()
    assert (job.attempts_made, job.state) == (1, "waiting")
    assert "back-off policy" in (job.failed_reason or "")


@pytest.mark.parametrize("attempts", [1, 3])
async def test_retry_job_chooses_its_own_delay(queue: Queue, attempts: int) -> None:
    starts: list[float] = []

    async def handle(job: Job) -> None:
        starts.append(asyncio.get_running_loop().time())
        if job.attempt == 1:
            raise RetryJob("later", delay=0.3)

    job = await queue.add(None, group_id="g", backoff=3600, max_attempts=attempts)
    async with Worker(queue, handle, blocking_timeout=30):
        assert await queue.wait_for_empty(10)
    await job.refresh()
    if attempts == 1:
        assert (job.state, len(starts)) == ("failed", 1)
    else:
        assert job.state == "completed"
        assert 0.299 <= starts[1] - starts[0] < 0.9


async def test_a_retrying_head_holds_its_group_and_never_changes_the_order(queue: Queue) -> None:
    handler = Failing(times=1)
    for name in "ABC":
        await queue.add(name, group_id="g", backoff=0.05)
    async with Worker(queue, handler, concurrency=3):
        assert await queue.wait_for_empty(10)
    assert handler.seen == ["A", "A", "B", "B", "C", "C"]


async def test_with_on_retry_yield_the_group_goes_on_meanwhile(make_queue: MakeQueue) -> None:
    queue = make_queue(on_retry="yield")
    handler = Failing(times=1)
    await queue.add("A", group_id="g", backoff=0.3)
    await queue.add("B", group_id="g", on_retry="hold", backoff=0)
    async with Worker(queue, handler, blocking_timeout=30):
        assert await queue.wait_for_empty(10)
    assert handler.seen == ["A", "B", "B", "A"]


async def test_a_backoff_fires_on_time_though_the_worker_that_failed_is_busy_again(queue: Queue) -> None:
    """The worker that knows of the back-off takes another job at once, so an idle worker must learn of the back-off."""
    starts: list[tuple[str, float]] = []
    let_go = asyncio.Event()

    async def handle(job: Job) -> None:
        starts.append((job.data, asyncio.get_running_loop().time()))
        if job.data == "long":
            await let_go.wait()
        elif job.attempt == 1:
            raise ValueError

    workers = [Worker(queue, handle, blocking_timeout=30) for _ in range(2)]
    async with workers[0], workers[1]:
        await eventually(lambda: all(w.get_worker_metrics().advances for w in workers), "both are idle")
        fails = {"data": "fails", "group_id": "g", "backoff": 0.5, "on_retry": "yield"}
        await queue.add_many([fails, {"data": "long", "group_id": "g"}])
        await eventually(lambda: len(starts) == 2, "the worker that failed is busy again")
        await queue.set_group_concurrency("g", 2)
        await eventually(lambda: len(starts) == 3, "the retry ran", timeout=5)
        let_go.set()
        assert await queue.wait_for_empty(10)
    assert [name for name, _ in starts] == ["fails", "long", "fails"]
    assert 0.499 <= starts[2][1] - starts[0][1] < 2


async def test_one_failure_is_recorded_per_attempt_and_only_the_last_is_final(queue: Queue) -> None:
    job = await queue.add(None, max_attempts=3, backoff=0)
    worker = Worker(queue, Failing(times=3))
    heard = Listener(worker, "retrying", "failed", "completed")
    await worker.run(burst=True)
    failures = await queue.get_failures()
    assert [(f.job_id, f.attempt, f.error, f.final) for f in failures] == [
        (job.id, 3, "ValueError: attempt 3", True),
        (job.id, 2, "ValueError: attempt 2", False),
        (job.id, 1, "ValueError: attempt 1", False),
    ]
    assert heard.names() == ["retrying", "retrying", "failed"]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_on_error_is_called_for_every_failed_attempt_and_may_fail_itself(
    queue: Queue, asynchronous: bool
) -> None:
    told: list[tuple[str, int]] = []

    def note(error: BaseException, job: Job | None) -> None:
        assert job is not None
        told.append((str(error), job.attempt))
        raise RuntimeError("on_error is broken too")

    async def note_later(error: BaseException, job: Job | None) -> None:
        note(error, job)

    await queue.add(None, max_attempts=2, backoff=0)
    worker = Worker(queue, Failing(times=9), on_error=note_later if asynchronous else note)
    await worker.run(burst=True)
    assert [text for text, _ in told] == ["attempt 1", "attempt 2"]
    assert worker.get_worker_metrics().failed == 1
