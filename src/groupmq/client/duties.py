"""The duties of a queue beside its jobs, each run once: one bounded, idempotent operation that says what it did.

Workers run them on their way; `groupmq scheduler` and `groupmq recovery` run them alone. Any number of copies is safe.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from groupmq.client.operations import Operations, Steps
from groupmq.client.repeats import Repeating
from groupmq.core.checks import one_of
from groupmq.core.snapshot import Snapshot
from groupmq.core.views import DutyReport, StalledJob

J = TypeVar("J", bound=Snapshot)
Duty = Literal["scheduler", "recovery", "cleanup"]
"""scheduler: repeats, delayed jobs, groups whose wait is over. recovery: leases that ran out, jobs past their ttl.
cleanup: retention by age, workers that stopped without saying so."""


class Duties(Generic[J]):
    """The duties of one queue object, which remembers when it last looked at repeating jobs."""

    def __init__(self, operations: Operations[J], repeating: Repeating[J]) -> None:
        self._operations = operations
        self._repeating = repeating
        self._looked_at_repeats: int | None = None

    def run(self, duty: Duty) -> Steps[DutyReport]:
        one_of(duty, "duty", "scheduler", "recovery", "cleanup")
        if duty == "scheduler":
            return (yield from self._schedule())
        return (yield from self._recover() if duty == "recovery" else self._clean_up())

    def run_all_due(self) -> Steps[int]:
        """Repeats, delayed jobs, back-offs and leases together; how many things were done."""
        ran = yield from self._repeating.run_due(self._looked_at_repeats)
        self._looked_at_repeats = ran.now
        due = yield from self._operations.run_due()
        return ran.added + due.promoted + due.woken + len(due.stalled)

    def _schedule(self) -> Steps[DutyReport]:
        ran = yield from self._repeating.run_due(self._looked_at_repeats)
        self._looked_at_repeats = ran.now
        due = yield from self._operations.run_due(expire=False)
        # A wait of 0 with nothing done: what is due is a lease, which is recovery's.
        waits = [wait / 1000 for wait in (ran.wait_ms, due.wait_ms) if wait > 0]
        return DutyReport(
            done=ran.added + due.promoted + due.woken,
            next_in=min(waits, default=None),
            added=ran.added,
            promoted=due.promoted,
            woken=due.woken,
            errors=tuple(ran.errors),
        )

    def _recover(self) -> Steps[DutyReport]:
        due = yield from self._operations.run_due(promote=False)
        return DutyReport(
            done=len(due.stalled) + due.woken,
            next_in=due.wait_ms / 1000 if due.wait_ms > 0 else None,
            woken=due.woken,
            stalled=tuple(StalledJob(*stalled) for stalled in due.stalled),
        )

    def _clean_up(self) -> Steps[DutyReport]:
        removed = yield from self._operations.clean_up()
        gone = yield from self._operations.forget_gone_workers()
        return DutyReport(done=removed + len(gone), removed=removed, gone_workers=tuple(gone))
