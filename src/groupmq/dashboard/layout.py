"""The frame around every document: the queue switcher, the tabs, the user, and the result of the last action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from groupmq import __version__
from groupmq.dashboard import paths
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.task import TaskRow

TABS = (
    ("queue", "Overview"),
    ("lanes", "Lanes"),
    ("jobs", "Jobs"),
    ("failures", "Failures"),
    ("repeats", "Repeats"),
    ("workers", "Workers"),
    ("events", "Events"),
    ("settings", "Settings"),
)
_SHOWN_UNDER = {"group": "lanes", "job": "jobs", "task": "failures", "tasks": "failures", "action": "jobs"}
_COUNTED = {"failures": "failed", "workers": "workers"}
_WITHOUT_STREAM = ("action", "login", "error")


@dataclass(frozen=True, slots=True)
class NavQueue:
    name: str
    display_name: str


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    label: str
    href: str
    current: bool
    count: int | None
    counted: str
    """The name of the counted number in the stream; "" if nothing is counted."""


@dataclass(frozen=True, slots=True)
class Flash:
    level: str
    """done, warn or error."""
    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    version: str
    title: str
    base: str
    user: str | None
    auth: bool
    """Whether a user is logged in and can log out."""
    queue: str | None
    display_name: str
    description: str
    queues: Sequence[NavQueue]
    tabs: Sequence[Tab]
    stream: str | None
    flash: Flash | None
    tasks: Sequence[TaskRow]
    now: datetime


def layout(
    *,
    base: str,
    name: str,
    title: str,
    user: str | None = None,
    auth: bool = False,
    queues: Sequence[NavQueue] = (),
    queue: str | None = None,
    display_name: str = "",
    description: str = "",
    row: QueueRow | None = None,
    flash: Flash | None = None,
    tasks: Sequence[TaskRow] = (),
    since: str | None = None,
) -> Layout:
    current = _SHOWN_UNDER.get(name, name)
    stream = None
    if name not in _WITHOUT_STREAM:
        stream = paths.build(
            base, "stream", {"queue": queue, "events": 1 if name == "events" else None, "since": since}
        )
    shown = display_name or queue or ""
    return Layout(
        version=__version__,
        title=" · ".join(part for part in (title, shown, "groupmq") if part),
        base=base,
        user=user,
        auth=auth,
        queue=queue,
        display_name=shown,
        description=description,
        queues=queues,
        tabs=[] if queue is None else tabs(base, queue, current, row),
        stream=stream,
        flash=flash,
        tasks=tasks,
        now=datetime.now(UTC),
    )


def tabs(base: str, queue: str, current: str, row: QueueRow | None) -> list[Tab]:
    counts: dict[str, int] = {}
    if row is not None:
        counts = {"failures": row.counts.failed, "workers": row.workers}
    return [
        Tab(
            name,
            label,
            paths.build(base, name, {"queue": queue}),
            name == current,
            counts.get(name),
            _COUNTED.get(name, ""),
        )
        for name, label in TABS
    ]
