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
from groupmq.dashboard.live.recent import LONGEST_POSITION

MOST = 200


@record
class EventsQuery:
    queue: str
    kind: Literal["", EventKind] = ""
    group: Annotated[str, Meta(max_length=1000)] = ""
    job: Annotated[str, Meta(max_length=1000)] = ""
    since: Annotated[str, Meta(max_length=LONGEST_POSITION)] = ""
    """Only what came after this: the `position` of an earlier answer."""


@record
class EventsPage:
    queue: QueueRow
    kinds: list[Choice]
    kind: str
    group: str
    job: str
    events: list[EventRow]
    """Newest first. The dashboard reads events while a tab, or somebody who asks for this page, watches the queue."""
    missed: bool
    """Whether events after `since` are not in the list."""
    written: bool
    """Whether the queue writes events at all (its setting `events`)."""
    position: str | None
    """The `since` that leads to the events after these, whatever the filters were."""


async def build(view: View, query: EventsQuery) -> EventsPage:
    row = await view.row()
    reader = view.shared.reader(view.queue)
    await reader.watch(query.since)
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
        missed=missed or (bool(query.since) and len(rows) > MOST),
        written=view.queue.options.events,
        position=reader.recent.last,
    )


PAGE = Page("events", "Events", EventsQuery, EventsPage, build, "What happened lately, newest first.")
