"""The page `failures`: kept failed jobs, grouped by error class and the shape of the message."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime

from groupmq.dashboard.documents.page import Page, QueueQuery
from groupmq.dashboard.documents.payload import cut, text
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.search import MOST_TEXT, quoted

MOST_GROUPS = 50
_REPLACED = re.compile(r"'\.\.\.'|<id>|#")
"""The placeholders in a shape for text that differs from job to job."""
_SHORTEST_FIXED, _LONGEST_FIXED = 4, 100
NO_CLASS = "no exception"
"""For jobs that stalled, expired or were failed by an operator."""


@record
class FailureRow:
    error_class: str
    shape: str
    """The message with numbers, ids and quoted text replaced."""
    count: int
    first: datetime
    last: datetime
    sample_job_id: str
    series: list[int]
    q: str
    """A search that finds these jobs: by their class and the longest fixed part of the message. While payloads are
    redacted, by their class alone. Empty if nothing tells them from other failed jobs."""


@record
class FailuresPage:
    queue: QueueRow
    groups: list[FailureRow]
    scanned: int
    total: int
    complete: bool


async def build(view: View, query: QueueQuery) -> FailuresPage:
    row, found = await asyncio.gather(view.row(), view.queue.get_failure_groups(MOST_GROUPS))
    return FailuresPage(
        queue=row,
        groups=[
            FailureRow(
                error_class=group.error_class or NO_CLASS,
                shape=cut(text(view.redactor.text(group.shape, "error") or ""), 500),
                count=group.count,
                first=group.first,
                last=group.last,
                sample_job_id=group.sample_job_id,
                series=list(group.series),
                q=search_for(group.error_class, "" if view.redactor.active else group.shape),
            )
            for group in found.groups
        ],
        scanned=found.scanned,
        total=found.total,
        complete=found.scanned >= found.total,
    )


def search_for(error_class: str | None, shape: str) -> str:
    """A search line for the jobs of a class whose message has this shape."""
    found = [f"error:{quoted(error_class)}"] if error_class else []
    fixed = max((part.strip() for part in _REPLACED.split(shape)), key=len)[:_LONGEST_FIXED].strip()
    if len(fixed) >= _SHORTEST_FIXED:
        found.append(f"data:{quoted(fixed)}")
    line = " ".join(found)
    return line if len(line) <= MOST_TEXT else found[0]


PAGE = Page("failures", "Failures", QueueQuery, FailuresPage, build, "Failed jobs by error class and message.")
