"""The page `jobs`: jobs of a state, page by page, or those that a search finds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from groupmq import JobFilter, JobPage
from groupmq.dashboard import search
from groupmq.dashboard.documents.choice import Choice, choices
from groupmq.dashboard.documents.job_row import JobRow
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.payload import payload
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import Job

STATES = {
    "waiting": "Waiting",
    "active": "Active",
    "delayed": "Delayed",
    "failed": "Failed",
    "completed": "Completed",
}
MOST = 200
SCAN = 2000
"""Jobs that one search reads at most; the next page goes on from there."""
LOOKS = 10
"""Calls to the server for one page of a search that the dashboard itself makes because payloads are redacted."""


@record
class JobsQuery:
    queue: str
    state: Literal["waiting", "active", "delayed", "failed", "completed"] = "waiting"
    q: Annotated[str, Meta(max_length=2000)] = ""
    cursor: Annotated[str, Meta(max_length=20_000)] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 50


@record
class Term:
    qualifier: str
    value: str
    text: str


@record
class Qualifier:
    name: str
    example: str
    words: str


@record
class Search:
    terms: list[Term]
    problems: list[str]
    qualifiers: list[Qualifier]


@record
class JobsPage:
    queue: QueueRow
    state: str
    states: list[Choice]
    q: str
    search: Search
    jobs: list[JobRow]
    limit: int
    cursor: str | None
    next: str | None
    """Cursor of the next page; None at the end."""
    scanned: int
    """Jobs that were read for this page."""
    total: int | None
    """Jobs of this state."""
    complete: bool


async def build(view: View, query: JobsQuery) -> JobsPage:
    parsed = search.parse(query.q)
    row, page = await asyncio.gather(view.row(), found(view, query, parsed.arguments))
    counts = {state: getattr(row.counts, state) for state in STATES}
    return JobsPage(
        queue=row,
        state=query.state,
        states=choices(STATES, query.state, counts),
        q=query.q,
        search=search_record(parsed),
        jobs=view.jobs(page.jobs),
        limit=query.limit,
        cursor=query.cursor or None,
        next=page.cursor,
        scanned=page.scanned,
        total=page.total,
        complete=page.cursor is None,
    )


async def found(view: View, query: JobsQuery, arguments: dict[str, Any]) -> JobPage[Job]:
    """One page of the jobs that a search finds."""
    text = arguments.get("text")
    if text and view.redactor.active:
        return await visible(view, query, text, {name: value for name, value in arguments.items() if name != "text"})
    wanted = JobFilter(**arguments) if arguments else None
    return await view.queue.search(wanted, state=query.state, limit=query.limit, cursor=query.cursor or None, scan=SCAN)


async def visible(view: View, query: JobsQuery, text: str, others: dict[str, Any]) -> JobPage[Job]:
    """The jobs in whose visible parts a text occurs. The server never gets the text: the job at which its search
    stops would reveal a match in a hidden part."""
    wanted = JobFilter(**others) if others else None
    jobs: list[Job] = []
    cursor, scanned, total = query.cursor or None, 0, 0
    for _ in range(LOOKS):
        left = query.limit - len(jobs)
        page = await view.queue.search(wanted, state=query.state, limit=left, cursor=cursor, scan=SCAN)
        jobs += [job for job in page.jobs if shows(job, text, view)]
        cursor, scanned, total = page.cursor, scanned + page.scanned, page.total
        if cursor is None or scanned >= SCAN or len(jobs) >= query.limit:
            break
    return JobPage(jobs, cursor, scanned, total)


def shows(job: Job, text: str, view: View) -> bool:
    seen = payload(job.data, view.redactor, "data").text + "\n" + (view.redactor.text(job.failed_reason, "error") or "")
    return text.casefold() in seen.casefold()


def search_record(parsed: search.Parsed) -> Search:
    return Search(
        terms=[Term(qualifier=term.qualifier, value=term.value, text=term.text) for term in parsed.terms],
        problems=parsed.problems,
        qualifiers=[Qualifier(name=one.name, example=one.example, words=one.words) for one in search.QUALIFIERS],
    )


PAGE = Page("jobs", "Jobs", JobsQuery, JobsPage, build, "Jobs of a state, or those that a search finds, page by page.")
