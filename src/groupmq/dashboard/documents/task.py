"""The documents `task` and `tasks`: bulk actions that run in bounded steps, and their progress."""

from __future__ import annotations

from datetime import datetime

from groupmq.dashboard.documents.page import Page, QueueQuery
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.view import View


@record
class TaskQuery:
    queue: str
    task: str


@record
class TaskRow:
    id: str
    action: str
    title: str
    state: str
    """running, done, stopped or failed."""
    matched: int | None
    """Jobs that match; None until that is known."""
    done: int
    skipped: int
    scanned: int
    fraction: float | None
    user: str
    started_at: datetime
    ended_at: datetime | None
    text: str
    stoppable: bool


@record
class TaskPage:
    queue: str
    task: TaskRow


@record
class TasksPage:
    queue: str
    tasks: list[TaskRow]
    """Newest first."""


async def build_one(view: View, query: TaskQuery) -> TaskPage:
    return TaskPage(queue=view.queue.name, task=view.shared.tasks.require(view.queue.name, query.task).row())


async def build_all(view: View, query: QueueQuery) -> TasksPage:
    return TasksPage(queue=view.queue.name, tasks=[task.row() for task in view.shared.tasks.of(view.queue.name)])


TASK = Page("task", "Task", TaskQuery, TaskPage, build_one, "The progress of a bulk action.")
TASKS = Page("tasks", "Tasks", QueueQuery, TasksPage, build_all, "Bulk actions of this process, newest first.")
