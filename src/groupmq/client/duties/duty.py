"""The shape that every duty has: `run_once`, which reports what was done and when there is more to do."""

from __future__ import annotations

from typing import Protocol

from groupmq.core.views import DutyReport


class PeriodicDuty(Protocol):
    """One bounded, idempotent piece of maintenance: any number of processes may run it at once.

    `task` completes the sentence "worker w cannot ...".
    """

    task: str

    async def run_once(self) -> DutyReport: ...


def seconds_until(wait_ms: int) -> float | None:
    """The seconds until the next due time that a reply of the server names, for `DutyReport.next_in`; None without one.

    A `wait_ms` of 0 means that something is due which this duty has left to another one, or could not do. It gives None
    too, or the duty would run again at once.
    """
    return wait_ms / 1000 if wait_ms > 0 else None
