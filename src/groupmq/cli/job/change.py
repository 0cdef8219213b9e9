"""`groupmq job promote`, `skip`, `fail`, `cancel`, `remove`: one job, changed."""

from __future__ import annotations

import click

from groupmq.cli.exits import NOT_FOUND, fail
from groupmq.cli.options.shared import STATES, examples
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output.answers import show
from groupmq.cli.output.tables import words

job_argument = click.argument("job_id", metavar="ID")


def show_change(target: Target, job_id: str, what: str, text: str) -> None:
    """The answer of a command that changed one job."""
    show(target, {"queue": target.queue, "id": job_id, what: True}, lambda: f"{words(job_id)}: {text}")


@click.command(epilog=examples("groupmq job promote --queue orders 0190f3a2"))
@job_argument
@target_options
def promote(target: Target, job_id: str) -> None:
    """Let a delayed job, or one in its back-off, start now."""
    with target.existing() as queue:
        queue.promote(job_id)
        show_change(target, job_id, "promoted", "may start now")


@click.command(
    short_help="Give up a failed job that blocks its group.",
    epilog=examples("groupmq job skip --queue orders 0190f3a2"),
)
@job_argument
@target_options
def skip(target: Target, job_id: str) -> None:
    """Give up a failed job that blocks its group (on_failed="hold"). The job stays failed, and its group goes on.

    `queue groups --blocked` lists such groups and jobs; `job retry` runs the job again instead.
    """
    with target.existing() as queue:
        queue.skip(job_id)
        show_change(target, job_id, "skipped", "given up; its group goes on when no other job blocks it")


@click.command(
    "fail",
    short_help="Fail a job for good.",
    epilog=examples("groupmq job fail --queue orders 0190f3a2 --reason 'customer is gone'"),
)
@job_argument
@click.option("--reason", default="failed by operator", show_default=True, metavar="TEXT", help="Stored with the job.")
@target_options
def fail_job(target: Target, job_id: str, reason: str) -> None:
    """Fail a waiting, delayed or active job for good, even if attempts remain.

    The handler of a running job is stopped, and the group goes on when it has ended. `job retry` runs it again. With
    on_failed="hold" the job blocks its group until it is retried, skipped or removed.
    """
    with target.existing() as queue:
        queue.fail(job_id, reason)
        show_change(target, job_id, "failed", "failed; job retry runs it again")


@click.command(
    short_help="Remove a job that waits, or stop one that runs.",
    epilog=examples("groupmq job cancel --queue orders 0190f3a2"),
)
@job_argument
@target_options
def cancel(target: Target, job_id: str) -> None:
    """Remove a job that waits, or stop the handler of a job that runs, wherever it is, within a second.

    A stopped job is recorded as failed with the reason "cancelled".
    """
    with target.existing() as queue:
        queue.cancel(job_id)
        show_change(target, job_id, "cancelled", "cancelled")


@click.command(epilog=examples("groupmq job remove --queue orders 0190f3a2"))
@job_argument
@click.option("--force", is_flag=True, help="Remove it even while it runs: its handler is stopped.")
@target_options
def remove(target: Target, job_id: str, force: bool) -> None:
    """Remove a job and everything stored about it. A running job needs --force (or use job cancel)."""
    with target.existing() as queue:
        queue.require_job(job_id)
        states = [state for state in STATES if force or state != "active"]
        if not queue.remove(job_id, states=states):
            job = queue.require_job(job_id)
            fail(f"job {job_id!r} is {job.state}; cancel stops it, --force removes it while it runs", NOT_FOUND)
        show_change(target, job_id, "removed", "removed")
