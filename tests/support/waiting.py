"""Bounded waiting on a condition: the only way a test may let time pass."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

STEP = 0.01


def wait_until(predicate: Callable[[], object], description: str, timeout: float = 10) -> None:
    """Return as soon as the predicate is true; fail with the description after timeout seconds."""
    deadline = time.monotonic() + timeout
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {description}")
        time.sleep(STEP)


async def eventually(
    predicate: Callable[[], object | Awaitable[object]], description: str, timeout: float = 10
) -> None:
    """Like `wait_until` without blocking the event loop; the predicate may be async."""
    deadline = time.monotonic() + timeout
    while not await _value(predicate):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {description}")
        await asyncio.sleep(STEP)


async def _value(predicate: Callable[[], object | Awaitable[object]]) -> object:
    answer = predicate()
    return await answer if inspect.isawaitable(answer) else answer
