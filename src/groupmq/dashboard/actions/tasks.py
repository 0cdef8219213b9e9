"""Bulk actions as tasks of this process: they run in bounded steps, report progress and can be stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from groupmq import GroupMQError, Queue
from groupmq.dashboard.documents.task import TaskRow
from groupmq.dashboard.errors import Refused

if TYPE_CHECKING:
    from groupmq.dashboard.actions.action import Action
    from groupmq.dashboard.live.shared_state import SharedState

MOST_RUNNING = 5
MOST_KEPT = 50
_logger = logging.getLogger("groupmq.dashboard")


class Task:
    """One bulk action, under way or ended."""

    def __init__(
        self,
        action: str,
        queue: str,
        title: str,
        user: str,
        about: Mapping[str, str],
        matched: int | None,
        on_change: Callable[[Task], None],
    ) -> None:
        self.id = secrets.token_hex(8)
        self.action, self.queue, self.title, self.user = action, queue, title, user
        self.about = dict(about)
        """The fields that the action was given."""
        self.stopped_by: str | None = None
        self.state = "running"
        self.matched = matched
        self.done = self.skipped = self.scanned = 0
        self.started_at = datetime.now(UTC)
        self.ended_at: datetime | None = None
        self.problem = ""
        self._on_change = on_change
        self.running: asyncio.Future[None] | None = None

    def progress(self, *, done: int, skipped: int = 0, scanned: int = 0) -> None:
        self.done, self.skipped, self.scanned = done, skipped, scanned
        self._on_change(self)

    def end(self, state: str, problem: str = "") -> None:
        self.state, self.problem, self.ended_at = state, problem, datetime.now(UTC)
        self._on_change(self)

    def stop(self, user: str | None = None) -> bool:
        """Stop after the step under way; False if it has ended already."""
        stops = self.running is not None and self.running.cancel()
        if stops:
            self.stopped_by = user
        return stops

    def row(self) -> TaskRow:
        fraction = min(1.0, self.done / self.matched) if self.matched else None
        return TaskRow(
            id=self.id,
            action=self.action,
            title=self.title,
            state=self.state,
            matched=self.matched,
            done=self.done,
            skipped=self.skipped,
            scanned=self.scanned,
            fraction=1.0 if self.state == "done" else fraction,
            user=self.user,
            started_at=self.started_at,
            ended_at=self.ended_at,
            text=self._text(),
            stoppable=self.state == "running",
        )

    def _text(self) -> str:
        of = f" of {self.matched:,}" if self.matched is not None else ""
        skipped = f", {self.skipped:,} skipped" if self.skipped else ""
        if self.state == "running":
            return f"{self.done:,}{of} done so far{skipped}"
        if self.state == "failed":
            return f"{self.done:,}{of} done{skipped}; then it failed: {self.problem}"
        return f"{self.done:,}{of} done{skipped}" + ("; stopped" if self.state == "stopped" else "")


class Tasks:
    """The tasks of this process. They end with the process; the steps that are done by then stay done."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._tasks: deque[Task] = deque(maxlen=MOST_KEPT)

    def of(self, queue: str) -> list[Task]:
        """Newest first."""
        return [task for task in reversed(self._tasks) if task.queue == queue]

    def running(self, queue: str) -> list[Task]:
        return [task for task in self.of(queue) if task.state == "running"]

    def require(self, queue: str, task_id: str) -> Task:
        for task in self.of(queue):
            if secrets.compare_digest(task.id.encode(), task_id.encode("utf-8", "replace")):
                return task
        raise Refused(404, "No such task", "It belongs to another process of the dashboard, or ended long ago.")

    def start(
        self,
        queue: Queue,
        action: Action,
        title: str,
        user: str,
        run: Callable[[Task], Coroutine[Any, Any, None]],
        about: Mapping[str, str],
        *,
        matched: int | None = None,
    ) -> Task:
        if sum(task.state == "running" for task in self._tasks) >= MOST_RUNNING:
            raise Refused(429, "Too many tasks", f"{MOST_RUNNING} bulk actions are under way; stop one or wait.")
        task = Task(action.name, queue.name, title, user, about, matched, lambda one: self._publish(queue, one))
        self._tasks.append(task)
        task.running = asyncio.ensure_future(run(task))
        # By a callback, not in the coroutine: a coroutine that is cancelled before its first step never runs.
        task.running.add_done_callback(lambda over: self._ended(task, over))
        return task

    async def close(self) -> None:
        for task in tuple(self._tasks):
            if task.stop() and task.running is not None:
                with contextlib.suppress(asyncio.CancelledError):
                    await task.running

    def _ended(self, task: Task, over: asyncio.Future[None]) -> None:
        error = None if over.cancelled() else over.exception()
        if over.cancelled():
            task.end("stopped")
        elif error is None:
            task.end("done")
        else:
            task.end("failed", _problem(error))
            if not isinstance(error, GroupMQError):
                text = "queue %s: bulk action %s failed; the finished steps stay done"
                _logger.error(text, task.queue, task.action, exc_info=error)
        self._record(task)

    def _record(self, task: Task) -> None:
        self._shared.acted()
        user = (task.stopped_by if task.state == "stopped" else None) or task.user
        self._shared.audit.record(user, task.action, task.queue, task.about, count=task.done, outcome=task.state)

    def _publish(self, queue: Queue, task: Task) -> None:
        self._shared.reader(queue).publish("task", task.row())


def _problem(error: BaseException) -> str:
    if isinstance(error, ConnectionError):
        return "the server does not answer"
    return type(error).__name__
