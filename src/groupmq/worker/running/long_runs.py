"""Runs that take long are reported as begun.

An operation on a job that may not have begun waits for its worker to answer (client/queue/settling.py), and for the end
of the lease if that worker is dead. So it must not wait for a job that has run for a while already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from groupmq.worker.running.outcome import OutcomePolicy
from groupmq.worker.running.runs import Run

LONG = 1.0
"""Seconds after which a run is reported."""


class LongRuns:
    """Reports each of these runs once, when it has lasted for LONG; short ones cost nothing."""

    __slots__ = ("_policy", "_runs", "_timer", "are_watched")

    def __init__(self, runs: Mapping[int, Run], policy: OutcomePolicy) -> None:
        self._runs = runs
        self._policy = policy
        self._timer: asyncio.TimerHandle | None = None
        self.are_watched = False
        """Whether the ages of runs will be checked. A plain attribute, because it is read for each run."""

    def watch(self) -> None:
        """Begin to watch runs: one has begun, and none was watched."""
        self.are_watched = True
        self._timer = asyncio.get_running_loop().call_later(LONG, self._check)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self.are_watched = False
        since = time.monotonic() - LONG
        for run in tuple(self._runs.values()):
            if run.begun_at is None or run.confirmed:
                continue
            if run.begun_at <= since:
                run.report_begun(self._policy)
            elif not self.are_watched:
                self.watch()
