"""Running jobs: one task per run, its hard timeout, its cancellation, and the report at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from groupmq.errors import HandlerTimeout
from groupmq.job import Job
from groupmq.worker.outcome import Judge, Report

Verdict = Literal["timeout", "lease-lost", "closing", "cancelled"]
GRACE = 1.0
"""Seconds a cancelled handler has to end before its slot is taken back without it."""


class Run:
    """One run of one job in this worker."""

    __slots__ = ("begun", "give_up", "hard_end", "job", "started", "task", "timer", "verdict")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.started = time.monotonic()
        self.hard_end = self.started + job.timeout if job.timeout is not None else None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.give_up: asyncio.TimerHandle | None = None
        self.verdict: Verdict | None = None
        self.begun = False


class Executor:
    """Holds the runs of a worker. `ended` is called exactly once per run, with its report or None."""

    def __init__(
        self,
        invoke: Callable[[Job], Awaitable[Any]],
        judge: Judge,
        ended: Callable[[Run, Report | None], None],
    ) -> None:
        self._invoke = invoke
        self._judge = judge
        self._ended = ended
        # By token: after a lost lease the same job may be back here while its old handler still ends.
        self.runs: dict[int, Run] = {}
        self._doomed: set[int] = set()

    def start(self, job: Job) -> None:
        run = Run(job)
        self.runs[job.fence] = run
        loop = asyncio.get_running_loop()
        if job.timeout is not None:
            run.timer = loop.call_later(job.timeout, self.stop, run, "timeout")
        run.task = loop.create_task(self._run(run))
        if job.fence in self._doomed:
            self.stop(run, "cancelled")

    async def _run(self, run: Run) -> None:
        """Everything a handler can raise ends here; a SystemExit that got past would end the whole worker."""
        run.begun = True
        try:
            value = await self._invoke(run.job)
        except GeneratorExit:
            # Raised by the handler, or by an interpreter that throws the task away; only the first ends the task.
            if run.task is not None:
                run.task.add_done_callback(lambda _: self._end(run, error=RuntimeError("handler raised GeneratorExit")))
            raise
        except BaseException as error:
            self._end(run, error=error)
        else:
            self._end(run, value=value)

    def _end(self, run: Run, *, value: Any = None, error: BaseException | None = None) -> None:
        if self.runs.pop(run.job.fence, None) is None:
            return
        if run.timer is not None:
            run.timer.cancel()
        if run.give_up is not None:
            run.give_up.cancel()
        self._ended(run, self._report(run, value, error))

    def _report(self, run: Run, value: Any, error: BaseException | None) -> Report | None:
        """None when there is nothing to say: the lease is another's."""
        job = run.job
        if run.verdict == "lease-lost":
            return None
        if error is None:
            return self._judge.returned(job, value)
        if run.verdict == "closing":
            return self._judge.released(job)
        if run.verdict == "cancelled":
            return self._judge.cancelled(job)
        if run.verdict == "timeout":
            return self._judge.raised(job, HandlerTimeout(job.id, job.timeout or 0.0))
        return self._judge.raised(job, error)

    def stop(self, run: Run, verdict: Verdict) -> None:
        """Cancel a run. If the handler does not end within GRACE, its slot goes on without it."""
        if run.verdict is not None or run.task is None or run.job.fence not in self.runs:
            return
        run.verdict = verdict
        run.job._end_run()
        run.task.cancel()
        if not run.begun:
            # A task that is cancelled before its first step never takes one.
            asyncio.get_running_loop().call_soon(self._abandon, run)
        run.give_up = asyncio.get_running_loop().call_later(GRACE, self._abandon, run)

    def abandon_all(self) -> None:
        """Take back every slot, whatever its handler still does."""
        for run in list(self.runs.values()):
            self._abandon(run)

    def _abandon(self, run: Run) -> None:
        self._end(run, error=asyncio.CancelledError())

    def lease_lost(self, token: int) -> Run | None:
        run = self.runs.get(token)
        if run is not None:
            self.stop(run, "lease-lost")
        return run

    def cancel(self, tokens: Sequence[int]) -> None:
        """These runs are to end, all that there are at the moment; some may not have begun yet."""
        self._doomed = {token for token in tokens if token not in self.runs}
        for token in tokens:
            if token in self.runs:
                self.stop(self.runs[token], "cancelled")

    def held(self) -> list[tuple[str, int]]:
        """Leases to renew, (id, token). Called from the heartbeat thread.

        A run past its hard timeout is left out: even a handler that hangs the whole loop, so that its cancellation
        never happens, must not hold its group for ever.
        """
        now = time.monotonic()
        return [
            (run.job.id, token)
            for token, run in tuple(self.runs.items())
            if run.hard_end is None or now < run.hard_end + GRACE
        ]
