"""What time makes due: delayed jobs join their groups, groups wake, leases expire, and jobs past their ttl fail."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.client.duties.duty import seconds_until
from groupmq.client.queue.caller import Caller
from groupmq.core.views import DutyReport, ExpiredJob, StalledJob
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy


class DueWork:
    """Does what is due now, in as many bounded calls as it takes. The calls by which a worker takes jobs do so too."""

    task = "look for stalled jobs"

    def __init__(
        self,
        call: Caller,
        policy: Callable[[], Policy],
        *,
        promote: bool = True,
        unpark: bool = True,
        expire: bool = True,
    ) -> None:
        """`promote`: delayed jobs. `unpark`: groups that wait for a time. `expire`: leases, ttls and old entries."""
        self._call = call
        self._policy = policy
        self._promote, self._unpark, self._expire = promote, unpark, expire

    async def run_once(self) -> DutyReport:
        policy = self._policy()
        promoted = woken = 0
        stalled: list[StalledJob] = []
        expired: list[ExpiredJob] = []
        while True:
            made = commands.due(policy, promote=self._promote, unpark=self._unpark, expire=self._expire)
            due = await self._call(made)
            promoted, woken = promoted + due.promoted, woken + due.woken
            stalled += (StalledJob(*job) for job in due.stalled)
            expired += (ExpiredJob(*job) for job in due.expired)
            has_more = due.wait_ms == 0 and (due.promoted or due.woken or due.stalled or due.overdue)
            if not has_more and not due.more_expired:
                break
        return DutyReport(
            done=promoted + woken + len(stalled) + len(expired),
            next_in=seconds_until(due.wait_ms),
            promoted=promoted,
            woken=woken,
            stalled=tuple(stalled),
            expired=tuple(expired),
        )
