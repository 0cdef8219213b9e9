"""Stopping runs: the reasons, how long each has been stopping, and cleaning up after a handler that ends late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Literal

StopReason = Literal["timeout", "lease-lost", "closing", "cancelled"]
GRACE = 1.0
"""Seconds a cancelled handler has to end before its slot is taken back without it."""


def holds_group(reason: StopReason | None) -> bool:
    """Whether the group of a run that is stopped for this reason waits until its handler has ended.

    After a timeout, or when the worker closes, its job may run again at once.
    """
    return reason in ("lease-lost", "cancelled")


class StopRequests:
    """Fences of runs that the server wants stopped. Used by the heartbeat thread."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def record(self, fences: Sequence[int]) -> None:
        """Record that the server wants these runs stopped, and no others."""
        now = time.monotonic()
        self._since = {fence: self._since.get(fence, now) for fence in fences}

    def overdue(self, now: float) -> set[int]:
        """Fences of runs that should have stopped by now. A handler that blocks the event loop cannot be cancelled."""
        return {fence for fence, since in self._since.items() if now >= since + GRACE}


def end_when_left(task: asyncio.Task[None] | None, end: Callable[[BaseException], None]) -> None:
    """After a GeneratorExit: call `end` when the task is done.

    The handler raised it, or the interpreter did as it discarded the task; then `end` is never called.
    """

    def done(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # asyncio logs an error that is never retrieved
        end(RuntimeError("handler raised GeneratorExit"))

    if task is not None:
        task.add_done_callback(done)
