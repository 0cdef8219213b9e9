"""One run of one job, the row it belongs to, and what the executor announces about them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from groupmq.client.job import Job
from groupmq.worker.requester import Reporter
from groupmq.worker.stopping import StoppableRun


class RunRow:
    """Jobs of one group that were taken together and run one after the other in one slot.

    `rest`: those that have not started. `fence`: of its first job. `started`: when the row came. `leases_end`: when the
    leases of those that have not started end; later than that none of them may start.
    """

    __slots__ = ("fence", "leases_end", "reporter", "rest", "run", "started")

    def __init__(self, jobs: Sequence[Job], reporter: Reporter) -> None:
        self.reporter = reporter
        self.rest = deque(jobs)
        self.run: JobRun | None = None
        self.started = time.monotonic()
        self.leases_end = reporter.leases_end
        self.fence = jobs[0].fence


class JobRun(StoppableRun):
    """One run of one job in this worker."""

    def __init__(self, job: Job, row: RunRow) -> None:
        self.job = job
        self.row = row


class RunListener(Protocol):
    """The listener of the executor: telemetry."""

    def started(self, job: Job) -> None: ...
    def handler_raised(self, error: BaseException, job: Job) -> None: ...
    def lease_lost(self, job: Job) -> None:
        """The lease of a run belongs to another worker or is gone: there is no outcome to report."""
