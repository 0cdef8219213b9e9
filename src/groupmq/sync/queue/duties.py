# Generated from src/groupmq/client/queue/duties.py by `make sync`; do not edit.
"""The duties of a queue, each run once: a bounded, idempotent operation that reports what it did.

Workers run the same duties in the background (`worker/duties/maintenance.py`); `groupmq scheduler` and `groupmq
recovery` run nothing else. Any number of copies is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.answers import merging
from groupmq.core.checks import one_of
from groupmq.core.duty import DutyName
from groupmq.core.views import DutyReport
from groupmq.sync.duties.due_work import do_due_work
from groupmq.sync.duties.duty import PeriodicDuty

if TYPE_CHECKING:
    from groupmq.sync.queue.methods import QueueMethods


def run_duty_once(queue: QueueMethods, duty: DutyName) -> DutyReport:
    """Run one duty of the workers now. The report states what it did, and when there is more to do.

    `scheduler`: repeats, delayed jobs, groups whose wait is over. `recovery`: leases that ran out, jobs past their
    ttl. `cleanup`: retention by age, workers that stopped without deregistering. Any number of copies is safe.
    """
    one_of(duty, "duty", "scheduler", "recovery", "cleanup")
    return _run(queue, *queue._duties.of(duty))


def run_scheduler_once(queue: QueueMethods) -> int:
    """Do everything that is due now: repeats, delayed jobs, back-offs, expired leases. Returns how many there were."""
    return _run(queue, queue._duties.scheduler, queue._duties.due_work).done


def promote_delayed_jobs(queue: QueueMethods) -> int:
    """Move delayed jobs that are due into their groups, and return how many."""
    return do_due_work(queue._call, queue._policy(), unpark=False, expire=False).promoted


def recover_delayed_groups(queue: QueueMethods) -> int:
    """Wake groups whose back-off is over, and return how many."""
    return do_due_work(queue._call, queue._policy(), promote=False, expire=False).unparked


def check_stalled_jobs(queue: QueueMethods) -> list[str]:
    """Take back jobs whose lease expired, and return their ids."""
    report = do_due_work(queue._call, queue._policy(), promote=False, unpark=False)
    queue._log_ended_by_time(report.stalled, report.expired)
    return [job.id for job in report.stalled]


def _run(queue: QueueMethods, *duties: PeriodicDuty) -> DutyReport:
    """Run duties one after the other, and return their reports as one."""
    report = merging.duty([duty.run_once() for duty in duties])
    queue._log_ended_by_time(report.stalled, report.expired)
    return report
