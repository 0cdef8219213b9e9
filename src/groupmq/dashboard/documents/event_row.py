"""An event as one row of the live tail."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.job_row import first_line
from groupmq.dashboard.documents.progress import Progress, progress
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.redaction import Redactor

if TYPE_CHECKING:
    from groupmq import Event


@record
class EventRow:
    id: str
    kind: str
    job_id: str | None
    group_id: str | None
    at: datetime
    attempt: int | None
    worker: str | None
    delay: float | None
    reason: str | None
    final: bool | None
    progress: Progress | None
    text: str
    """What happened, in words."""


def event_row(event: Event, redactor: Redactor) -> EventRow:
    reason = first_line(redactor.text(event.reason, "error"))
    moved = progress(event.progress, redactor)
    return EventRow(
        id=event.id,
        kind=event.kind,
        job_id=event.job_id,
        group_id=event.group_id,
        at=event.at,
        attempt=event.attempt,
        worker=event.worker,
        delay=event.delay,
        reason=reason,
        final=event.final,
        progress=moved,
        text=words(event, reason, moved),
    )


def words(event: Event, reason: str | None, moved: Progress | None) -> str:
    attempt = f"attempt {event.attempt}" if event.attempt else "an attempt"
    if event.kind == "active":
        return f"{attempt} started" + (f" on {event.worker}" if event.worker else "")
    if event.kind == "completed":
        return f"completed in {attempt}"
    if event.kind == "retrying":
        return f"{attempt} failed: {reason or 'no reason given'}; the next one starts in {event.delay or 0:g} s"
    if event.kind == "failed":
        return f"failed for good: {reason or 'no reason given'}"
    if event.kind == "stalled":
        return f"the lease of {attempt} expired" + ("; that was the last one" if event.final else "; it will run again")
    if event.kind == "progress":
        return f"progress {moved.text}" if moved else "progress"
    return _OTHERS.get(event.kind, event.kind)


_OTHERS = {
    "added": "added",
    "removed": "removed",
    "drained": "the queue is empty",
    "paused": "paused",
    "resumed": "resumed",
    "gap": "events before this one were missed",
}
