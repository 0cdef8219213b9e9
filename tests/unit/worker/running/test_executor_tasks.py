"""The jobs of a row share a task: whatever one job does to it, or to its context, does not affect the next."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from groupmq.client.job import Job
from groupmq.worker.fetching.prefetch import Prefetch
from groupmq.worker.running import executor
from groupmq.worker.running.executor import Executor
from tests.unit.worker.running.test_executor_rows import POLICY, Harness

held: ContextVar[str] = ContextVar("held", default="nothing")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep jobs from being given back because the machine is slow."""
    monkeypatch.setattr(executor, "PATIENCE", 60.0)
    monkeypatch.setattr(executor, "ROW_PATIENCE", 60.0)


def harness_with(handle: Callable[[Job], Awaitable[Any]]) -> Harness:
    harness = Harness()
    harness.executor = Executor(handle, POLICY, harness, Prefetch("auto"))
    return harness


async def test_what_a_handler_puts_into_its_context_stays_there_while_it_waits_and_ends_with_it() -> None:
    found: list[str] = []

    async def look() -> None:
        found.append(held.get())

    async def handle(job: Job) -> None:
        found.append(held.get())
        held.set(job.id)
        await asyncio.sleep(0)
        await asyncio.create_task(look())
        await asyncio.sleep(0.001)
        found.append(held.get())

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c completed")
    assert found == ["nothing", "a", "a", "nothing", "b", "b", "nothing", "c", "c"]
    assert held.get() == "nothing"


async def test_jobs_of_a_row_that_wait_for_nothing_run_in_one_task() -> None:
    tasks = []

    async def handle(job: Job) -> None:
        tasks.append(asyncio.current_task())

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c completed")
    assert len(tasks) == 3
    assert len(set(tasks)) == 1


@pytest.mark.parametrize("times", [1, 2])
async def test_a_handler_that_cancels_its_own_task_and_returns_harms_only_itself(times: int) -> None:
    """Otherwise the cancellation would be raised in the next handler."""

    async def handle(job: Job) -> None:
        if job.id == "b":
            for _ in range(times):
                asyncio.current_task().cancel()  # type: ignore[union-attr]
        else:
            await asyncio.sleep(0)

    harness = harness_with(handle)
    harness.start("abcd")
    await harness.hears("d completed")
    assert harness.said[1::2] == [f"{job} completed" for job in "abcd"]
    assert harness.nothing_left


async def test_a_handler_that_is_cancelled_from_elsewhere_and_goes_on_harms_only_itself() -> None:
    async def handle(job: Job) -> None:
        if job.id == "a":
            asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)  # type: ignore[union-attr]
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return
        await asyncio.sleep(0)

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c completed")
    assert harness.nothing_left


async def test_a_time_limit_that_a_handler_sets_itself_is_its_own() -> None:
    async def handle(job: Job) -> None:
        if job.id == "b":
            try:
                async with asyncio.timeout(0.002):
                    await asyncio.sleep(60)
            except TimeoutError:
                return
        async with asyncio.timeout(60):
            await asyncio.sleep(0)

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c completed")
    assert harness.said[1::2] == ["a completed", "b completed", "c completed"]


async def test_an_error_comes_out_of_a_later_job_as_it_went_in() -> None:
    async def handle(job: Job) -> None:
        if job.id == "c":
            await asyncio.sleep(0)
            raise ValueError("no")

    harness = harness_with(handle)
    harness.start("abcd")
    await harness.hears("d released")
    assert harness.said[-3:] == ["c starts", "c retrying", "d released"]


@pytest.mark.parametrize("job_id", ["a", "b"])
async def test_a_handler_that_raises_generator_exit_ends_its_row_and_nobody_complains(
    job_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(job: Job) -> None:
        if job.id == job_id:
            raise GeneratorExit

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c released")
    assert f"{job_id} retrying" in harness.said
    assert harness.nothing_left
    gc.collect()
    assert caplog.messages == []


async def test_anything_that_can_be_awaited_will_do() -> None:
    async def later() -> str:
        return "done"

    def handle(job: Job) -> Awaitable[str]:
        return asyncio.ensure_future(later())

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c completed")
    assert harness.nothing_left


async def test_what_a_handler_does_when_it_is_called_is_its_own_as_well() -> None:
    """The handler is not an `async def`, so calling it already runs its code."""
    found: list[str] = []

    def handle(job: Job) -> Awaitable[Any]:
        found.append(held.get())
        held.set(job.id)
        if job.id == "c":
            raise ValueError("c")
        return asyncio.sleep(0, job.id)

    harness = harness_with(handle)
    harness.start("abcd")
    await harness.hears("d released")
    assert found == ["nothing"] * 3
    assert harness.said[-3:] == ["c starts", "c retrying", "d released"]


async def test_a_stop_iteration_of_a_handler_is_an_error_and_no_result() -> None:
    async def handle(job: Job) -> None:
        if job.id == "b":
            raise StopIteration("all is well")

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("c released")
    assert harness.said[-3:] == ["b starts", "b retrying", "c released"]


async def test_a_row_that_keeps_the_loop_busy_lets_others_have_their_turn() -> None:
    order: list[str] = []

    async def handle(job: Job) -> None:
        order.append(job.id)
        time.sleep(0.0015)  # noqa: ASYNC251 - a handler that computes

    harness = harness_with(handle)
    harness.start("abcd")
    asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(order.append, "another"))
    await harness.hears("d completed")
    assert order.index("another") < order.index("d")


async def test_one_that_is_stopped_before_it_has_begun_never_runs() -> None:
    called: list[str] = []

    async def handle(job: Job) -> None:
        called.append(job.id)
        time.sleep(0.0015)  # noqa: ASYNC251
        if job.id == "a":
            asyncio.get_running_loop().call_soon(lambda: harness.executor.stop(harness.executor.runs[2], "closing"))

    harness = harness_with(handle)
    harness.start("abc")
    await harness.hears("b released")
    assert called == ["a"]
    assert harness.said == ["a starts", "a completed", "c released", "b released"]
    assert harness.nothing_left


async def test_a_thrown_away_worker_closes_its_handlers_in_their_contexts() -> None:
    found: list[str] = []

    async def handle(job: Job) -> None:
        held.set(job.id)
        try:
            if job.id == "b":
                await asyncio.Event().wait()
        finally:
            found.append(held.get())

    harness = harness_with(handle)
    harness.start("ab")
    await harness.hears("b starts")
    await asyncio.sleep(0)
    work = harness.executor.runs[2].task.get_coro()  # type: ignore[union-attr]
    work.close()  # the interpreter does this when it exits
    assert found == ["a", "b"]
    harness.executor.abandon_all()
