"""`groupmq queue list` and `queue failures`."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from groupmq import Failure
from groupmq.cli.options.shared import examples, group_option, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import plain, show
from groupmq.sync import Queue

KEPT = 1000
"""Failed attempts that a queue keeps."""


@click.command("list", short_help="List the queues of a server.", epilog=examples("groupmq queue list"))
@target_options
def list_queues(target: Target) -> None:
    """List the queues of a server, each with its number of workers and of jobs in each state."""
    found = []
    for info in Queue.list(target.url, prefix=target.prefix):
        with target.existing(info.name) as queue:
            counts = plain(queue.get_job_counts())
            found.append(
                {"queue": info.name, "paused": queue.is_paused(), "workers": len(queue.get_workers()), **counts}
            )
    show(target, found, lambda: _queues(found))


def _queues(found: list[dict[str, Any]]) -> Table | str:
    if not found:
        return "no queues"
    states = ("waiting", "active", "delayed", "failed", "completed")
    rows = [
        (one["queue"], "paused" if one["paused"] else "running", one["workers"], *(one[state] for state in states))
        for one in found
    ]
    return tables.table(("QUEUE", "STATE", "WORKERS", *map(str.upper, states)), rows)


@click.command(
    short_help="List failed attempts, newest first.",
    epilog=examples(
        "groupmq queue failures orders", "groupmq queue failures orders --final --json | jq -r '.[].error'"
    ),
)
@queue_argument
@group_option("Only of this group.")
@click.option("--final", is_flag=True, help="Only those that were the last attempt of their job.")
@click.option(
    "--limit", type=click.IntRange(1, KEPT), default=20, show_default=True, metavar="N", help="At most this many."
)
@target_options
def failures(target: Target, name: str | None, group_id: str | None, final: bool, limit: int) -> None:
    """List failed attempts, newest first, of jobs that were tried again and of jobs that failed for good.

    The newest 1,000 are kept, including those of jobs that are gone.
    """
    with target.existing(name) as queue:
        every = queue.get_failures(KEPT if group_id is not None or final else limit)
    found = [one for one in every if group_id in (None, one.group_id) and (one.final or not final)][:limit]
    show(target, found, lambda: _failures(found))


def _failures(found: list[Failure]) -> Table | str:
    if not found:
        return "no failed attempts"
    rows = [
        (
            one.time,
            one.job_id,
            "-" if one.group_id is None else one.group_id,
            one.attempt,
            "failed" if one.final else "retried",
            tables.words(one.error, 80),
        )
        for one in found
    ]
    return tables.table(("TIME (UTC)", "JOB", "GROUP", "ATTEMPT", "THEN", "ERROR"), rows)
