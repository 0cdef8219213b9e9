"""Runs one duty of a worker in the background."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from groupmq.client.duties.duty import PeriodicDuty
from groupmq.core.errors import GroupMQError
from groupmq.core.views import DutyReport
from groupmq.runtime.tasks import end_tasks
from groupmq.worker.outage import Pauses
from groupmq.worker.reachability import Reachability


class DutyRunner:
    """Runs a duty every `interval` seconds, for the first time after one interval.

    A `prompt` duty runs at once, and whenever something is due, with `interval` as the longest sleep. After a failure
    it is tried again with growing pauses, and as soon as the server is back. The clean-up of dead workers must not be
    prompt: right after an outage every worker looks dead.
    """

    def __init__(
        self,
        duty: PeriodicDuty,
        interval: float,
        reachability: Reachability,
        on_report: Callable[[DutyReport], None] = lambda report: None,
        *,
        prompt: bool = False,
    ) -> None:
        """`on_report` is called with the report of each run."""
        self._duty = duty
        self._on_report = on_report
        self._interval = interval
        self._reachability = reachability
        self._prompt = prompt
        self._pauses = Pauses()
        self._wakes_at = 0.0
        self._running = False
        self._due_at = math.inf
        """The earliest due time that was heard of during a run, which may have read the server before that was due."""
        self._failed = False
        self._is_back = False
        """The server came back during a run, which may have failed before that."""
        self._sooner = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._prompt:
            self._reachability.on_return(self.retry_now, loop)
        self._wakes_at = 0.0 if self._prompt else loop.time() + self._interval
        self._task = loop.create_task(self._repeat(loop))

    async def close(self) -> None:
        await end_tasks([self._task])

    def due_in(self, wait_ms: int) -> None:
        """Something is due in `wait_ms`: run then, if that is earlier than planned."""
        at = asyncio.get_running_loop().time() + wait_ms / 1000
        if self._running:
            self._due_at = min(self._due_at, at)
            return
        # Not after a failure: each answer about jobs would bring the next run forward, so that there would be no pause.
        if at < self._wakes_at and not self._failed:
            self._wakes_at = at
            self._sooner.set()

    def retry_now(self) -> None:
        """The server is back: a run that failed is made again at once."""
        self._is_back = self._running
        if self._failed:
            self._wakes_at = 0.0
            self._sooner.set()

    async def _repeat(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            await self._sleep(loop)
            self._running, self._is_back, self._due_at = True, False, math.inf
            pause = await self._run_once()
            self._running = False
            planned = loop.time() + pause
            if self._failed:
                self._wakes_at = 0.0 if self._is_back else planned
            else:
                self._wakes_at = min(planned, self._due_at)

    async def _sleep(self, loop: asyncio.AbstractEventLoop) -> None:
        while (left := self._wakes_at - loop.time()) > 0:
            self._sooner.clear()
            try:
                async with asyncio.timeout(left):
                    await self._sooner.wait()
            except TimeoutError:
                return

    async def _run_once(self) -> float:
        """Run the duty; returns the seconds until the next run."""
        began = time.monotonic()
        try:
            report = await self._duty.run_once()
        except GroupMQError as error:
            report, failures = DutyReport(), [error]
        else:
            failures = [GroupMQError(text) for text in report.errors]
            self._on_report(report)
        for failure in failures:
            self._reachability.trouble(failure, self._duty.task)
        self._failed = bool(failures)
        if failures:
            return self._pauses.next() if self._prompt else self._interval
        self._pauses.reset()
        if report.called:  # otherwise nothing is known about the server
            self._reachability.answered(self._duty.task, began)
        if report.next_in is None or not self._prompt:
            return self._interval
        return min(report.next_in, self._interval)
