"""All pages, by name. Each is a document in `documents/`, a template and a route of that name."""

from __future__ import annotations

from groupmq.dashboard.documents import (
    events,
    failures,
    group,
    job,
    jobs,
    lanes,
    queue,
    queues,
    repeats,
    settings,
    suggest,
    task,
    workers,
)
from groupmq.dashboard.documents.page import Page

PAGES: dict[str, Page] = {
    page.name: page
    for page in (
        queues.PAGE,
        queue.PAGE,
        lanes.PAGE,
        jobs.PAGE,
        suggest.PAGE,
        group.PAGE,
        job.PAGE,
        failures.PAGE,
        repeats.PAGE,
        workers.PAGE,
        events.PAGE,
        settings.PAGE,
        task.TASKS,
        task.TASK,
    )
}
