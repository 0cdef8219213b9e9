"""`groupmq job retry`: one failed job, or all that match."""

from __future__ import annotations

from typing import Any

import click

from groupmq import JobFilter, RetryReport
from groupmq.cli.job.change import show_change
from groupmq.cli.options.shared import examples, group_option
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import DURATION
from groupmq.cli.output.answers import show
from groupmq.cli.output.progress import LongWork
from groupmq.cli.output.tables import number, words
from groupmq.sync import Queue


@click.command(
    short_help="Run a failed job again, or all that match.",
    epilog=examples(
        "groupmq job retry --queue orders 0190f3a2",
        "groupmq job retry --queue orders --all --failed",
        "groupmq job retry --queue orders --all --error CardDeclined --newer 2h --dry-run",
        "groupmq job retry --queue orders --all --group user:42 --rate 10",
    ),
)
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="All failed jobs that are kept, instead of one.")
@click.option("--failed", is_flag=True, help="The same as --all alone: only failed jobs can be retried.")
@group_option("With --all: only those of this group.")
@click.option("--error", metavar="CLASS", help="With --all: only those that failed with this class of error.")
@click.option("--text", metavar="TEXT", help="With --all: only those with this text in their data or reason.")
@click.option("--older", type=DURATION, help="With --all: only those that failed at least this long ago.")
@click.option("--newer", type=DURATION, help="With --all: only those that failed at most this long ago.")
@click.option("--rate", type=click.FloatRange(min=0.001), help="With --all: at most this many jobs per second.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="With --all: at most this many jobs, the oldest failures first."
)
@click.option("--dry-run", is_flag=True, help="With --all: only show how many there are, and which were overtaken.")
@target_options
def retry(
    target: Target,
    job_id: str | None,
    every: bool,
    failed: bool,
    rate: float | None,
    limit: int | None,
    dry_run: bool,
    **wanted: Any,
) -> None:
    """Run a failed job again, from its original sort key, with its attempts counted from 0.

    With --all: every failed job that matches all other options, the oldest failure first. A job that fails
    again meanwhile is not retried a second time.
    """
    if every == (job_id is not None):
        raise click.UsageError("Give the ID of one job, or --all.")
    chosen = {name: value for name, value in wanted.items() if value is not None}
    if not every and (failed or dry_run or chosen or rate is not None or limit is not None):
        raise click.UsageError("--failed, --group and the other options go with --all.")
    with target.existing() as queue:
        if job_id is not None:
            queue.retry(job_id)
            return show_change(target, job_id, "retried", "waits to run again")
        if dry_run:
            report = queue.retry_many(JobFilter(**chosen), limit=limit, dry_run=True)
            behind = {"overtaken": report.overtaken, "overtaken_sample": report.overtaken_sample}
            value = {"queue": queue.name, **_counts(report), "retried": 0, **behind}
            return show(target, value, lambda: _foretold(report))
        _retry_all(target, queue, JobFilter(**chosen), rate, limit)


def _retry_all(target: Target, queue: Queue, wanted: JobFilter, rate: float | None, limit: int | None) -> None:
    total = None
    if wanted == JobFilter():
        total = min(queue.get_failed_count(), limit or 2**31)
    report = RetryReport()
    with LongWork("retrying", total) as work:

        def progress(so_far: RetryReport) -> None:
            nonlocal report
            report = so_far
            work.advance(so_far.retried - work.done)

        report = queue.retry_many(wanted, rate=rate, limit=limit, progress=progress)
    text = number(work.done, "job waits", "jobs wait") + " to run again"
    work.report(target, "retried", lambda: text, queue=queue.name, **_counts(report))


def _counts(report: RetryReport) -> dict[str, int]:
    return {"matched": report.matched, "groups": report.groups, "skipped": report.skipped}


def _foretold(report: RetryReport) -> str:
    matched = number(report.matched, "failed job", "failed jobs")
    groups = number(report.groups, "group", "groups")
    behind = ""
    if report.overtaken:
        which = ", ".join(words(job_id) for job_id in report.overtaken_sample)
        more = ", ..." if report.overtaken > len(report.overtaken_sample) else ""
        behind = (
            f"\nat least {number(report.overtaken, 'job')} would run late, because later jobs of the same group "
            f"have run already: {which}{more}"
        )
    return f"{matched} of {groups} would wait to run again; nothing was changed{behind}"
