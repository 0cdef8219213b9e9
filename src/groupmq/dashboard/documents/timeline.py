"""The life of a job as steps, from added to ended. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.record import record

if TYPE_CHECKING:
    from groupmq import Attempt, Job

_AFTER = {
    "retried": ("retrying", "Waited to retry"),
    "stalled": ("stalled", "Its worker disappeared"),
    "released": ("waiting", "Given back"),
    "snoozed": ("delayed", "Snoozed"),
    "rate_limited": ("delayed", "Rate-limited"),
}
_ENDS = {"completed": "Completed", "failed": "Failed", "cancelled": "Cancelled"}
_NOW = {"Waited to retry": "Waits to retry"}
"""Labels of the last step of a job that has not ended."""


@record
class Step:
    kind: str
    """delayed, waiting, running, retrying, stalled, completed, failed or cancelled; future: yet to come."""
    label: str
    at: datetime | None
    """None if the time is not known."""
    seconds: float | None
    """Until the next step, or until now; None for the end of a job, and for a step that is yet to come."""
    detail: str


def timeline(job: Job, attempts: Sequence[Attempt], now: datetime) -> list[Step]:
    """The steps in order. Attempts that are no longer kept are missing: the first kept one follows the beginning."""
    moments: list[tuple[datetime, str, str, str]] = []
    if job.created_at is not None:
        delayed = job.run_at is not None and job.attempts_made == 0 and job.run_at > job.created_at
        moments.append((job.created_at, "delayed" if delayed else "waiting", "Added", ""))
        if delayed and job.run_at is not None and job.run_at <= now and job.state != "delayed":
            moments.append((job.run_at, "waiting", "Due", ""))
    for attempt in attempts:
        if attempt.started_at is not None:
            moments.append((attempt.started_at, "running", f"Attempt {attempt.number}", attempt.worker or ""))
        if attempt.ended_at is not None and attempt.outcome in _AFTER:
            kind, label = _AFTER[attempt.outcome]
            moments.append((attempt.ended_at, kind, label, ""))
        elif attempt.ended_at is not None and attempt.outcome in _ENDS and not _is_last(attempt, attempts, job):
            moments.append((attempt.ended_at, attempt.outcome, f"{_ENDS[attempt.outcome]}; then retried by hand", ""))
    if not attempts and job.started_at is not None and job.state != "waiting":
        moments.append((job.started_at, "running", f"Attempt {job.attempt}", job.worker or ""))
    if job.finished_at is not None and job.state in ("completed", "failed"):
        last = attempts[-1].outcome if attempts else job.state
        kind = last if last in _ENDS else job.state
        moments.append((job.finished_at, kind, _ENDS[kind], ""))
    return steps(moments, None if job.finished_at is not None else now) + to_come(job, now)


def to_come(job: Job, now: datetime) -> list[Step]:
    """The next step of a job that has not ended."""
    if job.state == "active":
        return [Step(kind="future", label="End", at=None, seconds=None, detail="")]
    if job.state not in ("waiting", "delayed"):
        return []
    due = job.run_at if job.run_at is not None and job.run_at > now else None
    label = f"Attempt {job.attempts_made + 1}"
    return [Step(kind="future", label=label, at=due, seconds=None, detail="at the earliest" if due else "")]


def _is_last(attempt: Attempt, attempts: Sequence[Attempt], job: Job) -> bool:
    """Whether this attempt ended the job. One that failed for good and was retried by hand did not."""
    return attempt is attempts[-1] and job.finished_at is not None


def steps(moments: list[tuple[datetime, str, str, str]], now: datetime | None) -> list[Step]:
    moments = sorted(moments, key=lambda moment: moment[0])
    found = []
    for i, (at, kind, label, detail) in enumerate(moments):
        until = moments[i + 1][0] if i + 1 < len(moments) else now
        if until is now and now is not None:
            label = _NOW.get(label, label)
        seconds = None if until is None else max(0.0, (until - at).total_seconds())
        found.append(Step(kind=kind, label=label, at=at, seconds=seconds, detail=detail))
    return found
