"""`groupmq job promote`, `fail`, `cancel`, `remove`: one job, changed."""

from __future__ import annotations

import click

from groupmq import commands
from groupmq.cli.common import NOT_FOUND, Target, fail, show, target_options
from groupmq.cli.shapes import STATES, examples
from groupmq.cli.tables import words
from groupmq.operations import one

job_argument = click.argument("job_id", metavar="ID")


def told(target: Target, job_id: str, what: str, text: str) -> None:
    """The answer of a command that changed one job."""
    show(target, {"queue": target.queue, "id": job_id, what: True}, lambda: f"{words(job_id)}: {text}")


@click.command(epilog=examples("groupmq job promote --queue orders 0190f3a2"))
@job_argument
@target_options
def promote(target: Target, job_id: str) -> None:
    """Let a delayed job, or one in its back-off, start now."""
    with target.existing() as queue:
        queue.promote(job_id)
        told(target, job_id, "promoted", "may start now")


@click.command(
    "fail",
    short_help="Fail a job for good.",
    epilog=examples("groupmq job fail --queue orders 0190f3a2 --reason 'customer is gone'"),
)
@job_argument
@click.option("--reason", default="failed by operator", show_default=True, metavar="TEXT", help="Stored with the job.")
@target_options
def fail_job(target: Target, job_id: str, reason: str) -> None:
    """Fail a waiting, delayed or active job for good, whatever attempts remain.

    A running one loses its lease: what its handler still reports is refused. `job retry` runs it again.
    """
    with target.existing() as queue:
        queue.fail(job_id, reason)
        told(target, job_id, "failed", "failed; job retry runs it again")


@click.command(
    short_help="Remove a job that waits, stop one that runs.",
    epilog=examples("groupmq job cancel --queue orders 0190f3a2"),
)
@job_argument
@target_options
def cancel(target: Target, job_id: str) -> None:
    """Remove a job that waits; stop the handler of one that runs, wherever it is, within a second.

    A stopped job is recorded as failed with the reason "cancelled".
    """
    with target.existing() as queue:
        queue.cancel(job_id)
        told(target, job_id, "cancelled", "cancelled")


@click.command(epilog=examples("groupmq job remove --queue orders 0190f3a2"))
@job_argument
@click.option("--force", is_flag=True, help="Also while it runs: its handler goes on, but is no longer listened to.")
@target_options
def remove(target: Target, job_id: str, force: bool) -> None:
    """Remove a job and all that is stored about it. One that runs only with --force (or use job cancel)."""
    with target.existing() as queue:
        queue.require_job(job_id)
        states = [state for state in STATES if force or state != "active"]
        if not queue.run(one(commands.remove([job_id], states)))[0]:
            job = queue.require_job(job_id)
            fail(f"job {job_id!r} is {job.state}; cancel stops it, --force removes it while it runs", NOT_FOUND)
        told(target, job_id, "removed", "removed")
