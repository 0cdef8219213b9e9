"""Recovery: takes back the jobs of workers that died, and fails jobs whose ttl has ended."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.client.queue.caller import Caller
from groupmq.client.queue.upkeep import run_due
from groupmq.protocol.commands import Expired, Policy, Stalled
from groupmq.worker.duties.duty import DutyDone, seconds_until
from groupmq.worker.outage import RECOVER


class Recovery:
    """Looks for expired leases and for jobs past their ttl, and deletes what else has expired.

    `on_stalled` is called for each job taken back, `on_expired` for each that failed because of its ttl.
    """

    task = RECOVER

    def __init__(
        self,
        call: Caller,
        policy: Callable[[], Policy],
        on_stalled: Callable[[Stalled], None],
        on_expired: Callable[[Expired], None],
    ) -> None:
        self._call = call
        self._policy = policy
        self._on_stalled = on_stalled
        self._on_expired = on_expired

    async def run_once(self) -> DutyDone:
        due = await run_due(self._call, self._policy())
        for stalled in due.stalled:
            self._on_stalled(stalled)
        for expired in due.expired:
            self._on_expired(expired)
        return DutyDone(len(due.stalled) + len(due.expired) + due.woken, seconds_until(due.wait_ms) or None)
