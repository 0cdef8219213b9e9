"""`groupmq job status` and `job list`."""

from __future__ import annotations

import json
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from groupmq.cli.job.selection import described, known_attempts, pick
from groupmq.cli.options.shared import STATES, examples, group_option, queue_argument, states_option
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import show
from groupmq.cli.output.readable_data import NotJson
from groupmq.sync import Job

NO_GROUP = "-"


@click.command(
    epilog=examples("groupmq job status --queue orders 0190f3a2", "groupmq job status -q orders 0190f3a2 --json")
)
@click.argument("job_id", metavar="ID")
@target_options
def status(target: Target, job_id: str) -> None:
    """Show everything that is stored about a job."""
    with target.existing() as queue:
        job = queue.require_job(job_id)
        show(target, {"queue": queue.name, **described(job)}, lambda: _details(job))


def _details(job: Job) -> Table:
    attempts, most = f"{job.attempts_made}", known_attempts(job)
    return tables.facts(
        [
            ("id", job.id),
            ("state", job.state),
            ("group", job.group_id),
            ("priority", job.priority),
            ("order_ms", str(job.order_ms)),
            ("attempts", attempts if most is None else f"{attempts} of {most}"),
            ("timeout", None if job.timeout is None else tables.span(job.timeout)),
            ("created", job.created_at),
            ("starts", job.run_at),
            ("started", job.started_at),
            ("finished", job.finished_at),
            ("blocks its group", job.blocks_since and f"since {tables.when(job.blocks_since)} UTC"),
            ("worker", job.worker),
            ("stalls", job.stalls or None),
            ("headers", tables.data(job.headers) if job.headers else None),
            ("data", _json(job.data)),
            ("progress", None if job.progress is None else _json(job.progress)),
            ("result", _json(job.return_value) if job.state == "completed" else None),
            ("reason", job.failed_reason and tables.lines(job.failed_reason)),
            ("stack", job.stacktrace and tables.lines(job.stacktrace)),
            ("log", _log(job)),
        ]
    )


def _json(value: Any) -> Text:
    """In one line if it fits, else indented."""
    line = tables.data(value)
    if isinstance(value, NotJson) or len(line) <= 80:
        return Text(line)
    return tables.lines(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _log(job: Job) -> Text | None:
    if not job.logs:
        return None
    return tables.lines("\n".join(f"{tables.when(line.at)}  {tables.words(line.text)}" for line in job.logs))


@click.command(
    "list",
    short_help="List jobs, by state and group.",
    epilog=examples(
        "groupmq job list orders",
        "groupmq job list orders --state failed --group user:42 --limit 100",
        "groupmq job list orders --state failed --json | jq -r '.[].failed_reason'",
    ),
)
@queue_argument
@states_option("Only jobs of this state; may be repeated.  [default: all]")
@group_option("Only jobs of this group.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="At most this many.")
@target_options
def list_jobs(target: Target, name: str | None, states: tuple[str, ...], group_id: str | None, limit: int) -> None:
    """List jobs: active, waiting, delayed, then failed and completed, newest first."""
    with target.existing(name) as queue:
        jobs = pick(queue, states or STATES, group_id, limit)
        show(target, [described(job) for job in jobs], lambda: _listed(jobs))


def _listed(jobs: list[Job]) -> Table | str:
    if not jobs:
        return "no such jobs"
    headings = ("ID", "STATE", "GROUP", "ATTEMPTS", "CREATED (UTC)", "DATA", "DETAIL")
    return tables.table(headings, map(_row, jobs))


def _row(job: Job) -> tuple[Any, ...]:
    detail = ""
    if job.state == "failed":
        detail = tables.words(job.failed_reason or "", 60)
    elif job.run_at is not None:
        detail = f"starts {tables.when(job.run_at)}"
    elif job.state == "active" and job.worker:
        detail = f"on {tables.words(job.worker)}"
    group = NO_GROUP if job.group_id is None else job.group_id
    return job.id, job.state, group, job.attempts_made, job.created_at, tables.data(job.data, 40), detail
