"""The duties of a queue, each run once: a bounded, idempotent operation that reports what it did.

Workers run the same duties in the background (`worker/duties/maintenance.py`); `groupmq scheduler` and `groupmq
recovery` run nothing else. Any number of copies is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.answers import merging
from groupmq.client.duties.due_work import DueWork
from groupmq.client.duties.duty import PeriodicDuty
from groupmq.client.duties.presence import PresenceCleanup
from groupmq.client.duties.retention import AgeRetention
from groupmq.core.checks import one_of
from groupmq.core.duty import DutyName
from groupmq.core.views import DutyReport
from groupmq.protocol.commands import Policy

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods


async def run_duty_once(queue: QueueMethods, duty: DutyName) -> DutyReport:
    """Run one duty of the workers now. The report states what it did, and when there is more to do.

    `scheduler`: repeats, delayed jobs, groups whose wait is over. `recovery`: leases that ran out, jobs past their
    ttl. `cleanup`: retention by age, workers that stopped without deregistering. Any number of copies is safe.
    """
    one_of(duty, "duty", "scheduler", "recovery", "cleanup")
    if duty == "scheduler":
        return await _run(queue, queue._scheduler, _due_work(queue, expire=False))
    if duty == "recovery":
        return await _run(queue, _due_work(queue, promote=False))
    return await _run(queue, AgeRetention(queue._call, lambda: queue.options), PresenceCleanup(queue._call))


async def run_scheduler_once(queue: QueueMethods) -> int:
    """Do everything that is due now: repeats, delayed jobs, back-offs, expired leases. Returns how many there were."""
    return (await _run(queue, queue._scheduler, _due_work(queue))).done


async def promote_delayed_jobs(queue: QueueMethods) -> int:
    """Move delayed jobs that are due into their groups, and return how many."""
    return (await _run(queue, _due_work(queue, unpark=False, expire=False))).promoted


async def recover_delayed_groups(queue: QueueMethods) -> int:
    """Wake groups whose back-off is over, and return how many."""
    return (await _run(queue, _due_work(queue, promote=False, expire=False))).woken


async def check_stalled_jobs(queue: QueueMethods) -> list[str]:
    """Take back jobs whose lease expired, and return their ids."""
    return [job.id for job in (await _run(queue, _due_work(queue, promote=False, unpark=False))).stalled]


def _due_work(queue: QueueMethods, *, promote: bool = True, unpark: bool = True, expire: bool = True) -> DueWork:
    def policy() -> Policy:
        return Policy(queue.options.max_attempts, -1, queue.options.keep)

    return DueWork(queue._call, policy, promote=promote, unpark=unpark, expire=expire)


async def _run(queue: QueueMethods, *duties: PeriodicDuty) -> DutyReport:
    """Run duties one after the other, and return their reports as one."""
    reports = [await duty.run_once() for duty in duties]
    report = merging.duty([one for one in reports if one is not None])
    queue._log_ended_by_time(report.stalled, report.expired)
    return report
