"""The scheduler: adds the occurrences of repeating jobs, and starts delayed jobs and parked groups on time."""

from __future__ import annotations

from typing import Any

from groupmq.client.operations import Operations
from groupmq.client.repeats import Repeating
from groupmq.worker.duties.duty import CarryOut, Done, seconds_until
from groupmq.worker.outage import PROMOTE, REPEAT


class Scheduler:
    """Adds a job for each tick of a repeating job that is due. Of each tick, exactly one scheduler makes a job."""

    task = REPEAT

    def __init__(self, operations: Operations[Any], carry_out: CarryOut) -> None:
        self._repeating = Repeating(operations)
        self._carry_out = carry_out
        self.last_run: int | None = None
        """The server's time of the last run: ticks after it are late at most, never missed."""

    async def run_once(self) -> Done:
        ran = await self._carry_out(self._repeating.run_due(self.last_run))
        self.last_run = ran.now
        return Done(ran.added, seconds_until(ran.wait_ms), tuple(ran.errors))


class Promotion:
    """Moves delayed jobs that are due to waiting, and wakes parked groups. Workers do that with every call."""

    task = PROMOTE

    def __init__(self, operations: Operations[Any], carry_out: CarryOut) -> None:
        self._operations = operations
        self._carry_out = carry_out

    async def run_once(self) -> Done:
        due = await self._carry_out(self._operations.run_due(expire=False))
        # 0 after all that is done: an expired lease is due, which is not for this duty.
        return Done(due.promoted + due.woken, seconds_until(due.wait_ms) or None)
