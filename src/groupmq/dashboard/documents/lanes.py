"""The page `lanes`: groups as lanes, in the order in which their jobs will run."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta

from groupmq.dashboard.documents.choice import Choice, choices
from groupmq.dashboard.documents.lane import LaneDocument, lane
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

MOST = 200
MOST_REASONS = 50
"""The number of blocked groups for which the page says why the job that blocks the group has failed."""
SORTS = {
    "held": "Longest held",
    "oldest": "Oldest first job",
    "deepest": "Most jobs",
    "busiest": "Busiest",
    "name": "Name",
}


@record
class LanesQuery:
    queue: str
    sort: Literal["held", "oldest", "deepest", "busiest", "name"] = "held"
    match: Annotated[str, Meta(max_length=200)] = ""
    state: Literal["", "blocked", "breaker"] = ""
    """blocked: only groups that a failed job blocks; breaker: only those whose breaker is open. Groups without
    other jobs are included."""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 50
    behind: Annotated[int, Meta(ge=0, le=20)] = 5


@record
class LanesPage:
    queue: QueueRow
    sort: str
    sorts: list[Choice]
    match: str
    state: str
    states: list[Choice]
    """All groups, only blocked ones, only those whose breaker is open. The last two appear only if there are any."""
    behind: int
    limit: int
    most: int
    """The highest limit."""
    lanes: list[LaneDocument]
    shown: int
    total: int
    """Groups of the queue that have jobs or a setting of their own."""
    scanned: int
    complete: bool
    """Whether all groups were scanned. If there are too many, only the scanned ones are sorted."""
    rest: int
    """Groups that are not shown."""


async def build(view: View, query: LanesQuery) -> LanesPage:
    row, page = await asyncio.gather(
        view.row(),
        view.queue.get_groups(
            sort=query.sort,
            match=query.match or None,
            state=query.state or None,
            limit=query.limit,
            behind=query.behind,
        ),
    )
    blocking = [found.group.blocked_by for found in page.groups if found.group.blocked_by is not None]
    blockers = await view.queue.get_jobs_by_id(blocking[:MOST_REASONS]) if blocking else []
    others = {job.id: job for job in blockers if job is not None}
    return LanesPage(
        queue=row,
        sort=query.sort,
        sorts=choices(SORTS, query.sort),
        match=query.match,
        state=query.state,
        states=_states(query.state, row),
        behind=query.behind,
        limit=query.limit,
        most=MOST,
        lanes=[lane(found, view, others) for found in page.groups],
        shown=len(page.groups),
        total=page.total,
        scanned=page.scanned,
        complete=page.complete,
        rest=max(0, page.total - len(page.groups)),
    )


def _states(state: str, row: QueueRow) -> list[Choice]:
    """The choices of groups. One that would find no group is left out."""
    # "All" has no number: a blocked group without other jobs is not among the lanes.
    found = [Choice(value="", label="All", current=not state)]
    for value, label, count in (("blocked", "Blocked", row.blocked), ("breaker", "Breaker open", row.breakers_open)):
        if count or state == value:
            found.append(Choice(value=value, label=label, current=state == value, count=count))
    return found


PAGE = Page(
    "lanes", "Lanes", LanesQuery, LanesPage, build, "Groups as lanes: what runs, what waits behind it, what holds it."
)
