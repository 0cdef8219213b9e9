"""`groupmq job retry`: one failed job, or all of them."""

from __future__ import annotations

import click

from groupmq.cli.common import Target, target_options
from groupmq.cli.job_change import told
from groupmq.cli.picking import ids_of, jobs_of
from groupmq.cli.progress import LongWork
from groupmq.cli.shapes import examples, group_option
from groupmq.cli.tables import number
from groupmq.errors import JobNotFound, WrongState
from groupmq.sync import Queue


@click.command(
    short_help="Run a failed job again, or all of them.",
    epilog=examples(
        "groupmq job retry --queue orders 0190f3a2",
        "groupmq job retry --queue orders --all --failed",
        "groupmq job retry --queue orders --all --group user:42",
    ),
)
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="All failed jobs that are kept, instead of one.")
@click.option("--failed", is_flag=True, help="Says what --all means: no other jobs can be retried.")
@group_option("With --all: only those of this group.")
@target_options
def retry(target: Target, job_id: str | None, every: bool, failed: bool, group_id: str | None) -> None:
    """Run a failed job again, from its original place, attempts counted anew."""
    if every == (job_id is not None):
        raise click.UsageError("Give the ID of one job, or --all.")
    if not every and (failed or group_id is not None):
        raise click.UsageError("--failed and --group go with --all.")
    with target.existing() as queue:
        if job_id is not None:
            queue.retry(job_id)
            return told(target, job_id, "retried", "waits to run again")
        _retry_all(target, queue, group_id)


def _retry_all(target: Target, queue: Queue, group_id: str | None) -> None:
    """Those that are failed now, the oldest first; one that fails again meanwhile is not retried for ever."""
    ids = ids_of(queue, "failed")
    if group_id is not None:
        ids = [job.id for job in jobs_of(queue, ids, "failed", group_id)]
    skipped = 0
    with LongWork("retrying", len(ids)) as work:
        for job_id in ids:
            work.stop_if_asked()
            try:
                queue.retry(job_id)
            except (JobNotFound, WrongState):
                skipped += 1  # somebody else was faster
            else:
                work.advance()
    text = number(work.done, "job waits", "jobs wait") + " to run again"
    work.report(target, "retried", lambda: text, queue=queue.name, skipped=skipped)
