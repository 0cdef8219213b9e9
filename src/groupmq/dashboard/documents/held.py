"""What holds a group: the answer to "why does this customer's job not run?"."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.record import record

if TYPE_CHECKING:
    from groupmq import HeldGroup

WORDS = {
    "running": "as many of its jobs run as may run at once",
    "stopping": "the handler of a job that was removed or failed by hand has not ended yet",
    "backoff": "its first job failed and waits for its next attempt",
    "snoozed": "the handler of its first job asked to be called again later",
    "paused": "it is paused",
    "blocked": "one of its jobs failed for good, and somebody has to resolve that job",
    "breaker": "too many attempts in a row have failed, and the group rests",
    "window": "it waits for late jobs that may belong ahead of its first one",
    "rate": "it has started as many jobs as its rate limit allows",
    "rate_limited": "a handler was told to slow down and the group rests",
}


@record
class Held:
    reason: str
    words: str
    job_id: str | None
    """The job that holds the group: the running one, the one in its back-off, or the failed one that blocks it."""
    attempt: int | None
    max_attempts: int | None
    since: datetime
    until: datetime | None
    waiting: int
    wait: float
    """Seconds that the first job has waited."""


def held(group: HeldGroup | None, max_attempts: int | None = None) -> Held | None:
    """The record for a held group. `max_attempts` is that of the job that holds it."""
    if group is None:
        return None
    return Held(
        reason=group.reason,
        words=WORDS.get(group.reason, group.reason),
        job_id=group.job_id,
        attempt=group.attempt,
        max_attempts=max_attempts,
        since=group.since,
        until=group.until,
        waiting=group.waiting,
        wait=group.wait,
    )
