"""Every shape of handler: what returns an awaitable is awaited, and what cannot take a job is refused."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from groupmq import ConfigurationError, Job, Queue, Worker
from tests.support import handlers
from tests.support.waiting import eventually
from tests.support.workers import one_kind


async def double(factor: int, job: Job) -> int:
    await asyncio.sleep(0)
    return factor * int(job.data)


class Later:
    async def __call__(self, job: Job) -> int:
        return await double(2, job)

    def plain(self, job: Job) -> Awaitable[int]:
        return double(2, job)


class Own:
    """An awaitable that is not a coroutine."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __await__(self) -> Any:
        return double(2, self._job).__await__()


SHAPES: list[Callable[[Job], Any]] = [
    partial(double, 2),
    lambda job: double(2, job),
    Later(),
    partial(Later()),
    Later().plain,
    Own,
]


@pytest.mark.parametrize("handler", SHAPES, ids=range(len(SHAPES)))
async def test_what_a_handler_returns_is_awaited(queue: Queue, handler: Callable[[Job], Any]) -> None:
    jobs = await queue.add_many({"data": n, "group_id": "g"} for n in range(5))
    await Worker(queue, handler, concurrency=2).run(burst=True)
    assert [(await queue.require_job(job.id)).return_value for job in jobs] == [0, 2, 4, 6, 8]


async def test_what_the_awaitable_of_a_plain_handler_raises_fails_the_attempt(queue: Queue) -> None:
    async def fail(job: Job) -> None:
        raise ValueError("later")

    job = await queue.add(1, max_attempts=1)
    await Worker(queue, lambda job: fail(job)).run(burst=True)
    assert (await queue.require_job(job.id)).failed_reason == "ValueError: later"


async def test_the_awaitable_of_a_plain_handler_ends_at_the_hard_timeout(queue: Queue) -> None:
    cancelled: list[int] = []

    async def hang(job: Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(job.data)

    # Long enough for the thread to return the coroutine and for the loop to begin it, on a busy machine too.
    job = await queue.add(1, max_attempts=1, timeout=1)
    await Worker(queue, lambda job: hang(job)).run(burst=True)
    assert "ran longer than its timeout" in str((await queue.require_job(job.id)).failed_reason)
    assert cancelled == [1]


@one_kind
async def test_a_coroutine_that_is_returned_after_the_hard_timeout_is_closed(queue: Queue) -> None:
    ended = threading.Event()
    returned: list[Coroutine[Any, Any, None]] = []

    async def never() -> None: ...

    def late(job: Job) -> Coroutine[Any, Any, None]:
        ended.wait(30)
        returned.append(never())
        return returned[0]

    job = await queue.add(1, max_attempts=1, timeout=0.05)
    await Worker(queue, late).run(burst=True)
    assert "ran longer than its timeout" in str((await queue.require_job(job.id)).failed_reason)
    ended.set()
    await eventually(
        lambda: returned and inspect.getcoroutinestate(returned[0]) == inspect.CORO_CLOSED, "the coroutine is closed"
    )


@one_kind
async def test_what_a_handler_in_a_process_returns_is_awaited_there(queue: Queue) -> None:
    job = await queue.add(21)
    await Worker(queue, handlers.later, executor="process").run(burst=True)
    assert (await queue.require_job(job.id)).return_value == 42


NOTHING: Any = None


def no_arguments() -> None: ...
def two_arguments(job: Job, more: int) -> None: ...
def by_keyword(*, job: Job) -> None: ...
async def async_nothing() -> None: ...


@pytest.mark.parametrize(
    "handler", [no_arguments, two_arguments, by_keyword, async_nothing, partial(double, 1, NOTHING)]
)
def test_a_handler_that_cannot_take_one_argument_is_refused_with_its_signature(handler: Any) -> None:
    queue = Queue("orders")
    expected = r"^handler: expected a callable that takes the job as its only positional argument, got \w+\(.*\)$"
    with pytest.raises(ConfigurationError, match=expected):
        Worker(queue, handler)
    with pytest.raises(ConfigurationError, match=expected):
        queue.process(handler)
    with pytest.raises(ConfigurationError, match=expected):
        queue.process()(handler)


@pytest.mark.parametrize(
    "handler",
    [lambda *args: None, lambda job, more=1: None, lambda *args, **kwargs: None, print, max, str, time.sleep, Later()],
    ids=range(8),
)
def test_a_handler_that_can_take_one_argument_or_has_no_signature_is_accepted(handler: Any) -> None:
    Worker(Queue("orders"), handler)
