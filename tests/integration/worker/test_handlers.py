"""The forms of handlers, and the values and errors that they may return or raise. The worker survives all of them."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest

from groupmq import ConfigurationError, FailJob, Job, Queue, RetryJob, Worker
from tests.conftest import MakeQueue
from tests.support import handlers
from tests.support.workers import one_kind


async def finished(queue: Queue, job: Job) -> Job:
    found = await queue.get_job(job.id)
    assert found is not None
    return found


async def test_an_async_handler_runs_on_the_workers_own_loop_and_its_value_is_the_result(queue: Queue) -> None:
    loops = []

    async def handle(job: Job) -> dict[str, int]:
        loops.append(asyncio.get_running_loop())
        return {"twice": 2 * job.data}

    job = await queue.add(21)
    await Worker(queue, handle).run(burst=True)
    done = await finished(queue, job)
    assert (done.state, done.return_value, done.attempts_made) == ("completed", {"twice": 42}, 1)
    assert loops == [asyncio.get_running_loop()]


async def test_a_plain_handler_runs_in_a_thread_and_does_not_block_the_loop(queue: Queue) -> None:
    both = threading.Barrier(2, timeout=10)

    def handle(job: Job) -> str:
        both.wait()  # passes only if two handlers run at once, so neither is on the loop
        return threading.current_thread().name

    jobs = [await queue.add(n) for n in range(2)]
    await Worker(queue, handle, concurrency=2, name="threads").run(burst=True)
    names = [(await finished(queue, job)).return_value for job in jobs]
    assert all(name.startswith("threads") for name in names)


async def test_an_object_with_an_async_call_is_an_async_handler(queue: Queue) -> None:
    class Handler:
        async def __call__(self, job: Job) -> int:
            return job.attempt

    job = await queue.add(None)
    await Worker(queue, Handler()).run(burst=True)
    assert (await finished(queue, job)).return_value == 1


@one_kind
async def test_a_process_handler_runs_in_another_process_that_is_used_again(queue: Queue) -> None:
    jobs = [await queue.add(n) for n in (3, 4)]
    await Worker(queue, handlers.square, executor="process").run(burst=True)
    values = [(await finished(queue, job)).return_value for job in jobs]
    assert [value["square"] for value in values] == [9, 16]
    assert {value["pid"] for value in values} - {os.getpid()}
    assert len({value["pid"] for value in values}) == 1


@one_kind
async def test_a_process_handler_can_fail_retry_and_raise_like_any_other(queue: Queue) -> None:
    words = ("fail", "retry", "raise", "system-exit", "unsendable")
    jobs = {word: await queue.add(word, group_id=word, max_attempts=2, backoff=0) for word in words}
    worker = Worker(queue, handlers.by_word, executor="process", concurrency=2)
    async with worker:
        assert await queue.wait_for_empty(20)
    ended = {word: await finished(queue, job) for word, job in jobs.items()}
    assert {word: (job.state, job.attempts_made) for word, job in ended.items()} == {
        "fail": ("failed", 1),
        "retry": ("completed", 2),
        "raise": ("failed", 2),
        "system-exit": ("failed", 2),
        "unsendable": ("failed", 1),
    }
    assert ended["fail"].failed_reason == "no use"
    assert ended["raise"].failed_reason == "ValueError: broken"
    assert "by_word" in (ended["raise"].stacktrace or "")


@one_kind
async def test_a_process_that_dies_fails_the_attempt_and_the_next_job_gets_a_new_one(queue: Queue) -> None:
    dead = await queue.add("exit", group_id="g", max_attempts=1)
    fine = await queue.add("fine", group_id="g")
    await Worker(queue, handlers.by_word, executor="process").run(burst=True)
    assert (await finished(queue, dead)).state == "failed"
    assert "ended without a result" in ((await finished(queue, dead)).failed_reason or "")
    assert (await finished(queue, fine)).state == "completed"


def test_a_process_handler_must_be_importable_and_plain(url: str) -> None:
    async def make(handler: Any) -> None:
        async with Queue("q", url) as queue:
            Worker(queue, handler, executor="process")

    async def asynchronous(job: Job) -> None: ...

    for handler in (lambda job: None, asynchronous):
        with pytest.raises(ConfigurationError, match=r"handler|executor"):
            asyncio.run(make(handler))


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), asyncio.CancelledError(), SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration(1)],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_whatever_a_handler_raises_the_attempt_fails_and_the_worker_goes_on(
    queue: Queue, error: BaseException, kind: str
) -> None:
    def plain(job: Job) -> str:
        if job.data == "bad":
            raise error
        return "done"

    async def asynchronous(job: Job) -> str:
        return plain(job)

    bad = await queue.add("bad", group_id="g", max_attempts=1)
    good = await queue.add("good", group_id="g")
    worker = Worker(queue, plain if kind == "thread" else asynchronous)
    async with asyncio.timeout(10):
        await worker.run(burst=True)
    assert (await finished(queue, bad)).state == "failed"
    assert (await finished(queue, good)).return_value == "done"
    assert worker.get_worker_metrics().failed == 1


@pytest.mark.parametrize(
    "value", [object(), float, {1: {2: object()}}, "x" * 2000], ids=["object", "type", "in", "big"]
)
async def test_a_value_that_cannot_be_stored_fails_the_job_and_the_worker_lives(
    make_queue: MakeQueue, value: object
) -> None:
    queue = make_queue(max_payload=1000)

    async def handle(job: Job) -> object:
        return value if job.data == "bad" else job.data

    bad = await queue.add("bad", group_id="g")
    good = await queue.add("good", group_id="g")
    await Worker(queue, handle).run(burst=True)
    failed = await finished(queue, bad)
    assert (failed.state, failed.attempts_made) == ("failed", 1)
    assert "return value" in (failed.failed_reason or "")
    assert (await finished(queue, good)).return_value == "good"


async def test_an_error_whose_text_cannot_be_read_harms_nothing(queue: Queue) -> None:
    class Mean(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text for you")

    async def handle(job: Job) -> None:
        raise Mean

    job = await queue.add(None, max_attempts=1)
    await Worker(queue, handle).run(burst=True)
    assert (await finished(queue, job)).state == "failed"


async def test_fail_job_skips_the_attempts_that_remain(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        raise FailJob("bad card")

    job = await queue.add(None, max_attempts=5)
    await Worker(queue, handle).run(burst=True)
    failed = await finished(queue, job)
    assert (failed.state, failed.attempts_made, failed.failed_reason) == ("failed", 1, "bad card")


async def test_retry_job_uses_an_attempt_and_ends_like_any_error_when_none_is_left(queue: Queue) -> None:
    async def handle(job: Job) -> None:
        raise RetryJob("not yet", delay=0)

    job = await queue.add(None, max_attempts=3)
    await Worker(queue, handle).run(burst=True)
    failed = await finished(queue, job)
    assert (failed.state, failed.attempts_made, failed.failed_reason) == ("failed", 3, "not yet")


async def test_a_handler_sees_its_attempt_fence_and_worker(queue: Queue) -> None:
    seen: list[tuple[int, int, str | None, str]] = []
    fences: list[int] = []

    async def handle(job: Job) -> None:
        seen.append((job.attempt, job.attempts_made, job.worker, job.state))
        fences.append(job.fence)
        if job.attempt < 3:
            raise ValueError

    await queue.add(None, group_id="g", backoff=0)
    await Worker(queue, handle, name="me").run(burst=True)
    assert seen == [(1, 0, "me", "active"), (2, 1, "me", "active"), (3, 2, "me", "active")]
    assert fences == sorted(set(fences))


async def test_a_job_stored_with_data_that_cannot_be_decoded_fails_only_itself(make_queue: MakeQueue) -> None:
    class Half:
        def encode(self, value: Any) -> bytes:
            return str(value).encode()

        def decode(self, raw: bytes) -> Any:
            if raw == b"bad":
                raise ValueError("cannot read that")
            return raw.decode()

    queue = make_queue(serializer=Half())
    seen = []

    async def handle(job: Job) -> None:
        seen.append(job.data)

    bad = await queue.add("bad", group_id="g", max_attempts=1)
    await queue.add("good", group_id="g")
    await Worker(queue, handle).run(burst=True)
    assert seen == ["good"]
    assert (await finished(queue, bad)).state == "failed"
