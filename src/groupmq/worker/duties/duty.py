"""The shape that every duty has: `run_once`, which says what was done and when the next run is due."""

from __future__ import annotations

import time
from typing import NamedTuple, Protocol


class DutyDone(NamedTuple):
    """The result of one run of a duty."""

    handled: int
    """Jobs added, moved or removed, groups woken, workers forgotten."""
    next_in: float | None = None
    """Seconds until something is due; None = nothing is known to come."""
    errors: tuple[str, ...] = ()
    """The parts that could not be done; all others were."""
    called: bool = True
    """Whether the server was called. A run without an error shows that it can be reached only in that case."""


class Duty(Protocol):
    """One bounded, idempotent piece of maintenance. `task` completes the sentence "worker w cannot ..."."""

    task: str

    async def run_once(self) -> DutyDone: ...


class EachInterval:
    """Runs another duty at most once per `interval` seconds, the first time at once."""

    def __init__(self, duty: Duty, interval: float) -> None:
        self.task = duty.task
        self._duty = duty
        self._interval = interval
        self._next = 0.0

    async def run_once(self) -> DutyDone:
        left = self._next - time.monotonic()
        if left > 0:
            return DutyDone(0, left)
        done = await self._duty.run_once()
        self._next = time.monotonic() + self._interval
        return DutyDone(done.handled, self._interval, done.errors)


def seconds_until(wait_ms: int) -> float | None:
    """The next due time that a reply of the server names, as `DutyDone.next_in`."""
    return None if wait_ms < 0 else wait_ms / 1000
