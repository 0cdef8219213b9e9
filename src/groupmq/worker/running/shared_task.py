"""Runs that begin one after the other in one task: making a task for each would take longer than its handler."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from groupmq.worker.running.runs import JobRun


class SharedTask:
    """Holds runs that have a slot and have not begun. They begin as soon as the event loop comes to their task."""

    __slots__ = ("_context", "_is_live", "_runs", "_task", "_work")

    def __init__(
        self,
        work: Callable[[JobRun, Context], Coroutine[Any, Any, None]],
        is_live: Callable[[JobRun], bool],
        context: Callable[[], Context],
    ) -> None:
        """`work` runs one in a context, then the runs that `next` returns; a run that is no longer live is left out.

        `context` makes a new context.
        """
        self._work = work
        self._is_live = is_live
        self._context = context
        self._runs: deque[JobRun] = deque()
        self._task: asyncio.Task[None] | None = None
        """The task that begins them, until it runs."""

    def add(self, run: JobRun) -> None:
        self._runs.append(run)
        self.start()

    def start(self) -> None:
        """Make a task for the runs that have not begun, if there is none yet."""
        if self._runs and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._begin(), context=self._context())

    async def _begin(self) -> None:
        self._task = None
        run = self.next()
        if run is not None:
            await self._work(run, self._context())

    def next(self) -> JobRun | None:
        """The next run to begin. Those that were stopped meanwhile have a task of their own and are left out."""
        while self._runs:
            run = self._runs.popleft()
            if run.task is None and self._is_live(run):
                return run
        return None
