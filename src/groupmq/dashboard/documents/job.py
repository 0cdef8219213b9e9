"""The page `job`: everything about one job."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from groupmq.dashboard.documents.job_row import JobRow, has_to_wait, in_back_off
from groupmq.dashboard.documents.lane import LaneDocument, at_the_front, lane_of
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.payload import Payload, payload, text
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.timeline import Step, timeline
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import Attempt, Backoff, Job, JobPosition


@record
class JobQuery:
    queue: str
    job: str


@record
class LogRow:
    at: datetime
    text: str


@record
class AttemptRow:
    number: int
    outcome: str
    error: str | None
    """Class of the error, with its whole path."""
    reason: str | None
    stack: str | None
    worker: str | None
    started_at: datetime | None
    ended_at: datetime | None
    seconds: float | None


@record
class PositionInGroup:
    """Where the job stands among the waiting jobs of its group."""

    position: int
    """1 = the next to start."""
    of: int
    group_id: str


@record
class JobSetting:
    name: str
    value: str


@record
class ActionLink:
    action: str
    label: str
    danger: bool
    params: dict[str, str]


@record
class JobDocument:
    queue: QueueRow
    job: JobRow
    data: Payload
    result: Payload | None
    reason: str | None
    stack: str | None
    logs: list[LogRow]
    headers: dict[str, str]
    timeline: list[Step]
    attempts: list[AttemptRow]
    attempts_words: str
    """How many attempts it has had, in words. After a retry by hand they are counted from 0."""
    position: PositionInGroup | None
    lane: LaneDocument | None
    """For a job that waits or is delayed: its group, without the jobs of the group. Whatever holds the group holds the
    job."""
    blocks_since: datetime | None
    """Since when this failed job blocks its group; None if it does not."""
    settings: list[JobSetting]
    actions: list[ActionLink]
    """The actions that this reader can take on the job now."""


ACTIONS = {
    "waiting": ("edit", "change-delay", "cancel", "fail", "remove"),
    "active": ("cancel", "fail", "remove"),
    "delayed": ("promote", "edit", "change-delay", "cancel", "fail", "remove"),
    "failed": ("retry", "edit", "remove"),
    "completed": ("remove",),
}
LABELS = {
    "retry": ("Retry", False),
    "skip": ("Skip", True),
    "promote": ("Run now", False),
    "change-delay": ("Change delay", False),
    "edit": ("Edit data", False),
    "cancel": ("Cancel", True),
    "fail": ("Fail", True),
    "remove": ("Remove", True),
}


async def build(view: View, query: JobQuery) -> JobDocument:
    queue = view.queue
    row, job, attempts, position = await asyncio.gather(
        view.row(), queue.require_job(query.job), queue.get_attempts(query.job), queue.get_position(query.job)
    )
    redactor = view.redactor
    finished = job.state == "completed"
    return JobDocument(
        queue=row,
        job=view.job(job),
        data=payload(job.data, redactor, "data"),
        result=payload(job.return_value, redactor, "result") if finished else None,
        reason=_text(view, job.failed_reason, "error"),
        stack=_text(view, job.stacktrace, "stack"),
        logs=[LogRow(at=line.at, text=_text(view, line.text, "log") or "") for line in job.logs],
        headers={text(name): text(redactor.header(name, str(value))) for name, value in job.headers.items()},
        timeline=timeline(job, attempts, view.now),
        attempts=attempt_rows(attempts, view),
        attempts_words=attempts_words(job, view.attempts(job)),
        position=position_of(position),
        lane=await lane_of_job(job, view),
        blocks_since=job.blocks_since,
        settings=settings(job, view.attempts(job)),
        actions=actions(job, view),
    )


def attempt_rows(attempts: Sequence[Attempt], view: View) -> list[AttemptRow]:
    return [
        AttemptRow(
            number=attempt.number,
            outcome=attempt.outcome,
            error=attempt.error,
            reason=_text(view, attempt.reason, "error"),
            stack=_text(view, attempt.stack, "stack"),
            worker=attempt.worker,
            started_at=attempt.started_at,
            ended_at=attempt.ended_at,
            seconds=attempt.duration,
        )
        for attempt in attempts
    ]


def position_of(position: JobPosition | None) -> PositionInGroup | None:
    if position is None or position.group_id is None or not position.position:
        return None
    return PositionInGroup(position=position.position, of=position.of, group_id=position.group_id)


async def lane_of_job(job: Job, view: View) -> LaneDocument | None:
    if job.group_id is None or job.state not in ("waiting", "delayed"):
        return None
    group = await view.queue.get_group(job.group_id)
    return lane_of(group, view, await at_the_front(view, group, {job.id: job}), [], [])


def settings(job: Job, max_attempts: int | None) -> list[JobSetting]:
    found = {
        "Priority": str(job.priority),
        "Attempts": None if max_attempts is None else str(max_attempts),
        "Timeout": None if job.timeout is None else f"{job.timeout:g} s",
        "Back-off": None if job.backoff is None else backoff_words(job.backoff),
        "While it waits for a retry": None if job.on_retry is None else job.on_retry,
        "If it fails for good": {"hold": "its group stops", "continue": "its group goes on"}.get(job.on_failed or ""),
        "Order": str(job.order_ms) if job.order_ms else None,
        "Fence": str(job.fence) if job.fence else None,
        "Stalls": str(job.stalls) if job.stalls else None,
    }
    return [JobSetting(name=name, value=value) for name, value in found.items() if value is not None]


def attempts_words(job: Job, most: int | None) -> str:
    """`none yet`, `attempt 2 of 5 is running`, `3 of 5`; without "of" if the maximum is not known."""
    of = "" if most is None else f" of {most:,}"
    if job.state == "active":
        return f"attempt {job.attempt:,}{of} is running"
    if not job.attempts_made:
        return f"none{of} yet" if job.state in ("waiting", "delayed") else "none"
    return f"{job.attempts_made:,}{of}"


def backoff_words(backoff: Backoff) -> str:
    """`30 s`, `0.5 s, then 2 times as long each time, at most 30 s`."""
    grows = backoff.factor != 1 and backoff.max > backoff.base
    words = f"{backoff.base:g} s"
    if grows:
        words += f", then {backoff.factor:g} times as long each time, at most {backoff.max:g} s"
    return words + (f", up to {backoff.jitter:.0%} longer by chance" if backoff.jitter else "")


def actions(job: Job, view: View) -> list[ActionLink]:
    labels, names = LABELS, ACTIONS.get(job.state, ())
    if has_to_wait(job, view.now):
        names = ("promote", *(name for name in names if name != "promote"))
    if in_back_off(job, view.now):
        labels = LABELS | {"promote": ("Retry now", False)}
    if job.blocks_since is not None:
        names = ("retry", "skip", *(name for name in names if name != "retry"))
    return [
        ActionLink(action=name, label=labels[name][0], danger=labels[name][1], params={"job": job.id})
        for name in names
        if view.can(name)
    ]


def _text(view: View, value: str | None, kind: str) -> str | None:
    shown = view.redactor.text(value, kind)
    return None if shown is None else text(shown)


PAGE = Page("job", "Job", JobQuery, JobDocument, build, "Everything about one job.")
