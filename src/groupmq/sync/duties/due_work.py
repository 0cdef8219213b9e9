# Generated from src/groupmq/client/duties/due_work.py by `make sync`; do not edit.
"""What time makes due: delayed jobs join their groups, groups wake, leases expire, and jobs past their ttl fail."""

from __future__ import annotations

from collections.abc import Callable

from groupmq.core.views import DutyReport, ExpiredJob, StalledJob
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy
from groupmq.sync.duties.duty import seconds_until
from groupmq.sync.queue.caller import Caller


class DueWork:
    """Promotion and recovery in one call of the server, as workers run them. The calls by which a worker takes jobs do
    this work too."""

    task = "look for stalled jobs"

    def __init__(self, call: Caller, policy: Callable[[], Policy]) -> None:
        self._call = call
        self._policy = policy

    def run_once(self) -> DutyReport:
        return do_due_work(self._call, self._policy())


def do_due_work(
    call: Caller, policy: Policy, *, promote: bool = True, unpark: bool = True, expire: bool = True
) -> DutyReport:
    """Do what is due now, in as many bounded calls as it takes.

    `promote`: delayed jobs. `unpark`: groups that wait for a time. `expire`: leases, ttls and old entries.
    """
    promoted = unparked = 0
    stalled: list[StalledJob] = []
    expired: list[ExpiredJob] = []
    while True:
        due = call(commands.due(policy, promote=promote, unpark=unpark, expire=expire))
        promoted, unparked = promoted + due.promoted, unparked + due.woken
        stalled += (StalledJob(*job) for job in due.stalled)
        expired += (ExpiredJob(*job) for job in due.expired)
        has_more = due.wait_ms == 0 and (due.promoted or due.woken or due.stalled or due.overdue)
        if not has_more and not due.more_expired:
            break
    return DutyReport(
        done=promoted + unparked + len(stalled) + len(expired),
        next_in=seconds_until(due.wait_ms),
        promoted=promoted,
        unparked=unparked,
        stalled=tuple(stalled),
        expired=tuple(expired),
    )
