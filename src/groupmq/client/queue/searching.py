"""Finding jobs that match a filter, and acting on all of them in bounded steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from groupmq.client.answers.failures import failure_groups
from groupmq.client.job import Job
from groupmq.client.queue.matching import SAMPLE, MatchingJobs, StepRate
from groupmq.client.queue.overtaking import Overtaking
from groupmq.client.queue.settling import remove_all
from groupmq.client.queue.walks import Walk
from groupmq.core.checks import one_of, whole
from groupmq.core.errors import ConfigurationError
from groupmq.core.filters import STATES, JobFilter, Matcher, checked_filter
from groupmq.core.pages import FailureGroups, JobPage, RemoveReport, RetryReport
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, UNSETTLED

if TYPE_CHECKING:
    from groupmq.client.queue.methods import QueueMethods

REASONS_PER_CALL = 250


async def search(
    queue: QueueMethods,
    filter: JobFilter | None = None,
    *,
    state: str = "failed",
    limit: int = 50,
    cursor: str | None = None,
    scan: int = 2000,
) -> JobPage[Job]:
    """Jobs of one state that match the filter; finished ones newest first.

    Looks at no more than `scan` jobs: a page may have fewer than `limit`, or none, and still have a cursor.
    """
    wanted = checked_filter(filter)
    state = one_of(wanted.state or state, "state", *STATES)
    whole(limit, "limit", 1, 10_000)
    whole(scan, "scan", 1, 1_000_000)
    matcher = Matcher(wanted)
    walk = queue._walk(state, group_id=wanted.group_id, age_ms=matcher.older_ms, cursor=cursor)
    if wanted.job_id is not None:
        return await _search_one(queue, wanted.job_id, matcher, walk)
    # If every job matches, only as many are read as are returned.
    size = limit if wanted == JobFilter(state=wanted.state) else CHUNK
    found: list[Job] = []
    scanned = 0
    while len(found) < limit and scanned < scan and not walk.ended:
        entries = list(await walk.next_page(min(scan - scanned, size)))
        jobs = await queue.get_jobs_by_id([job_id for job_id, _ in entries])
        for at, (job, (_, position)) in enumerate(zip(jobs, entries, strict=True), start=1):
            scanned += 1
            if job is None or job.state != state:
                continue
            if matcher.is_past(job, walk.now):
                return JobPage(found, None, scanned, walk.total)
            if matcher.matches(job, walk.now):
                found.append(job)
            if len(found) == limit:
                walk.stop_at(position, last=at == len(entries))
                break
    return JobPage(found, walk.cursor(), scanned, walk.total)


async def _search_one(queue: QueueMethods, job_id: str, matcher: Matcher, walk: Walk) -> JobPage[Job]:
    await walk.next_page(1)  # to learn the time of the server, and how many there are
    (job,) = await queue.get_jobs_by_id([job_id])
    hit = job is not None and job.state == walk.state and matcher.matches(job, walk.now)
    return JobPage([job] if job is not None and hit else [], None, 1, walk.total)


async def retry_many(
    queue: QueueMethods,
    filter: JobFilter | None = None,
    *,
    rate: float | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    progress: Callable[[RetryReport], object] | None = None,
) -> RetryReport:
    """Retry the failed jobs that match the filter, the oldest failure first, each with its original sort key.

    Each job that has failed by the time this begins is retried once, in small steps, at most `rate` jobs per
    second. With `dry_run` it only counts, and reports the jobs that would run after others of their group which
    have started since (`overtaken`). `progress` is called with the report after each step. A cancellation, or an
    error that `progress` raises, ends it between two steps.
    """
    matching = MatchingJobs(queue, checked_filter(filter), "failed", limit, dry_run=dry_run)
    step_rate, report, overtaking = StepRate(rate), _checked(progress), Overtaking(queue)
    while found := await matching.next_step(step_rate.step):
        if dry_run:
            for job, _ in found:
                overtaking.watch(job)
        else:
            await queue._retry_found(found, matching, step_rate)
        report(matching.report(RetryReport))
    overtaken = await overtaking.find()
    return replace(matching.report(RetryReport), overtaken=len(overtaken), overtaken_sample=overtaken[:SAMPLE])


async def retry_found(
    queue: QueueMethods, found: Sequence[tuple[Job, str]], matching: MatchingJobs, step_rate: StepRate
) -> None:
    """Retry the failed jobs of one step, and count them. A job that has not stayed failed since then is skipped."""
    left = [(job.id, stamp) for job, stamp in found]
    while left:
        ids, stamps = [job_id for job_id, _ in left], [stamp for _, stamp in left]
        call = commands.retry_all(ids, stamps if all(stamps) else None)
        statuses = await queue._call(call._replace(after=step_rate.wait()))
        done = statuses.count(commands.DONE)
        step_rate.did(done)
        matching.done += done
        matching.skipped += statuses.count(commands.LEFT)
        left = [entry for entry, status in zip(left, statuses, strict=True) if status == UNSETTLED]


async def remove_many(
    queue: QueueMethods,
    filter: JobFilter | None = None,
    *,
    state: str = "failed",
    rate: float | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    progress: Callable[[RemoveReport], object] | None = None,
) -> RemoveReport:
    """Remove the jobs of one state that match the filter, in small steps. See `retry_many` for the arguments."""
    wanted = checked_filter(filter)
    state = one_of(wanted.state or state, "state", *STATES)
    matching = MatchingJobs(queue, wanted, state, limit, dry_run=dry_run)
    step_rate, report = StepRate(rate), _checked(progress)
    while found := await matching.next_step(step_rate.step):
        if not dry_run:
            removed = await queue._remove_found([job for job, _ in found], state, step_rate.wait())
            step_rate.did(removed)
            matching.done += removed
            matching.skipped += len(found) - removed
        report(matching.report(RemoveReport))
    return matching.report(RemoveReport)


async def remove_found(queue: QueueMethods, jobs: Sequence[Job], state: str, wait: float) -> int:
    """Remove the jobs of one step after `wait` seconds, and return how many were still in the state."""
    return await remove_all(queue._call, [job.id for job in jobs], [state], wait=wait)


async def get_failure_groups(queue: QueueMethods, limit: int = 50, *, scan: int = 5000) -> FailureGroups:
    """Group the kept failed jobs by class of error and shape of message, the most frequent kind first.

    Looks at the newest `scan` failed jobs.
    """
    whole(limit, "limit", 0, 10_000)
    whole(scan, "scan", 1, 1_000_000)
    found, now, total = await queue._reasons(scan)
    return failure_groups(found, now, total, limit)


async def reasons(queue: QueueMethods, scan: int) -> tuple[list[commands.Reason], int, int]:
    """The newest failures, at most `scan`; the time, and how many failed jobs are kept."""
    found: list[commands.Reason] = []
    while True:
        after = (found[-1].score, found[-1].id) if found else None
        page: commands.Reasons = await queue._call(commands.reasons(min(REASONS_PER_CALL, scan - len(found)), after))
        found += page.found
        if not page.found or len(found) >= min(scan, page.total):
            return found, page.now, page.total


def _checked(progress: Callable[..., object] | None) -> Callable[..., object]:
    if progress is None:
        return lambda report: None
    if not callable(progress):
        raise ConfigurationError.expected("progress", "a callable that takes a report, or None", progress)
    return progress
