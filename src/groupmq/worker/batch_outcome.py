"""What the end of a batch means for each of its jobs: pure decisions, no I/O.

Jobs of a group end in their order: the jobs behind one that holds its group are given back untouched. So a job that
was not reported done before it can never be recorded as done after it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from groupmq.client.job import Job
from groupmq.core.errors import BatchFailed, HandlerTimeout, RateLimited, Snooze
from groupmq.worker.outcome import OutcomePolicy, RunReport
from groupmq.worker.stopping import Verdict


def returned(policy: OutcomePolicy, jobs: Sequence[Job], value: Any) -> list[RunReport]:
    """The handler returned: None, or a list with a result or an exception for each job."""
    if value is None:
        return [policy.returned(job, None) for job in jobs]
    if not isinstance(value, list | tuple) or len(value) != len(jobs):
        return raised(policy, jobs, _misshapen(value, len(jobs)))
    reports: list[RunReport] = []
    held = False
    for job, result in zip(jobs, value, strict=True):
        if held:
            reports.append(policy.released(job))
            continue
        failed = isinstance(result, BaseException)
        reports.append(policy.raised(job, result) if failed else policy.returned(job, result))
        held = job.group_id is not None and _holds_group(reports[-1])
    return reports


def raised(policy: OutcomePolicy, jobs: Sequence[Job], error: BaseException) -> list[RunReport]:
    """The handler raised. Unless it says how far it came, nothing is known to be done: the first job is tried again."""
    if isinstance(error, BatchFailed):
        if not _is_told(error, jobs):
            return _first_failed(policy, jobs, _misplaced(error, len(jobs)))
        failed = jobs[error.at]
        reports = _done(policy, jobs, error)
        reports.append(policy.raised(failed, error.__cause__ or error))
        return reports + [policy.released(job) for job in jobs[error.at + 1 :]]
    if isinstance(error, RateLimited) and jobs[0].group_id is None:
        # No group rests, so each of them waits; given back untouched they would be taken again at once.
        return [policy.rate_limited(job, error) for job in jobs]
    if isinstance(error, Snooze) and jobs[0].group_id is None:
        return [policy.snoozed(job, error) for job in jobs]
    return _first_failed(policy, jobs, error)


def stopped(
    policy: OutcomePolicy,
    jobs: Sequence[Job],
    error: BaseException,
    verdict: Verdict,
    cancelled: Collection[int],
    limit: float,
    *,
    abandoned: bool,
) -> list[RunReport]:
    """The handler was stopped. `cancelled`: fences of the jobs that an operator cancelled; `limit`: its timeout.

    A handler that raises BatchFailed when it is stopped says how far it came.
    """
    reports = _done(policy, jobs, error) if isinstance(error, BatchFailed) and _is_told(error, jobs) else []
    rest = jobs[len(reports) :]
    for job in rest:
        if job.fence in cancelled:
            reports.append(policy.cancelled(job, abandoned=abandoned))
        elif verdict == "timeout" and job is rest[0]:
            reports += _first_failed(policy, rest[:1], HandlerTimeout(job.id, limit), alone=len(jobs) == 1)
        else:
            reports.append(policy.released(job))
    return reports


def _first_failed(
    policy: OutcomePolicy, jobs: Sequence[Job], error: BaseException, *, alone: bool | None = None
) -> list[RunReport]:
    """The first job failed an attempt, the others are given back.

    FailJob does not name one of several jobs. So the first is tried again alone; if it raises FailJob then, it fails
    for good.
    """
    first, rest = jobs[0], jobs[1:]
    alone = not rest if alone is None else alone
    report = policy.raised(first, error) if alone else policy.retried(first, error)
    return [report, *(policy.released(job) for job in rest)]


def _done(policy: OutcomePolicy, jobs: Sequence[Job], error: BatchFailed) -> list[RunReport]:
    """The jobs before the one that failed."""
    results = error.results if error.results is not None else [None] * error.at
    return [policy.returned(job, result) for job, result in zip(jobs, results, strict=False)]


def _is_told(error: BatchFailed, jobs: Sequence[Job]) -> bool:
    """Whether the error says how far the handler came, in a way that fits this batch."""
    return error.at < len(jobs) and (error.results is None or len(error.results) == error.at)


def _holds_group(report: RunReport) -> bool:
    """Whether nothing behind this job may end before it."""
    if report.event == "snoozed":
        return not report.yields
    return report.event == "rate_limited" or (report.event == "retrying" and not report.outcome[4])


def _misshapen(value: Any, size: int) -> TypeError:
    got = f"{len(value)} results" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
    return TypeError(f"a handler of batches returns None or a list of {size} results, one for each job; got {got}")


def _misplaced(error: BatchFailed, size: int) -> IndexError:
    results = "" if error.results is None else f" with {len(error.results)} results"
    misplaced = IndexError(f"BatchFailed(at={error.at}){results} does not fit a batch of {size} jobs: {error}")
    misplaced.__cause__ = error
    return misplaced
