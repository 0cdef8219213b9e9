"""The shape of bee-queue: `create_job` chains, `save`, `save_all`, and `process` as a call and as a decorator."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from groupmq import ConfigurationError, Job, Queue, Worker
from tests.conftest import MakeQueue
from tests.support.listening import Heard
from tests.support.waiting import eventually
from tests.support.workers import Recorder


async def double(job: Job) -> Any:
    return 2 * job.data


async def test_a_job_is_described_step_by_step_and_saved(queue: Queue) -> None:
    draft = queue.create_job({"x": 1}).group("g").retries(2).timeout(5).backoff(0.5).priority(3).order(-7).set_id("me")
    assert await queue.get_job("me") is None, "nothing is written before save"
    job = await draft.save()
    await job.refresh()
    assert (job.id, job.group_id, job.data, job.max_attempts, job.timeout) == ("me", "g", {"x": 1}, 3, 5.0)
    assert (job.priority, job.order_ms, job.state) == (3, -7, "waiting")
    later = await queue.create_job(2).delay(60).save()
    assert await later.get_state() == "delayed"


async def test_many_drafts_are_saved_at_once_in_order(queue: Queue) -> None:
    drafts = [queue.create_job(n).group("g").set_id(f"j{n}") for n in range(50)]
    jobs = await queue.save_all(drafts)
    assert [job.id for job in jobs] == [f"j{n}" for n in range(50)]
    recorder = Recorder()
    await Worker(queue, recorder).run(burst=True)
    assert recorder.started == list(range(50))
    assert await queue.save_all([]) == []


async def test_listeners_of_a_saved_job_get_its_progress_and_its_end(queue: Queue) -> None:
    async def handle(job: Job) -> str:
        await job.report_progress(50)
        return "sum"

    heard = Heard()
    job = await queue.create_job(1).save()
    job.on("progress", heard.append)
    job.on("completed", heard.append)
    await queue.process(handle)
    await heard.has("completed")
    assert [(event.kind, event.progress, event.result) for event in heard] == [
        ("progress", 50, None),
        ("completed", None, "sum"),
    ]


async def test_process_as_a_call_starts_a_worker_that_closes_with_the_queue(make_queue: MakeQueue) -> None:
    queue = make_queue()
    recorder = Recorder()
    recorder.gate = asyncio.Event()
    worker = await queue.process(recorder, concurrency=10, name="bee")
    assert (worker.name, worker.concurrency) == ("bee", 10)
    await queue.add_many({"data": n, "group_id": f"g{n}"} for n in range(12))
    await eventually(lambda: len(recorder.started) == 10, "ten run at once")
    recorder.gate.set()
    assert await queue.wait_for_empty(5)
    await queue.close()
    assert worker.is_closed()


async def test_concurrency_may_be_the_second_argument(queue: Queue) -> None:
    assert (await queue.process(double, 3)).concurrency == 3


async def test_process_as_a_decorator_starts_at_once_in_a_running_loop(queue: Queue) -> None:
    @queue.process(concurrency=10)
    async def handle(job: Job) -> int:
        return int(job.data) + 1

    job = await queue.add(1)
    assert await job.result(5) == 2
    assert await handle(job) == 2, "the name still refers to the handler"


async def test_several_handlers_may_be_decorated(queue: Queue) -> None:
    seen: set[str] = set()
    both = asyncio.Barrier(2)

    @queue.process()
    async def one(job: Job) -> None:
        seen.add("one")
        await both.wait()

    @queue.process()
    async def two(job: Job) -> None:
        seen.add("two")
        await both.wait()

    jobs = await queue.add_many({"data": n} for n in range(2))
    await asyncio.gather(*(job.result(5) for job in jobs))
    assert seen == {"one", "two"}


def test_without_a_loop_a_decorated_handler_starts_with_the_block_of_its_queue(url: str) -> None:
    queue = Queue("module", url)

    @queue.process(concurrency=2)
    async def handle(job: Job) -> int:
        return 2 * int(job.data)

    async def main() -> Any:
        async with queue:
            return await (await queue.add(21)).result(5)

    assert asyncio.run(main()) == 42


def test_without_a_loop_a_decorated_handler_starts_with_work(url: str) -> None:
    queue = Queue("module", url)
    seen: list[Any] = []

    @queue.process()
    def handle(job: Job) -> None:
        seen.append(job.data)

    async def main() -> None:
        working = asyncio.create_task(queue.work())
        job = await queue.add("x")
        await job.result(5)
        await queue.close()
        async with asyncio.timeout(5):
            await working

    asyncio.run(main())
    assert seen == ["x"]


async def test_work_ends_when_it_is_cancelled_and_gives_back_what_runs(make_queue: MakeQueue) -> None:
    queue, other = make_queue("cancelled"), make_queue("cancelled")
    recorder = Recorder()
    recorder.gate = asyncio.Event()
    queue.process()(recorder)
    job = await other.add("x")
    working = asyncio.create_task(queue.work())
    await eventually(lambda: recorder.started, "it runs")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await (await other.require_job(job.id)).get_state() == "waiting"


async def test_a_decorated_worker_that_cannot_start_says_so_and_work_raises_it(
    make_queue: MakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    await make_queue("disagree", group_concurrency=2).add(1)
    queue = make_queue("disagree", group_concurrency=3)
    with caplog.at_level(logging.ERROR, "groupmq.queue"):

        @queue.process(name="odd")
        async def handle(job: Job) -> None:
            raise AssertionError("never")

        await eventually(lambda: caplog.records, "it is logged")
    assert "worker odd of queue disagree could not be started" in caplog.text
    assert "group_concurrency" in caplog.text
    with pytest.raises(ConfigurationError, match="group_concurrency"):
        async with asyncio.timeout(5):
            await queue.work()


@pytest.mark.parametrize("how", ["work", "block"])
def test_without_a_loop_a_decorated_worker_that_cannot_start_raises_it_later(url: str, how: str) -> None:
    queue = Queue("disagree", url, group_concurrency=3)

    @queue.process()
    def handle(job: Job) -> None:
        raise AssertionError("never")

    async def main() -> None:
        async with Queue("disagree", url, group_concurrency=2) as other:
            await other.add(1)
        try:
            async with asyncio.timeout(5):
                if how == "work":
                    await queue.work()
                async with queue:
                    pass
        finally:
            await queue.close()

    with pytest.raises(ConfigurationError, match="group_concurrency"):
        asyncio.run(main())


async def test_what_cannot_work_is_refused_at_once(queue: Queue) -> None:
    with pytest.raises(ConfigurationError, match="handler: expected a callable"):
        queue.process("handle")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="concurrency"):
        await queue.process(double, concurrency=0)
    with pytest.raises(ConfigurationError, match="concurrency"):
        queue.process(concurrency=0)(double)
    with pytest.raises(ConfigurationError, match="handler: process\\(\\) needs one"):
        await queue.process(concurrency=2)
