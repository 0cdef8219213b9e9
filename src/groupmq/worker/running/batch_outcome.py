"""Decides what the end of a batch means for each of its jobs. Pure, no I/O.

Jobs of a group end in their order: the jobs behind one that holds its group are given back untouched. So no job is
recorded as done while a job ahead of it in its group has to run again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from groupmq.client.job import Job
from groupmq.core.errors import BatchFailed, HandlerTimeout, RateLimited, Snooze
from groupmq.core.wording import number
from groupmq.protocol.commands import RetryOutcome
from groupmq.worker.running.outcome import OutcomePolicy, RunReport
from groupmq.worker.running.stopping import StopReason


def returned(policy: OutcomePolicy, jobs: Sequence[Job], value: Any) -> list[RunReport]:
    """The handler returned: None, or a list with a result or an exception for each job."""
    if value is None:
        return [policy.returned(job, None) for job in jobs]
    if not isinstance(value, list | tuple) or len(value) != len(jobs):
        return raised(policy, jobs, _misshapen(value, len(jobs)))
    ends = [
        policy.raised(job, one) if isinstance(one, BaseException) else policy.returned(job, one)
        for job, one in zip(jobs, value, strict=True)
    ]
    return _in_order(policy, ends)


def raised(policy: OutcomePolicy, jobs: Sequence[Job], error: BaseException) -> list[RunReport]:
    """The handler raised. Unless it says how far it got, nothing is known to be done: the first job is tried again."""
    if isinstance(error, BatchFailed):
        if not _fits(error, jobs):
            return _first_failed(policy, jobs, _misplaced(error, len(jobs)))
        reports = _done(policy, jobs, error)
        reports.append(policy.raised(jobs[error.at], error.__cause__ or error))
        reports += [policy.released(job, begun=True) for job in jobs[error.at + 1 :]]
        return _in_order(policy, reports)
    if isinstance(error, RateLimited) and jobs[0].group_id is None:
        # There is no group that could rest, so each job waits: given back untouched, it would be taken again at once.
        return [policy.rate_limited(job, error) for job in jobs]
    if isinstance(error, Snooze) and jobs[0].group_id is None:
        return [policy.snoozed(job, error) for job in jobs]
    return _first_failed(policy, jobs, error)


def stopped(
    policy: OutcomePolicy,
    jobs: Sequence[Job],
    error: BaseException,
    stop_reason: StopReason,
    cancelled: Collection[int],
    limit: float,
    *,
    abandoned: bool,
    begun: bool = True,
) -> list[RunReport]:
    """The handler was stopped, or not called at all (see `begun`).

    `cancelled`: fences of the jobs that an operator cancelled; `limit`: the timeout of the batch.

    A handler that raises BatchFailed when it is stopped says how far it got.
    """
    reports = _done(policy, jobs, error) if isinstance(error, BatchFailed) and _fits(error, jobs) else []
    left = jobs[len(reports) :]
    holds = any(_holds_group(policy, report) for report in reports)
    charged = left[:1] if stop_reason == "timeout" and not holds else ()
    for job in left:
        if job.fence in cancelled:
            reports.append(policy.cancelled(job, abandoned=abandoned))
        elif job in charged:
            reports += _first_failed(policy, charged, HandlerTimeout(job.id, limit), alone=len(jobs) == 1)
        else:
            reports.append(policy.released(job, begun=begun))
    return reports


def _first_failed(
    policy: OutcomePolicy, jobs: Sequence[Job], error: BaseException, *, alone: bool | None = None
) -> list[RunReport]:
    """The first job failed an attempt; the others are given back.

    FailJob does not say which of several jobs it means. So the first is tried again alone; if the handler raises
    FailJob then, the job fails for good.
    """
    first, others = jobs[0], jobs[1:]
    alone = not others if alone is None else alone
    report = policy.raised(first, error) if alone else policy.retried(first, error)
    return [report, *(policy.released(job, begun=True) for job in others)]


def _done(policy: OutcomePolicy, jobs: Sequence[Job], error: BatchFailed) -> list[RunReport]:
    """The jobs before the one that failed."""
    results = error.results if error.results is not None else [None] * error.at
    return _in_order(policy, [policy.returned(job, result) for job, result in zip(jobs, results, strict=False)])


def _in_order(policy: OutcomePolicy, reports: list[RunReport]) -> list[RunReport]:
    """Give back the jobs behind one that holds or blocks its group: jobs of a group end in order."""
    for at, report in enumerate(reports):
        if _holds_group(policy, report):
            return reports[: at + 1] + [policy.released(behind.job, begun=True) for behind in reports[at + 1 :]]
    return reports


def _fits(error: BatchFailed, jobs: Sequence[Job]) -> bool:
    """Whether the error says how far the handler got, in a way that fits this batch."""
    return error.at < len(jobs) and (error.results is None or len(error.results) == error.at)


def _holds_group(policy: OutcomePolicy, report: RunReport) -> bool:
    """Whether the jobs behind this one must not end before it."""
    if report.job.group_id is None:
        return False
    if report.kind == "failed":
        return policy.blocks(report.job)
    if report.kind == "snoozed":
        return not report.yields
    if isinstance(report.outcome, RetryOutcome):
        return not report.outcome.yields
    return report.kind == "rate_limited"


def _misshapen(value: Any, size: int) -> TypeError:
    got = number(len(value), "result") if isinstance(value, list | tuple) else f"a {type(value).__name__}"
    wanted = number(size, "result")
    return TypeError(f"a handler of batches returns None or a list of {wanted}, one for each job; got {got}")


def _misplaced(error: BatchFailed, size: int) -> IndexError:
    results = "" if error.results is None else f" with {number(len(error.results), 'result')}"
    batch = f"a batch of {number(size, 'job')}"
    misplaced = IndexError(f"BatchFailed(at={error.at}){results} does not fit {batch}: {error}")
    misplaced.__cause__ = error
    return misplaced
