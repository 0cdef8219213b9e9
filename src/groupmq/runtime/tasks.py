"""Additions to asyncio's tasks: cancelling until they end, never losing a cancellation, a context per coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterable
from contextvars import Context
from typing import Any, Generic, TypeVar, cast

A = TypeVar("A")
T = TypeVar("T")


async def end_tasks(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks and wait until they have ended."""
    left = {task for task in tasks if task is not None}
    while left:
        # Repeatedly, because code that the task awaits may swallow a cancellation.
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.1)


async def await_honouring_cancel(call: Awaitable[T]) -> T:
    """Await a call of the client library. A cancellation that comes meanwhile is raised, even if the call returns.

    The library sends with `wait_for`, which on Python 3.11 swallows a cancellation that comes when the sending is done.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        return await call
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


async def awaited(what: Awaitable[T]) -> T:
    """A coroutine that awaits this: `asyncio.run` and its relatives take no other awaitable."""
    return await what


def run_to_first_yield(generator: AsyncGenerator[Any, None]) -> None:
    """Begin an asynchronous generator outside of a coroutine. It must yield before it awaits anything."""
    try:
        generator.asend(None).send(None)
    except StopIteration:
        return  # this is how the step of a generator that has yielded ends
    raise RuntimeError("the generator awaits something before it yields")


class Waiting(Generic[T]):
    """A coroutine that waits after its first step in a context. Awaiting this runs the other steps in that context."""

    __slots__ = ("_awaited", "_called", "_context")

    def __init__(self, context: Context, called: Coroutine[Any, Any, T], awaited: Any) -> None:
        self._context = context
        self._called = called
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        context, called, awaited = self._context, self._called, self._awaited
        while True:
            step: Callable[[Any], Any] = called.send
            given: Any = None
            try:
                given = yield awaited
            except GeneratorExit:
                context.run(called.close)
                raise
            except BaseException as error:
                step, given = called.throw, error
            try:
                awaited = context.run(step, given)
            except StopIteration as end:
                returned: T = end.value
                return returned


def as_coroutine_function(called: Callable[[A], Awaitable[T]]) -> Callable[[A], Coroutine[Any, Any, T]]:
    """The same function as an `async def`: calling it runs none of its code yet."""
    if getattr(getattr(called, "__code__", None), "co_flags", 0) & inspect.CO_COROUTINE:
        return cast("Callable[[A], Coroutine[Any, Any, T]]", called)

    async def call(given: A) -> T:
        return await called(given)

    return call


def start_in_context(context: Context, called: Coroutine[Any, Any, T]) -> T | Waiting[T]:
    """Run a coroutine in `context` until it waits. The rest of the task does not see variables that it sets there.

    Returns its value if it has ended, which spares short coroutines an `await`. A task has one context for its whole
    life, and a task for each coroutine would cost more than most coroutines here.
    """
    try:
        awaited = context.run(called.send, None)
    except StopIteration as end:
        returned: T = end.value
        return returned
    return Waiting(context, called, awaited)
