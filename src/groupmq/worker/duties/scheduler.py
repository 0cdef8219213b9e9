"""The scheduler: adds the occurrences of repeating jobs, and starts delayed jobs and parked groups on time."""

from __future__ import annotations

from groupmq.client.queue.caller import Caller
from groupmq.client.queue.upkeep import run_due, run_due_repeats
from groupmq.protocol.commands import Policy
from groupmq.worker.duties.duty import DutyDone, seconds_until
from groupmq.worker.outage import PROMOTE, REPEAT


class Scheduler:
    """Adds a job for each tick of a repeating job that is due. For each tick exactly one scheduler adds a job."""

    task = REPEAT

    def __init__(self, call: Caller) -> None:
        self._call = call
        self.last_run: int | None = None
        """The server's time of the last run. Ticks after it may be late, but are never missed."""

    async def run_once(self) -> DutyDone:
        ran = await run_due_repeats(self._call, self.last_run)
        self.last_run = ran.now
        return DutyDone(ran.added, seconds_until(ran.wait_ms), tuple(ran.errors))


class Promotion:
    """Moves delayed jobs that are due to waiting, and wakes parked groups. Workers do that with every call."""

    task = PROMOTE

    def __init__(self, call: Caller, policy: Policy) -> None:
        self._call = call
        self._policy = policy

    async def run_once(self) -> DutyDone:
        due = await run_due(self._call, self._policy, expire=False)
        # 0 means that an expired lease is due, and taking it back is the task of another duty.
        return DutyDone(due.promoted + due.woken, seconds_until(due.wait_ms) or None)
