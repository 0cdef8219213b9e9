"""The page `events`: a live tail of what happens to the jobs."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta

from groupmq import EventKind
from groupmq.dashboard.documents.choice import Choice, choices
from groupmq.dashboard.documents.event_row import EventRow, event_row
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

MOST = 200


@record
class EventsQuery:
    queue: str
    kind: Literal["", EventKind] = ""
    group: Annotated[str, Meta(max_length=1000)] = ""
    job: Annotated[str, Meta(max_length=1000)] = ""
    since: Annotated[str, Meta(max_length=100)] = ""


@record
class EventsPage:
    queue: QueueRow
    kinds: list[Choice]
    kind: str
    group: str
    job: str
    events: list[EventRow]
    """Newest first: the events that this dashboard has read since the first tab began to watch this queue."""
    missed: bool
    """Whether events after `since` are not in the list."""


async def build(view: View, query: EventsQuery) -> EventsPage:
    row = await view.row()
    reader = view.desk.reader(view.queue)
    seen, missed = reader.recent.since(query.since)
    rows = [
        event_row(event, view.redactor)
        for event in reversed(seen)
        if query.kind in ("", event.kind) and query.group in ("", event.group_id) and query.job in ("", event.job_id)
    ]
    return EventsPage(
        queue=row,
        kinds=choices({"": "All"} | {kind: kind.capitalize() for kind in get_args(EventKind)}, query.kind),
        kind=query.kind,
        group=query.group,
        job=query.job,
        events=rows[:MOST],
        missed=missed,
    )


PAGE = Page("events", "Events", EventsQuery, EventsPage, build, "What happened lately, newest first.")
