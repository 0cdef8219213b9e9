"""Stopping runs: who asked for it and since when, and how the handler of a run is cancelled.

Shared by the executor of single jobs (executor.py) and the one of batches (batches.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Literal, Self, TypeVar

Verdict = Literal["timeout", "lease-lost", "closing", "cancelled"]
"""Why a run is stopped."""
GRACE = 1.0
"""Seconds a cancelled handler has to end before its slot is taken back without it."""


class StoppableRun:
    """One call of a handler in this worker."""

    hard_end: float | None = None
    """When its timeout ends, if it has one."""
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    give_up: asyncio.TimerHandle | None = None
    verdict: Verdict | None = None
    begun = False
    """Its handler was called."""
    confirmed = False
    """That it has begun was reported."""
    abandoned = False
    """Its slot was taken back, and its handler has not ended."""
    started = 0.0
    """When its handler was called, or before that, when it got its slot."""

    def cancel_task(self, task: asyncio.Task[None], abandon: Callable[[Self], None]) -> None:
        """Cancel the handler. `abandon` is called if it does not end within GRACE."""
        task.cancel()
        self.give_up = asyncio.get_running_loop().call_later(GRACE, abandon, self)

    def take_slot_back(self) -> None:
        """Record whether the handler goes on without its slot.

        After a lost lease or a cancellation the group still waits for the handler; after a timeout, or when the worker
        closes, its job may run again at once.
        """
        self.abandoned = self.begun and self.verdict in ("lease-lost", "cancelled")

    def is_past_timeout(self, now: float) -> bool:
        """Whether its handler should have ended by its timeout, and was not even cancelled."""
        return self.hard_end is not None and now >= self.hard_end + GRACE


AnyRun = TypeVar("AnyRun", bound=StoppableRun)


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


def cancel_abandoned(runs: set[AnyRun]) -> None:
    """Cancel handlers that have not ended and forget them."""
    for run in tuple(runs):
        if run.task is not None:
            run.task.cancel()
    runs.clear()


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
