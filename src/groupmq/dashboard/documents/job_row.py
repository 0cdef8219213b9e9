"""A job as one row: in lists, in lanes, on the page of its worker."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.payload import cut, preview, text
from groupmq.dashboard.documents.progress import Progress, progress
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.redaction import Redactor

if TYPE_CHECKING:
    from groupmq import Job

_ERROR = 200


@record
class JobRow:
    id: str
    group_id: str | None
    state: str
    attempt: int
    attempts_made: int
    max_attempts: int | None
    """The job's own, its worker's, or the queue's; None where that is not known."""
    priority: int
    created_at: datetime | None
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    elapsed: float | None
    """Seconds: of the current run so far, or of the last run of a finished job."""
    progress: Progress | None
    error: str | None
    """First line of why it failed."""
    worker: str | None
    preview: str
    """The data in one line, cut."""
    redacted: bool


def job_row(job: Job, redactor: Redactor, now: datetime, max_attempts: int | None) -> JobRow:
    shown, redacted = preview(job.data, redactor, "data")
    return JobRow(
        id=job.id,
        group_id=job.group_id,
        state=job.state,
        attempt=job.attempt,
        attempts_made=job.attempts_made,
        max_attempts=max_attempts,
        priority=job.priority,
        created_at=job.created_at,
        run_at=job.run_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        expires_at=job.expires_at,
        elapsed=elapsed(job, now),
        progress=progress(job.progress, redactor),
        error=first_line(redactor.text(job.failed_reason, "error")),
        worker=job.worker,
        preview=shown,
        redacted=redacted,
    )


def elapsed(job: Job, now: datetime) -> float | None:
    if job.started_at is None:
        return None
    if job.state == "active":
        return max(0.0, (now - job.started_at).total_seconds())
    if job.finished_at is not None and job.attempts_made > 0:
        return max(0.0, (job.finished_at - job.started_at).total_seconds())
    return None


def first_line(reason: str | None) -> str | None:
    if reason is None:
        return None
    lines = text(reason).strip().splitlines()
    return cut(lines[0], _ERROR) if lines else ""


def has_to_wait(job: Job, now: datetime) -> bool:
    """Whether a time has to come before it may start: that of its delay, its back-off or its snooze."""
    return job.state in ("waiting", "delayed") and job.run_at is not None and job.run_at > now


def in_back_off(job: Job, now: datetime) -> bool:
    """Whether an attempt failed, and the time of the next one has not come."""
    return bool(job.attempts_made) and has_to_wait(job, now)
