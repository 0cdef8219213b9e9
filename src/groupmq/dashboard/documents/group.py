"""The page `group`: its jobs in order, what it waits for and until when, its settings, what happened lately."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from groupmq import JobFilter
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.lane import LaneDocument, at_the_front, lane_of
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.starting import rate_words
from groupmq.dashboard.documents.view import View

JOBS = 50
HISTORY = 10
HISTORY_SCAN = 1000


@record
class GroupQuery:
    queue: str
    group: str
    cursor: Annotated[str, Meta(max_length=20_000)] = ""


@record
class GroupSettings:
    paused: bool
    concurrency: int
    rate_limit: str | None


@record
class GroupDocument:
    queue: QueueRow
    lane: LaneDocument
    """The group in short; its jobs are in `jobs`."""
    settings: GroupSettings
    jobs: list[JobRow]
    """Running, then waiting in the order in which they will start, then delayed."""
    first: JobRow | None
    """The first of them."""
    total: int
    cursor: str | None
    next: str | None
    failed: list[JobRow]
    """Failed lately."""
    completed: list[JobRow]
    history_scanned: int
    exists: bool
    """Whether the group has a job, or a setting of its own."""


async def build(view: View, query: GroupQuery) -> GroupDocument:
    queue, mine = view.queue, JobFilter(group_id=query.group)
    row, group, found, failed, completed = await asyncio.gather(
        view.row(),
        queue.get_group(query.group),
        queue.get_group_jobs(query.group, limit=JOBS, cursor=query.cursor or None),
        queue.search(mine, state="failed", limit=HISTORY, scan=HISTORY_SCAN),
        queue.search(mine, state="completed", limit=HISTORY, scan=HISTORY_SCAN),
    )
    jobs = view.jobs(found.jobs)
    known = await at_the_front(view, group, {job.id: job for job in (*failed.jobs, *found.jobs)})
    total = group.waiting + group.active + group.delayed
    return GroupDocument(
        queue=row,
        lane=lane_of(group, view, known, [], []),
        settings=GroupSettings(
            paused=group.paused, concurrency=group.concurrency, rate_limit=rate_words(group.rate_limit)
        ),
        jobs=jobs,
        first=jobs[0] if jobs and not query.cursor else None,
        total=total,
        cursor=query.cursor or None,
        next=found.cursor,
        failed=view.jobs(failed.jobs),
        completed=view.jobs(completed.jobs),
        history_scanned=failed.scanned + completed.scanned,
        exists=bool(total or group.paused or group.blockers or group.breaker_since or failed.jobs or completed.jobs),
    )


PAGE = Page("group", "Group", GroupQuery, GroupDocument, build, "A group: its jobs in order, and what it waits for.")
