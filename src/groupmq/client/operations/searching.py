"""Finding jobs by what is true of them, and acting on all that are found, in bounded steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from groupmq.client.operations.hunting import Hunt, Pace
from groupmq.client.operations.settling import Settling
from groupmq.client.operations.steps import STATES, J, Steps, one
from groupmq.client.operations.walks import StateWalk
from groupmq.core.checks import one_of, whole
from groupmq.core.errors import ConfigurationError
from groupmq.core.filters import JobFilter, Matcher, checked_filter
from groupmq.core.message_shape import shape_of
from groupmq.core.pages import FailureGroup, FailureGroups, JobPage, RemoveReport, RetryReport
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, UNSETTLED

SPANS = 24
REASONS_PER_CALL = 250


class Searching(Settling[J]):
    def search(
        self, filter: JobFilter | None, state: str, limit: int, cursor: str | None, scan: int
    ) -> Steps[JobPage[J]]:
        wanted = checked_filter(filter)
        state = one_of(wanted.state or state, "state", *STATES)
        whole(limit, "limit", 1, 10_000)
        whole(scan, "scan", 1, 1_000_000)
        matcher = Matcher(wanted)
        walk = StateWalk(state, group_id=wanted.group_id, age_ms=matcher.older_ms, cursor=cursor)
        if wanted.job_id is not None:
            return (yield from self._search_one(wanted.job_id, matcher, walk))
        # Where every job matches, none is read that is not told.
        size = limit if wanted == JobFilter(state=wanted.state) else CHUNK
        found: list[J] = []
        scanned = 0
        while len(found) < limit and scanned < scan and not walk.ended:
            entries = list((yield from walk.next_page(min(scan - scanned, size))))
            jobs = yield from self.get_jobs_by_id([job_id for job_id, _ in entries])
            for at, (job, (_, place)) in enumerate(zip(jobs, entries, strict=True), start=1):
                scanned += 1
                if job is None or job.state != state:
                    continue
                if matcher.is_past(job, walk.now):
                    return JobPage(found, None, scanned, walk.total)
                if matcher.matches(job, walk.now):
                    found.append(job)
                if len(found) == limit:
                    walk.stop_at(place, last=at == len(entries))
                    break
        return JobPage(found, walk.cursor(), scanned, walk.total)

    def _search_one(self, job_id: str, matcher: Matcher, walk: StateWalk) -> Steps[JobPage[J]]:
        yield from walk.next_page(1)  # for the time, and how many there are
        (job,) = yield from self.get_jobs_by_id([job_id])
        hit = job is not None and job.state == walk.state and matcher.matches(job, walk.now)
        return JobPage([job] if job is not None and hit else [], None, 1, walk.total)

    def retry_many(
        self,
        filter: JobFilter | None,
        rate: float | None,
        limit: int | None,
        dry_run: bool,
        progress: Callable[[RetryReport], object] | None,
    ) -> Steps[RetryReport]:
        hunt: Hunt[J] = Hunt(self, checked_filter(filter), "failed", limit, dry_run=dry_run)
        pace, tell = Pace(rate), _checked(progress)
        while found := (yield from hunt.next_step(pace.step)):
            if not dry_run:
                yield from self._retry([(job.id, stamp) for job, stamp in found], hunt, pace)
            tell(hunt.report(RetryReport))
        return hunt.report(RetryReport)

    def _retry(self, left: Sequence[tuple[str, str]], hunt: Hunt[J], pace: Pace) -> Steps[None]:
        while left:
            ids, stamps = [job_id for job_id, _ in left], [stamp for _, stamp in left]
            call = commands.retry_all(ids, stamps if all(stamps) else None)
            statuses = yield from one(call._replace(after=pace.wait()))
            done = statuses.count(commands.DONE)
            pace.did(done)
            hunt.done += done
            hunt.skipped += statuses.count(commands.LEFT)
            left = [entry for entry, status in zip(left, statuses, strict=True) if status == UNSETTLED]

    def remove_many(
        self,
        filter: JobFilter | None,
        state: str,
        rate: float | None,
        limit: int | None,
        dry_run: bool,
        progress: Callable[[RemoveReport], object] | None,
    ) -> Steps[RemoveReport]:
        wanted = checked_filter(filter)
        state = one_of(wanted.state or state, "state", *STATES)
        hunt: Hunt[J] = Hunt(self, wanted, state, limit, dry_run=dry_run)
        pace, tell = Pace(rate), _checked(progress)
        while found := (yield from hunt.next_step(pace.step)):
            if not dry_run:
                removed = yield from self.remove_all([job.id for job, _ in found], [state], wait=pace.wait())
                pace.did(removed)
                hunt.done += removed
                hunt.skipped += len(found) - removed
            tell(hunt.report(RemoveReport))
        return hunt.report(RemoveReport)

    def get_failure_groups(self, limit: int, scan: int) -> Steps[FailureGroups]:
        whole(limit, "limit", 0, 10_000)
        whole(scan, "scan", 1, 1_000_000)
        found: list[commands.Reason] = []
        while True:
            after = (found[-1].score, found[-1].id) if found else None
            page: commands.Reasons = yield commands.reasons(min(REASONS_PER_CALL, scan - len(found)), after)
            found += page.found
            if not page.found or len(found) >= min(scan, page.total):
                return failure_groups(found, page.now, page.total, limit)


def _checked(progress: Callable[..., object] | None) -> Callable[..., object]:
    if progress is None:
        return lambda report: None
    if not callable(progress):
        raise ConfigurationError.expected("progress", "a callable that takes a report, or None", progress)
    return progress


def failure_groups(found: Sequence[commands.Reason], now: int, total: int, limit: int) -> FailureGroups:
    """Failures by class and shape, the most frequent first. `found`: the newest first."""
    if not found:
        return FailureGroups([], 0, total, None, None)
    since = min(one.ended for one in found)
    kinds: dict[tuple[str, str], list[commands.Reason]] = {}
    for failure in found:
        kinds.setdefault((failure.error, shape_of(failure.reason, failure.error)), []).append(failure)
    groups = [_failure_group(error, shape, members, since, now) for (error, shape), members in kinds.items()]
    groups.sort(key=lambda group: (-group.count, -group.last.timestamp()))
    return FailureGroups(groups[:limit], len(found), total, _moment(since), _moment(now))


def _failure_group(error: str, shape: str, members: Sequence[commands.Reason], since: int, now: int) -> FailureGroup:
    series = [0] * SPANS
    for failure in members:
        series[min(SPANS - 1, (failure.ended - since) * SPANS // max(1, now - since))] += 1
    ends = [failure.ended for failure in members]
    last = max(members, key=lambda failure: failure.ended)
    return FailureGroup(error or None, shape, len(members), _moment(min(ends)), _moment(last.ended), last.id, series)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
