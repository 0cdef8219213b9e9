"""The duties of a queue beside its jobs. Each is run once: a bounded, idempotent operation that says what it did.

Workers run them beside their jobs; `groupmq scheduler` and `groupmq recovery` run nothing else. Any number of copies is
safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.queue.upkeep import forget_gone_workers, remove_by_age, run_due, run_due_repeats
from groupmq.core.checks import one_of
from groupmq.core.duty import DutyName
from groupmq.core.views import DutyReport, ExpiredJob, StalledJob
from groupmq.protocol.commands import Due, Policy

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods


async def run_duty_once(queue: QueueMethods, duty: DutyName) -> DutyReport:
    """Run one duty of the workers now. The report says what it did, and when there is more to do.

    `scheduler`: repeats, delayed jobs, groups whose wait is over. `recovery`: leases that ran out, jobs past their
    ttl. `cleanup`: retention by age, workers that stopped without deregistering. Any number of copies is safe.
    """
    one_of(duty, "duty", "scheduler", "recovery", "cleanup")
    if duty == "scheduler":
        return await _schedule(queue)
    return await _recover(queue) if duty == "recovery" else await _clean_up(queue)


async def run_scheduler_once(queue: QueueMethods) -> int:
    """Do everything that is due now: repeats, delayed jobs, back-offs, expired leases. Returns how much it was."""
    ran = await run_due_repeats(queue._call, queue._looked_at_repeats)
    queue._looked_at_repeats = ran.now
    due = await _run_due(queue)
    return ran.added + due.promoted + due.woken + len(due.stalled) + len(due.expired)


async def promote_delayed_jobs(queue: QueueMethods) -> int:
    """Move delayed jobs that are due into their groups, and return how many."""
    return (await _run_due(queue, unpark=False, expire=False)).promoted


async def recover_delayed_groups(queue: QueueMethods) -> int:
    """Wake groups whose back-off is over, and return how many."""
    return (await _run_due(queue, promote=False, expire=False)).woken


async def check_stalled_jobs(queue: QueueMethods) -> list[str]:
    """Take back jobs whose lease expired, and return their ids."""
    due = await _run_due(queue, promote=False, unpark=False)
    return [stalled.id for stalled in due.stalled]


async def _run_due(queue: QueueMethods, *, promote: bool = True, unpark: bool = True, expire: bool = True) -> Due:
    policy = Policy(queue.options.max_attempts, -1, queue.options.keep)
    due = await run_due(queue._call, policy, promote=promote, unpark=unpark, expire=expire)
    queue._log_ended_by_time(due.stalled, due.expired)
    return due


async def _schedule(queue: QueueMethods) -> DutyReport:
    ran = await run_due_repeats(queue._call, queue._looked_at_repeats)
    queue._looked_at_repeats = ran.now
    due = await _run_due(queue, expire=False)
    # A wait of 0 with nothing done means that a lease has expired, and taking it back is the duty of recovery.
    waits = [wait / 1000 for wait in (ran.wait_ms, due.wait_ms) if wait > 0]
    return DutyReport(
        done=ran.added + due.promoted + due.woken,
        next_in=min(waits, default=None),
        added=ran.added,
        promoted=due.promoted,
        woken=due.woken,
        errors=tuple(ran.errors),
    )


async def _recover(queue: QueueMethods) -> DutyReport:
    due = await _run_due(queue, promote=False)
    return DutyReport(
        done=len(due.stalled) + len(due.expired) + due.woken,
        next_in=due.wait_ms / 1000 if due.wait_ms > 0 else None,
        woken=due.woken,
        stalled=tuple(StalledJob(*stalled) for stalled in due.stalled),
        expired=tuple(ExpiredJob(*expired) for expired in due.expired),
    )


async def _clean_up(queue: QueueMethods) -> DutyReport:
    removed = await remove_by_age(queue._call, queue.options)
    gone = await forget_gone_workers(queue._call)
    return DutyReport(done=removed + len(gone), removed=removed, gone_workers=tuple(gone))
