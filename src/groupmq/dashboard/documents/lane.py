"""A group as a lane: the running job at the front, those behind it in their order, and what holds it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.held import Held, held
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.starting import rate_words
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import GroupInfo, Job
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
    error: str | None
    """Why the job that holds it in its back-off, or blocks it, has failed."""
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


def lane(found: EngineLane[Job], view: View, others: Mapping[str, Job]) -> LaneDocument:
    """The lane of a group. `others`: jobs that block groups."""
    jobs = {job.id: job for job in (*found.running, *found.next)} | dict(others)
    return lane_of(found.group, view, jobs, view.jobs(found.running), view.jobs(found.next))


def lane_of(
    group: GroupInfo, view: View, jobs: Mapping[str, Job], running: list[JobRow], following: list[JobRow]
) -> LaneDocument:
    """The lane of a group; `following`: the first of its waiting jobs; `jobs`: those that may hold or block it."""
    hold = group.held
    holder = jobs.get(hold.job_id or "") if hold is not None else None
    failed = jobs.get(group.blocked_by or "") or (holder if hold is not None and hold.reason == "backoff" else None)
    return LaneDocument(
        group_id=group.id,
        state=group.state,
        paused=group.paused,
        waiting=group.waiting,
        active=group.active,
        delayed=group.delayed,
        concurrency=group.concurrency,
        rate_limit=rate_words(group.rate_limit),
        held=held(hold, None if holder is None else view.attempts(holder)),
        error=view.error(failed),
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


async def at_the_front(view: View, group: GroupInfo, known: Mapping[str, Job]) -> dict[str, Job]:
    """The jobs that are known, and those that hold or block the group."""
    front = {group.blocked_by, None if group.held is None else group.held.job_id}
    missing = [job_id for job_id in front if job_id is not None and job_id not in known]
    read = await view.queue.get_jobs_by_id(missing) if missing else []
    return dict(known) | {job.id: job for job in read if job is not None}
