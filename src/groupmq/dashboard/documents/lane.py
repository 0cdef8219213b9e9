"""A group as a lane: the running job at the front, those behind it in their order, and what holds it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.held import Held, held
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import GroupInfo, Job, RateLimit
    from groupmq import Lane as EngineLane


@record
class LaneDocument:
    group_id: str
    state: str
    """idle, ready, busy, parked (its first job has to wait), paused or blocked."""
    paused: bool
    waiting: int
    active: int
    delayed: int
    concurrency: int
    rate_limit: str | None
    held: Held | None
    blocked_by: str | None
    """The failed job that blocks the group until a person retries, skips or removes it; of several the first."""
    blocked_since: datetime | None
    blockers: int
    """How many failed jobs block it."""
    failures: int
    """Attempts that have failed in a row, as its breaker counts them."""
    breaker_since: datetime | None
    """Since when its breaker is open; None if it is closed."""
    breaker_until: datetime | None
    running: list[JobRow]
    next: list[JobRow]
    """The first ones that wait, in the order in which they will start."""
    more: int
    """How many more wait behind those."""


def lane(found: EngineLane[Job], view: View) -> LaneDocument:
    jobs = {job.id: job for job in (*found.running, *found.next)}
    hold = found.held
    holder = jobs.get(hold.job_id or "") if hold is not None else None
    return lane_of(found.group, held(hold, holder), view.jobs(found.running), view.jobs(found.next))


def lane_of(group: GroupInfo, hold: Held | None, running: list[JobRow], following: list[JobRow]) -> LaneDocument:
    """The lane of a group; `following`: the first of its waiting jobs."""
    return LaneDocument(
        group_id=group.id,
        state=group.state,
        paused=group.paused,
        waiting=group.waiting,
        active=group.active,
        delayed=group.delayed,
        concurrency=group.concurrency,
        rate_limit=rate_words(group.rate_limit),
        held=hold,
        blocked_by=group.blocked_by,
        blocked_since=group.blocked_since,
        blockers=group.blockers,
        failures=group.failures,
        breaker_since=group.breaker_since,
        breaker_until=group.breaker_until,
        running=running,
        next=following,
        more=max(0, group.waiting - len(following)),
    )


def rate_words(limit: RateLimit | None) -> str | None:
    """`100 in 1 s`."""
    if limit is None:
        return None
    per = limit.per.total_seconds() if hasattr(limit.per, "total_seconds") else limit.per
    return f"{limit.count:,} in {per:g} s"
