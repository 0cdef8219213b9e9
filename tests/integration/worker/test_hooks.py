"""on_startup and on_shutdown: awaited before the first job and after the last; job.context in between."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from groupmq import ConfigurationError, ConnectionLost, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.waiting import eventually
from tests.support.workers import Listener


class Life:
    """Hooks and a handler that record the order in which they are called."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def start(self) -> dict[str, int]:
        self.seen.append("up")
        return {"pool": 7}

    async def stop(self, context: Any) -> None:
        self.seen.append(("down", context))

    async def handle(self, job: Job) -> None:
        self.seen.append(job.context)


async def test_the_hooks_stand_around_all_jobs_and_the_handler_reads_what_the_first_returned(queue: Queue) -> None:
    await queue.add(1)
    await queue.add(2)
    life = Life()
    await Worker(queue, life.handle, on_startup=life.start, on_shutdown=life.stop).run(burst=True)
    assert life.seen == ["up", {"pool": 7}, {"pool": 7}, ("down", {"pool": 7})]


async def test_def_handlers_and_batches_have_the_context_too(queue: Queue) -> None:
    await queue.add(1)
    seen: list[Any] = []
    await Worker(queue, lambda job: seen.append(job.context), on_startup=lambda: "sync").run(burst=True)
    await queue.add_many([{"data": n, "group_id": "g"} for n in range(2)])
    handle = lambda jobs: seen.extend(job.context for job in jobs)  # noqa: E731
    await Worker(queue, handle, on_startup=lambda: "batch", batch=2).run(burst=True)
    assert seen == ["sync", "batch", "batch"]


async def test_without_a_startup_there_is_no_context(queue: Queue) -> None:
    await queue.add(1)
    life = Life()
    await Worker(queue, life.handle).run(burst=True)
    assert life.seen == [None]


@pytest.mark.parametrize("error", [RuntimeError("no database"), ConnectionLost("no database")])
@pytest.mark.parametrize("how", ["run", "start"])
async def test_a_startup_that_raises_ends_the_worker_with_that_error_and_takes_no_job(
    queue: Queue, how: str, error: Exception
) -> None:
    """This includes an error that would be retried if it came from the server of the queue."""
    job = await queue.add(1)
    life = Life()
    calls = 0

    async def broken() -> None:
        nonlocal calls
        calls += 1
        raise error

    worker = Worker(queue, life.handle, on_startup=broken, on_shutdown=life.stop)
    async with asyncio.timeout(5):
        with pytest.raises(type(error), match="no database") as raised:
            await getattr(worker, how)()
    assert raised.value is error
    assert (calls, life.seen, worker.is_closed(), await job.get_state()) == (1, [], True, "waiting")


async def test_the_first_job_waits_for_the_startup(queue: Queue) -> None:
    await queue.add(1)
    entered, gate, life = asyncio.Event(), asyncio.Event(), Life()

    async def start() -> str:
        entered.set()
        await gate.wait()
        life.seen.append("up")
        return "context"

    worker = Worker(queue, life.handle, on_startup=start)
    ready = Listener(worker, "ready")
    running = asyncio.create_task(worker.run(burst=True))
    await asyncio.wait_for(entered.wait(), 5)
    await queue.get_job_counts()  # a round trip to the server, in which a worker that does not wait begins to take jobs
    assert (life.seen, ready.names(), worker.get_worker_metrics().advances) == ([], [], 0)
    gate.set()
    await running
    assert (life.seen, ready.names()) == (["up", "context"], ["ready"])


async def test_the_shutdown_comes_after_jobs_that_were_running_when_the_worker_was_closed(queue: Queue) -> None:
    gate, seen = asyncio.Event(), []

    async def handle(job: Job) -> None:
        seen.append("began")
        await gate.wait()
        seen.append("ended")

    worker = Worker(queue, handle, on_shutdown=lambda: seen.append("down"))
    async with worker:
        await queue.add(1)
        await eventually(lambda: seen, "the job runs")
        closing = asyncio.create_task(worker.close())
        await asyncio.sleep(0)
        gate.set()
        await closing
    assert seen == ["began", "ended", "down"]


async def test_a_worker_that_is_closed_during_its_startup_shuts_down(queue: Queue) -> None:
    life, gate = Life(), asyncio.Event()

    async def start() -> str:
        life.seen.append("up")
        await gate.wait()
        return "context"

    worker = Worker(queue, life.handle, on_startup=start, on_shutdown=life.stop)
    running = asyncio.create_task(worker.run())
    await eventually(lambda: life.seen, "the startup runs")
    await worker.close()
    gate.set()
    await running
    assert life.seen == ["up", ("down", "context")]


@pytest.mark.parametrize("kind", ["raises", "hangs"])
async def test_a_shutdown_that_fails_is_logged_and_the_worker_closes_all_the_same(
    queue: Queue, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def shutdown() -> None:
        if kind == "raises":
            raise ValueError("boom")
        await asyncio.Event().wait()

    worker = Worker(queue, Life().handle, on_shutdown=shutdown)
    with caplog.at_level(logging.ERROR, "groupmq.worker"):
        async with asyncio.timeout(5):
            await worker.start()
            await worker.close(timeout=0)
    assert worker.is_closed()
    text = "on_shutdown raised ValueError: boom" if kind == "raises" else "on_shutdown did not end within"
    assert text in caplog.text


async def test_a_worker_made_by_process_whose_startup_raises_is_logged(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue = make_queue()

    async def broken() -> None:
        raise RuntimeError("no database")

    with caplog.at_level(logging.ERROR):
        queue.process(Life().handle, on_startup=broken)
        await eventually(lambda: "no database" in caplog.text, "the error is logged")


@pytest.mark.parametrize(
    "hooks", [{"on_startup": 3}, {"on_startup": lambda a: a}, {"on_shutdown": "x"}, {"on_shutdown": lambda a, b: a}]
)
async def test_hooks_that_cannot_be_called_are_refused(queue: Queue, hooks: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(hooks))}: expected a callable"):
        Worker(queue, Life().handle, **hooks)


async def test_a_worker_is_alive_until_its_shutdown_has_ended(queue: Queue) -> None:
    """A liveness probe must not end a process in the middle of its clean-up."""
    seen: list[bool] = []
    worker = Worker(queue, Life().handle, on_shutdown=lambda: seen.append(worker.health().alive))
    async with worker:
        pass
    assert seen == [True]
    assert not worker.health().alive
