"""Log lines about jobs: one for each step of a job's life, with its queue, its group and what happens next.

Added, taken and completed are DEBUG lines. Thousands of jobs pass here in a second, so callers ask `debugging` once for
many jobs and make no line if it returns False.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from groupmq.core.checks import Logger
from groupmq.core.loggers import LEVELS
from groupmq.core.snapshot import Snapshot


class OfGroup(Protocol):
    """A job with its group, None if it has none."""

    @property
    def id(self) -> str: ...
    @property
    def group_id(self) -> str | None: ...


class Expiry(OfGroup, Protocol):
    """A job that failed because its ttl has ended."""

    @property
    def blocks(self) -> bool: ...


class Stall(Expiry, Protocol):
    """A job whose lease expired while it ran."""

    @property
    def final(self) -> bool: ...
    @property
    def cancelled(self) -> bool: ...


class JobLog:
    """Logs the life of the jobs of a queue, as one producer or one worker sees it."""

    def __init__(
        self,
        logger: Logger,
        queue: str,
        worker: str | None = None,
        *,
        keeps_failed: bool = True,
        on_failed: str = "continue",
    ) -> None:
        self._logger = logger
        self._queue = queue
        self._worker = worker
        self.adopt(keeps_failed=keeps_failed, on_failed=on_failed)
        self._is_enabled = getattr(logger, "isEnabledFor", None)
        self._takes_extra = isinstance(logger, logging.Logger | logging.LoggerAdapter)

    def adopt(self, *, keeps_failed: bool, on_failed: str) -> None:
        """Set how the line about a failed job describes what happens to the job and its group."""
        self._kept = "It is kept until it is retried or removed" if keeps_failed else "It is not kept"
        self._on_failed = on_failed

    def debugging(self) -> bool:
        """Whether DEBUG lines are wanted; True for a logger that cannot be asked."""
        return self._is_enabled is None or bool(self._is_enabled(logging.DEBUG))

    # A producer

    def added(self, jobs: Iterable[Snapshot | BaseException]) -> None:
        for job in jobs:
            if isinstance(job, BaseException):
                continue
            if job.duplicate:
                self._line("debug", job, job.attempts_made, "exists already; nothing was added")
            elif job.run_at is not None:
                self._line("debug", job, 0, "added: it may start at %s", job.run_at.isoformat(timespec="milliseconds"))
            else:
                self._line("debug", job, 0, "added: it waits for a worker")

    def repeats(self, job: Snapshot) -> None:
        """Log that a repeating job was defined; `job` is its next occurrence."""
        self._line("debug", job, 0, "is the next occurrence of a repeating job and will be added when it is due")

    # A caller that ends jobs by their ids. Its calls do not read the jobs, so their groups are not known.

    def removed(self, job_id: str) -> None:
        self._write_by_id("debug", job_id, "was removed by a call; if it was running, its handler is stopped")

    def stopped(self, job_id: str, state: str) -> None:
        """`state`: the state in which `cancel` found the job."""
        what = "its handler is stopped, and the job fails" if state == "active" else f"it was {state}, and is removed"
        self._write_by_id("debug", job_id, "was cancelled by a call: %s", what)

    def failed_by_hand(self, job_id: str, reason: str) -> None:
        """Log at INFO, as for a job that is cancelled while it runs: a person asked for it."""
        self._write_by_id(
            "info", job_id, "was failed for good by a call: %r. If it was running, its handler is stopped", reason
        )

    # A worker

    def taken(self, row: Sequence[Snapshot]) -> None:
        """Log jobs that run one after the other; the first one starts now."""
        for index, job in enumerate(row):
            start = "starts now" if index == 0 else "starts when the one before it has ended"
            self._line(
                "debug",
                job,
                job.attempts_made + 1,
                "taken by worker %s: attempt %d of %d %s",
                self._worker,
                job.attempts_made + 1,
                job.max_attempts,
                start,
            )

    def completed(self, jobs: Iterable[Snapshot]) -> None:
        for job in jobs:
            self._line(
                "debug",
                job,
                job.attempts_made,
                "completed in attempt %d%s",
                job.attempts_made,
                _and_group(job, "goes on"),
            )

    def retrying(self, job: Snapshot, delay_ms: int, *, holds: bool) -> None:
        group = _and_group(job, "waits for it" if holds else "goes on meanwhile")
        self._line(
            "warning",
            job,
            job.attempts_made,
            "failed in attempt %d of %d: %s. The next attempt starts in %g s%s",
            job.attempts_made,
            job.max_attempts,
            job.failed_reason,
            delay_ms / 1000,
            group,
        )

    def failed(self, job: Snapshot) -> None:
        """The stack is logged as text: the error of a handler in a child process has no traceback here."""
        blocks = job.group_id is not None and (job.on_failed or self._on_failed) == "hold"
        stack = f"\n{job.stacktrace.rstrip()}" if job.stacktrace else ""
        self._line(
            "error",
            job,
            job.attempts_made,
            "failed for good in attempt %d of %d: %s. %s%s",
            job.attempts_made,
            job.max_attempts,
            job.failed_reason,
            self._after_failure(job, blocks=blocks),
            stack,
        )

    def _after_failure(self, job: OfGroup, *, blocks: bool) -> str:
        """What happens to the job and its group. A job that blocks its group is kept under any retention."""
        if blocks:
            return "It is kept, and blocks its group until it is retried, skipped or removed"
        return self._kept + _and_group(job, "goes on")

    def cancelled(self, job: Snapshot) -> None:
        self._line(
            "info",
            job,
            job.attempts_made,
            "was cancelled in attempt %d and does not run again%s",
            job.attempts_made,
            _and_group(job, "goes on"),
        )

    def released(self, job: Snapshot) -> None:
        self._line("debug", job, job.attempts_made, "was given back: it keeps its sort key, and no attempt was used")

    def snoozed(self, job: Snapshot, delay_ms: int, reason: str) -> None:
        self._line(
            "info",
            job,
            job.attempts_made,
            "was snoozed by its handler: %s. No attempt was used; it starts again in %g s",
            reason,
            delay_ms / 1000,
        )

    def rate_limited(self, job: Snapshot, delay_ms: int, reason: str) -> None:
        self._line(
            "info",
            job,
            job.attempts_made,
            "was rate-limited: %s. No attempt was used; it starts again in %g s%s",
            reason,
            delay_ms / 1000,
            _and_group(job, "waits for it"),
        )

    def late(self, job: Snapshot) -> None:
        """The job did not end within the time limit of its closing worker."""
        self._line(
            "warning",
            job,
            job.attempts_made + 1,
            "did not end before worker %s closed: it is cancelled and given back, and no attempt is used",
            self._worker,
        )

    def lost(self, job: Snapshot) -> None:
        self._line(
            "warning",
            job,
            job.attempts_made + 1,
            "is no longer leased to worker %s: this run is not recorded, and the job runs again unless it has ended",
            self._worker,
        )

    # A job whose lease or ttl has ended: any process may find it

    def stalled(self, job: Stall) -> None:
        level = "warning"
        if not job.final:
            next_step = "it runs again"
        elif job.cancelled:
            level, next_step = "info", f"it was cancelled and does not run again{_and_group(job, 'goes on')}"
        else:
            level, next_step = "error", f"it has failed for good. {self._after_failure(job, blocks=job.blocks)}"
        self._write(level, job.id, job.group_id, None, "stalled because its lease expired: %s", next_step)

    def expired(self, job: Expiry) -> None:
        next_step = self._after_failure(job, blocks=job.blocks)
        text = "has failed for good, because it had not started when its ttl ended. %s"
        self._write("error", job.id, job.group_id, None, text, next_step)

    # Writing

    def _line(self, level: str, job: Snapshot, attempt: int, text: str, *args: object) -> None:
        self._write(level, job.id, job.group_id, attempt, text, *args)

    def _write(
        self, level: str, job_id: str, group_id: str | None, attempt: int | None, text: str, *args: object
    ) -> None:
        # Quoted: ids are the user's, and a line break in one must not look like another line of the log.
        group = "no group" if group_id is None else f"group {group_id!r}"
        line = (f"job %r (queue %r, %s) {text}", job_id, self._queue, group, *args)
        self._emit(level, line, {"group": group_id, "attempt": attempt}, job_id)

    def _write_by_id(self, level: str, job_id: str, text: str, *args: object) -> None:
        self._emit(level, (f"job %r (queue %r) {text}", job_id, self._queue, *args), {}, job_id)

    def _emit(self, level: str, line: tuple[Any, ...], more: dict[str, object], job_id: str) -> None:
        with contextlib.suppress(Exception):  # a logger that raises must not stop a worker
            if self._takes_extra:
                extra: dict[str, object] = {"job": job_id, "group": None, "queue": self._queue}
                extra |= {"worker": self._worker, "attempt": None} | more
                self._logger.log(LEVELS[level], *line, extra=extra)  # type: ignore[attr-defined]
            else:
                getattr(self._logger, level)(*line)


def _and_group(job: OfGroup, does: str) -> str:
    return "" if job.group_id is None else f", and its group {does}"
