"""Going through all jobs that match a filter, to act on them in bounded steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from groupmq.client.job import Job
from groupmq.core.checks import flag, whole
from groupmq.core.durations import number
from groupmq.core.errors import ConfigurationError
from groupmq.core.filters import JobFilter, Matcher
from groupmq.core.pages import RemoveReport, RetryReport
from groupmq.protocol.commands import CHUNK

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

R = TypeVar("R", RetryReport, RemoveReport)
SAMPLE = 10
STEP = 50
"""Jobs that are changed in one call."""


class MatchingJobs:
    """Finds the jobs of a state that match when it begins, finished ones oldest first. Counts them, and those changed.

    A job that ends later is not among them, so a job that was retried and fails again is not found twice.
    """

    def __init__(self, queue: QueueMethods, wanted: JobFilter, state: str, limit: int | None, *, dry_run: bool) -> None:
        if wanted.state not in (None, state):
            raise ConfigurationError.expected("filter", f"a JobFilter with state={state!r} or no state", wanted)
        self._queue = queue
        self._wanted = wanted
        self._matcher = Matcher(wanted)
        self._state = state
        self._left = 2**62 if limit is None else whole(limit, "limit", 0, 2**31)
        self._dry_run = flag(dry_run, "dry_run")
        self._matched = self._scanned = self.done = self.skipped = 0
        self._sample: list[str] = []
        self._walk = queue._walk(state, newest=False, group_id=wanted.group_id)
        self._began = 0
        self._found: list[tuple[Job, str]] = []
        self._seen: set[str] = set()
        self._groups: set[str] = set()

    async def next_step(self, size: int) -> list[tuple[Job, str]]:
        """The next jobs, at most `size`, each with the stamp of its end if it has ended; empty when all were found."""
        size = min(size, self._left)
        while size and not self._found and not self._walk.ended:
            await self._look()
        step, self._found = self._found[:size], self._found[size:]
        self._left -= len(step)
        self._matched += len(step)
        self._groups.update(job.group_id for job, _ in step if job.group_id is not None)
        self._sample += [job.id for job, _ in step[: SAMPLE - len(self._sample)]]
        return step

    def report(self, kind: type[R]) -> R:
        """The report so far."""
        found = len(self._groups), list(self._sample)
        return kind(self._matched, self.done, self.skipped, self._scanned, self._dry_run, *found)

    async def _look(self) -> None:
        """Read one more page."""
        walk = self._walk
        if self._wanted.job_id is not None:
            entries = [(self._wanted.job_id, ("", ""))]
            await walk.next_page(1)  # to learn the time of the server
            walk.ended = True
        else:
            entries = list(await walk.next_page(CHUNK))
        self._began = self._began or walk.now
        jobs = await self._queue.get_jobs_by_id([job_id for job_id, _ in entries])
        for job, (job_id, position) in zip(jobs, entries, strict=True):
            stamp = position[0] if self._state in ("completed", "failed") else ""
            if stamp and int(stamp) > walk.newest_stamp:
                walk.ended = True  # it ended after we began, and so did all that follow
                return
            self._scanned += 1
            new = job_id not in self._seen
            self._seen.add(job_id)
            if job is not None and new and job.state == self._state and self._matcher.matches(job, self._began):
                self._found.append((job, stamp))


class StepRate:
    """Limits an operation to `rate` jobs per second."""

    def __init__(self, rate: float | None) -> None:
        self._rate = None if rate is None else number(rate, "rate", 0.001, 1_000_000)
        self._due = 0.0
        # Several steps a second, so that not even a rate of hundreds comes in bursts.
        self.step = STEP if self._rate is None else max(1, min(STEP, int(self._rate / 5)))

    def wait(self) -> float:
        """Seconds until the next step."""
        return max(0.0, self._due - time.monotonic())

    def did(self, jobs: int) -> None:
        if self._rate is not None:
            self._due = max(self._due, time.monotonic()) + jobs / self._rate
