"""A coroutine that runs in a separate context awaits, raises, is cancelled and is closed like any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

import pytest

from groupmq.runtime.tasks import Waiting, run_to_first_yield, start_in_context

T = TypeVar("T")
var: ContextVar[str] = ContextVar("var", default="outer")


async def run_in_context(context: Context, called: Coroutine[Any, Any, T]) -> T:
    value = start_in_context(context, called)
    return await value if isinstance(value, Waiting) else value


async def test_what_it_sets_stays_in_its_context_at_every_step() -> None:
    context, seen = copy_context(), []

    async def work() -> str:
        seen.append(var.get())
        var.set("inner")
        await asyncio.sleep(0)
        seen.append(var.get())
        await asyncio.sleep(0.001)
        seen.append(var.get())
        return "done"

    assert await run_in_context(context, work()) == "done"
    assert seen == ["outer", "inner", "inner"]
    assert (var.get(), context[var]) == ("outer", "inner")


async def test_one_that_never_waits_returns_at_once_in_the_same_task() -> None:
    tasks = []

    async def work() -> int:
        tasks.append(asyncio.current_task())
        return 7

    iterations: list[int] = []
    asyncio.get_running_loop().call_soon(iterations.append, 1)
    assert start_in_context(copy_context(), work()) == 7
    assert (tasks, iterations) == ([asyncio.current_task()], [])


async def test_values_reach_it() -> None:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, "value")

    async def work() -> str:
        return str(await future)

    assert await run_in_context(copy_context(), work()) == "value"


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_what_it_raises_is_raised(error: type[BaseException], waits: bool) -> None:
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise error("boom")

    with pytest.raises(error, match="boom"):
        await run_in_context(copy_context(), work())


async def test_an_error_of_what_it_awaits_is_thrown_into_it_and_it_may_go_on() -> None:
    async def broken() -> None:
        await asyncio.sleep(0)
        raise ValueError("boom")

    async def work() -> str:
        try:
            await broken()
        except ValueError:
            await asyncio.sleep(0)
            return var.get()
        return "no error"

    context = copy_context()
    context.run(var.set, "inner")
    assert await run_in_context(context, work()) == "inner"


async def test_a_cancellation_is_thrown_into_it_in_its_context() -> None:
    seen, waits = [], asyncio.Event()

    async def work() -> None:
        var.set("inner")
        waits.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append(var.get())
            raise

    async def outer() -> None:
        await run_in_context(copy_context(), work())

    task = asyncio.create_task(outer())
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["inner"]


async def test_one_that_swallows_a_cancellation_goes_on() -> None:
    waits = asyncio.Event()

    async def work() -> str:
        waits.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "went on"

    async def outer() -> str:
        return await run_in_context(copy_context(), work())

    task = asyncio.create_task(outer())
    await waits.wait()
    task.cancel()
    assert await task == "went on"


async def test_it_is_closed_with_what_awaits_it_in_its_context() -> None:
    seen = []

    async def work() -> None:
        var.set("inner")
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(var.get())

    waiting = start_in_context(copy_context(), work())
    assert isinstance(waiting, Waiting)
    steps = waiting.__await__()
    next(steps)
    steps.close()
    assert seen == ["inner"]


class Pause:
    """Something to await that takes one step of the loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def test_a_generator_begins_outside_of_a_coroutine() -> None:
    steps: list[str] = []

    async def keep() -> AsyncGenerator[None, None]:
        steps.append("began")
        try:
            yield
        finally:
            steps.append("ended")

    kept = keep()
    run_to_first_yield(kept)
    assert steps == ["began"]

    async def close() -> None:
        await kept.aclose()

    asyncio.run(close())
    assert steps == ["began", "ended"]


def test_a_generator_that_awaits_before_it_yields_is_refused() -> None:
    async def waits() -> AsyncGenerator[None, None]:
        await Pause()
        yield

    with pytest.raises(RuntimeError, match="before it yields"):
        run_to_first_yield(waits())
