"""Recovery: takes back the jobs of workers that died, and fails jobs whose ttl has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from groupmq.protocol.commands import Due, Stalled
from groupmq.worker.duties.duty import DutyDone, seconds_until
from groupmq.worker.outage import RECOVER


class Recovery:
    """Looks for expired leases. `on_stalled` is called for each job that was taken back."""

    task = RECOVER

    def __init__(self, find_due: Callable[[], Awaitable[Due]], on_stalled: Callable[[Stalled], None]) -> None:
        self._find_due = find_due
        self._on_stalled = on_stalled

    async def run_once(self) -> DutyDone:
        due = await self._find_due()
        for stalled in due.stalled:
            self._on_stalled(stalled)
        return DutyDone(len(due.stalled) + due.woken, seconds_until(due.wait_ms) or None)
