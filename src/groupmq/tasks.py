"""What asyncio's tasks do not do by themselves: end for sure, heed a cancellation, change their context."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextvars import Context
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def end_tasks(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel tasks and wait until they have ended."""
    left = {task for task in tasks if task is not None}
    while left:
        # Again and again: whatever a handler of ours awaits may swallow a cancellation.
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.1)


async def heedful(call: Awaitable[T]) -> T:
    """Await a call of the client library. A cancellation that came meanwhile counts, whatever the call says.

    The library sends with `wait_for`, which on Python 3.11 swallows one that comes when the sending is done already.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        return await call
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


@coroutine
def going_on(context: Context, called: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine whose first step, `context.run(called.send, None)`, has yielded `awaited`.

    In a context of its own: what it sets there, nobody else in this task sees. Most never come that far.
    """
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
