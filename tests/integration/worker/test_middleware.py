"""Middleware on queues and workers: what it sees, what it adds, and what happens if it raises."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from groupmq import ConfigurationError, Every, Job, JobFailed, Queue, Worker
from groupmq.core.ids import new_id
from groupmq.sync import Queue as SyncQueue
from tests.conftest import MakeQueue
from tests.support.waiting import eventually

trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")


class Tracing:
    """Puts the trace of the producer into the job, and continues it where the job runs."""

    def adding(self, headers: dict[str, str]) -> None:
        headers["trace"] = trace.get()

    def before(self, job: Job) -> None:
        trace.set(job.headers.get("trace", "lost"))


class Noting:
    """Records what happens around a handler, and where."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes
        self.threads: set[int] = set()

    async def before(self, job: Job) -> None:
        await asyncio.sleep(0)
        self.threads.add(threading.get_ident())
        self.notes.append(f"{self.name} before {job.attempt}")

    def after(self, job: Job, result: Any) -> None:
        self.notes.append(f"{self.name} after {result}")

    async def error(self, job: Job, error: BaseException) -> None:
        self.notes.append(f"{self.name} error {type(error).__name__}")


async def returns_trace(job: Job) -> str:
    return trace.get()


def returns_trace_from_a_thread(job: Job) -> str:
    return trace.get()


@pytest.mark.parametrize("handler", [returns_trace, returns_trace_from_a_thread])
async def test_headers_travel_with_the_job_and_context_variables_reach_the_handler(
    make_queue: MakeQueue, handler: Any
) -> None:
    queue = make_queue(middleware=[Tracing()])
    trace.set("mine")
    job = await queue.add(1)
    trace.set("another")
    async with Worker(queue, handler, middleware=[Tracing()]):
        assert await job.result(5) == "mine"
    found = await queue.require_job(job.id)
    assert found.headers == {"trace": "mine"}
    assert found.to_dict()["headers"] == {"trace": "mine"}
    assert trace.get() == "another", "a context variable that a run sets must not leave that run"


@pytest.mark.parametrize("how", ["add", "add_many", "create_job", "save_all", "repeat"])
async def test_however_a_job_is_added_it_has_its_headers(make_queue: MakeQueue, how: str) -> None:
    queue = make_queue(middleware=[Tracing()])
    trace.set(f"by {how}")
    match how:
        case "add":
            await queue.add(1)
        case "add_many":
            await queue.add_many([{"data": 1}, {"data": 2}])
        case "create_job":
            await queue.create_job(1).save()
        case "save_all":
            await queue.save_all([queue.create_job(1)])
        case "repeat":
            await queue.add(1, group_id="g", repeat=Every(0.05))
    trace.set("none")
    seen: list[dict[str, str]] = []

    async def handle(job: Job) -> None:
        seen.append(job.headers)

    async with Worker(queue, handle):
        await eventually(lambda: seen, "it has run")
        if how == "repeat":
            assert await queue.remove_repeating_job("g", Every(0.05))
        assert await queue.wait_for_empty(5)
    assert all(headers == {"trace": f"by {how}"} for headers in seen)


def test_the_blocking_client_adds_headers_too(url: str) -> None:
    trace.set("blocking")
    with SyncQueue(f"q-{new_id()}", url, middleware=[Tracing()]) as queue:
        jobs = [queue.add(1), *queue.add_many([{"data": 2}]), *queue.save_all([queue.create_job(3)])]
        assert [queue.require_job(job.id).headers for job in jobs] == [{"trace": "blocking"}] * 3


async def test_without_middleware_there_are_no_headers(queue: Queue) -> None:
    job = await queue.add(1)
    assert job.headers == (await queue.require_job(job.id)).headers == {}


async def test_hooks_run_around_each_attempt_in_order_and_back(queue: Queue) -> None:
    notes: list[str] = []

    async def handle(job: Job) -> str:
        notes.append(f"handler {job.attempt}")
        if job.attempt == 1:
            raise ValueError("once")
        return "done"

    job = await queue.add(1, backoff=0.01)
    chain = [Noting("outer", notes), Noting("inner", notes)]
    async with Worker(queue, handle, middleware=chain):
        assert await job.result(5) == "done"
    assert notes == [
        "outer before 1",
        "inner before 1",
        "handler 1",
        "inner error ValueError",
        "outer error ValueError",
        "outer before 2",
        "inner before 2",
        "handler 2",
        "inner after done",
        "outer after done",
    ]
    assert chain[0].threads == {threading.get_ident()}


async def test_what_before_raises_fails_the_attempt_like_an_error_of_the_handler(queue: Queue) -> None:
    ran: list[Any] = []

    class Guard:
        def before(self, job: Job) -> None:
            if job.attempt == 1:
                raise PermissionError("not yet")

    job = await queue.add(1, backoff=0.01)
    async with Worker(queue, lambda job: ran.append(job.attempt), middleware=[Guard()]):
        await job.result(5)
        strict = await queue.add(2, max_attempts=1)
        with pytest.raises(JobFailed, match="PermissionError: not yet"):
            await strict.result(5)
    assert ran == [2]
    assert (await job.refresh()).attempts_made == 2


async def test_a_cancelled_run_is_an_error_to_its_middleware(queue: Queue) -> None:
    notes: list[str] = []
    started = asyncio.Event()

    async def handle(job: Job) -> None:
        started.set()
        await asyncio.Event().wait()

    async with Worker(queue, handle, middleware=[Noting("m", notes)]):
        job = await queue.add(1)
        await started.wait()
        await job.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            await job.result(5)
    assert notes == ["m before 1", "m error CancelledError"]


@pytest.mark.parametrize("hook", ["after", "error"])
async def test_a_hook_that_raises_fails_the_attempt_and_the_worker_goes_on(queue: Queue, hook: str) -> None:
    class Broken:
        def after(self, job: Job, result: Any) -> None:
            if hook == "after":
                raise KeyError("broken after")

        def error(self, job: Job, error: BaseException) -> None:
            if hook == "error":
                raise KeyError("broken error")

    async def handle(job: Job) -> None:
        if hook == "error":
            raise ValueError("mine")

    async with Worker(queue, handle, middleware=[Broken()]):
        for _ in range(2):
            job = await queue.add(1, max_attempts=1)
            with pytest.raises(JobFailed):
                await job.result(5)


def test_what_is_no_middleware_is_refused(url: str) -> None:
    for bad in ("text", [object()], 5):
        with pytest.raises(ConfigurationError, match="middleware: expected"):
            Queue("q", url, middleware=bad)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="middleware: expected"):
            Worker(Queue("q", url), returns_trace, middleware=bad)  # type: ignore[arg-type]


async def test_headers_that_are_no_text_are_refused_and_nothing_is_added(make_queue: MakeQueue) -> None:
    class Wrong:
        def adding(self, headers: dict[str, Any]) -> None:
            headers["n"] = 5

    queue = make_queue(middleware=[Wrong()])
    with pytest.raises(ConfigurationError, match="header"):
        await queue.add(1)
    assert (await queue.get_job_counts()).total == 0
