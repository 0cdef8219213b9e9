"""The runs and the jobs that an executor holds, and what the heartbeat thread does with them.

The thread renews the leases of what runs. It takes back jobs that have not begun when an operator or another worker
asks for them, or when the event loop is blocked (rows.py, reserve.py, unbegun.py: each of them without a lock).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from groupmq.client.job import Job
from groupmq.worker.requester import Reporter
from groupmq.worker.reserve import Reserve
from groupmq.worker.rows import Rows
from groupmq.worker.runs import JobRun
from groupmq.worker.stopping import StopRequests
from groupmq.worker.unbegun import Unbegun


class HeldRuns:
    """Runs that have a slot, rows whose jobs follow them, and a reserve that waits for slots."""

    def __init__(self, reserve: Reserve) -> None:
        # By fence: after a lost lease the same job may be back here before its old handler has ended.
        self.runs: dict[int, JobRun] = {}
        self._unbegun: Unbegun[JobRun] = Unbegun()
        self._rows = Rows()
        self._reserve = reserve
        self._stops = StopRequests()

    @property
    def slots_used(self) -> int:
        return len(self.runs)

    @property
    def unstarted(self) -> int:
        """How many jobs have no slot yet."""
        return self._rows.unstarted

    def current(self) -> list[tuple[Job, float]]:
        """Running jobs, the longest-running first, each with the time at which its handler was called."""
        return [(run.job, run.started) for run in self.runs.values()]

    # From the heartbeat thread

    def request_stop(self, fences: Sequence[int]) -> None:
        """Record that the server wants these runs stopped. A blocked event loop cannot stop them: see `given_up`."""
        self._stops.record(fences)

    def withdraw(self, fences: Sequence[int]) -> list[tuple[Job, Reporter]]:
        """Take back these jobs and those behind them (Rows.withdraw), with their reporters, unless they have begun."""
        back = self._rows.withdraw(fences)
        found = [run for fence in fences if (run := self.runs.get(fence)) is not None]
        return back + [(run.job, run.row.reporter) for run in found if self._unbegun.claim(run)]

    def withdraw_all(self) -> list[tuple[Job, Reporter]]:
        """Take back every job that has not begun."""
        back = [(run.job, run.row.reporter) for run in self._unbegun.claim_all()]
        return back + self._rows.withdraw_all()

    def withdraw_reserved(self, fence: int) -> list[tuple[Job, Reporter]]:
        """Take back what was reserved under fences up to this one. Jobs that come later go back as they come."""
        return self._reserve.withdraw(fence)

    def held(self) -> list[tuple[str, int]]:
        """Leases (id, fence) of running jobs. Those of jobs that have not begun are not renewed."""
        return [(run.job.id, fence) for fence, run in tuple(self.runs.items()) if run.begun]

    def running(self, fences: set[int]) -> list[Job]:
        """The running jobs among these."""
        return [run.job for fence, run in tuple(self.runs.items()) if fence in fences and run.begun]

    def running_tasks(self) -> list[tuple[Job, asyncio.Task[None] | None]]:
        return [(run.job, run.task) for run in tuple(self.runs.values())]

    def given_up(self) -> set[int]:
        """Fences of leases that must not be renewed any more.

        A handler past its hard timeout, or one that is to stop, may block the event loop, so that it cannot be
        cancelled. Its lease must end all the same, or its group would wait for ever.
        """
        now = time.monotonic()
        late = {fence for fence, run in tuple(self.runs.items()) if run.is_past_timeout(now)}
        return late | self._stops.overdue(now)
