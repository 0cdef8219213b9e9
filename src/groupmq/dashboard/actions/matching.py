"""Retry or remove all jobs that a search finds: a dry run counts them, then a task does it in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupmq import JobFilter
from groupmq.dashboard import search
from groupmq.dashboard.actions.action import Action, Done, Plan, jobs_of
from groupmq.dashboard.actions.given import BadField, Given
from groupmq.dashboard.actions.tasks import Task
from groupmq.dashboard.documents.choice import choices
from groupmq.dashboard.documents.plan import Field, field
from groupmq.dashboard.documents.view import View
from groupmq.dashboard.filters import duration

if TYPE_CHECKING:
    from groupmq import RemoveReport, RetryReport

STATES = ("failed", "completed", "waiting", "delayed")
_MOST = 10_000_000
_SAMPLE = 5


def wanted(view: View, given: Given) -> JobFilter | None:
    """The filter that a search line means. Raises if a part was not understood: the other parts match more jobs."""
    parsed = search.parse(given.text("q"))
    if parsed.problems:
        raise BadField("q", "; ".join(parsed.problems))
    if "text" in parsed.arguments and view.redactor.active:
        raise BadField("q", "data: cannot be used here while payloads are redacted: the count would give them away")
    return JobFilter(**parsed.arguments) if parsed.arguments else None


def time_taken(matched: int, rate: float | None) -> list[str]:
    """A sentence about how long the action takes at this rate; none without a rate."""
    if rate is None or not matched:
        return []
    return [f"At {rate:g} a second this takes about {duration(matched / rate)}."]


def given_rate(given: Given) -> float | None:
    return given.number("rate", 0.01, 100_000)


def rate_field(given: Given) -> Field:
    return field("rate", "Jobs per second", kind="number", value=given.text("rate"), hint="leave empty for no limit")


def words(q: str) -> str:
    return f" matching {q}" if q else ""


class RetryMatching(Action):
    name = "retry-matching"
    title = "Retry failed jobs"
    button = "Retry them"
    words = "Retry all failed jobs that a search finds, step by step. Returns a task."
    takes = ("q", "rate", "limit")
    bulk = True

    async def plan(self, view: View, given: Given) -> Plan:
        limit, rate = given.whole("limit", 1, _MOST), given_rate(given)
        report = await view.queue.retry_many(wanted(view, given), limit=limit, dry_run=True)
        q = given.text("q")
        effects = [
            f"{jobs_of(report.matched, 'failed')}{words(q)} will run again, oldest first; attempts count from zero.",
            "A job that fails again in the meantime is not retried twice.",
            *time_taken(report.matched, rate),
        ]
        order = "No group is affected."
        if report.groups:
            groups = "1 group" if report.groups == 1 else f"{report.groups:,} groups"
            order = f"Each job goes back to its original position in its group ({groups})."
        if report.overtaken:
            whose = "its group" if report.overtaken == 1 else "their groups"
            order += f" At least {jobs_of(report.overtaken)} will run late: later jobs of {whose} have run already."
        fields = [
            field("q", "Search", value=q, hint="for example error:TimeoutError group:user:42 older:10m"),
            rate_field(given),
            field(
                "limit", "At most this many jobs", kind="number", value=given.text("limit"), hint="leave empty for all"
            ),
        ]
        sample = await samples(view, report.sample)
        refused = None if report.matched else "No failed job matches."
        return Plan(effects, order, report.matched, refused, fields, sample)

    async def act(self, view: View, given: Given) -> Done:
        limit, rate = given.whole("limit", 1, _MOST), given_rate(given)
        queue, chosen = view.queue, wanted(view, given)

        async def run(task: Task) -> None:
            def report_progress(report: RetryReport) -> None:
                task.progress(done=report.retried, skipped=report.skipped, scanned=report.scanned)

            # The report of the run counts the jobs that it has reached so far. Only a dry run counts all that match.
            task.matched = (await queue.retry_many(chosen, limit=limit, dry_run=True)).matched
            report_progress(await queue.retry_many(chosen, rate=rate, limit=limit, progress=report_progress))

        title = f"Retry failed jobs{words(given.text('q'))}"
        task = view.shared.tasks.start(queue, self, title, view.user, run, given.fields)
        return Done("Retrying has begun.", task=task)


class RemoveMatching(Action):
    name = "remove-matching"
    title = "Remove jobs"
    button = "Remove them"
    words = "Remove all jobs of a state that a search finds, step by step. Returns a task."
    takes = ("q", "state", "rate", "limit")
    danger = True
    bulk = True

    async def plan(self, view: View, given: Given) -> Plan:
        state, limit, rate = given.one_of("state", STATES), given.whole("limit", 1, _MOST), given_rate(given)
        report = await view.queue.remove_many(wanted(view, given), state=state, limit=limit, dry_run=True)
        q = given.text("q")
        effects = [f"{jobs_of(report.matched, state)}{words(q)} will be removed. This cannot be undone."]
        effects += time_taken(report.matched, rate)
        order = "No job that has yet to run is affected."
        if state in ("waiting", "delayed"):
            order = "The remaining jobs keep their order and move up."
        fields = [
            field("q", "Search", value=q, hint="for example error:TimeoutError group:user:42 older:10m"),
            field("state", "State", kind="select", value=state, options=choices(STATES, state)),
            rate_field(given),
            field(
                "limit", "At most this many jobs", kind="number", value=given.text("limit"), hint="leave empty for all"
            ),
        ]
        refused = None if report.matched else f"No {state} job matches."
        return Plan(effects, order, report.matched, refused, fields, await samples(view, report.sample))

    async def act(self, view: View, given: Given) -> Done:
        state, limit, rate = given.one_of("state", STATES), given.whole("limit", 1, _MOST), given_rate(given)
        queue, chosen = view.queue, wanted(view, given)

        async def run(task: Task) -> None:
            def report_progress(report: RemoveReport) -> None:
                task.progress(done=report.removed, skipped=report.skipped, scanned=report.scanned)

            task.matched = (await queue.remove_many(chosen, state=state, limit=limit, dry_run=True)).matched
            report_progress(
                await queue.remove_many(chosen, state=state, rate=rate, limit=limit, progress=report_progress)
            )

        title = f"Remove {state} jobs{words(given.text('q'))}"
        task = view.shared.tasks.start(queue, self, title, view.user, run, given.fields)
        return Done("Removing has begun.", task=task)


async def samples(view: View, found: Any) -> list[Any]:
    """A few of the jobs, as rows."""
    rows = []
    for one in list(found)[:_SAMPLE]:
        job = await view.queue.get_job(one) if isinstance(one, str) else one
        if job is not None:
            rows.append(view.job(job))
    return rows


ACTIONS: tuple[Action, ...] = (RetryMatching(), RemoveMatching())
