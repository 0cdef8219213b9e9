"""`groupmq job add`."""

from __future__ import annotations

from typing import Any

import click

from groupmq.cli.job.selection import described
from groupmq.cli.options.shared import examples, group_option, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import BACKOFF, DURATION, INSTANT, PAYLOAD, backoff_of
from groupmq.cli.output.answers import show
from groupmq.cli.output.tables import when, words
from groupmq.sync import Job


@click.command(
    epilog=examples(
        """groupmq job add orders --payload '{"amount": 999}' --group user:42""",
        """groupmq job add orders --payload @order.json --delay 10m""",
        """groupmq job add orders --payload null --run-at 2026-12-24T18:00:00+01:00""",
        """date +'"%F"' | groupmq job add reports --payload - --id "daily-$(date +%F)\"""",
    )
)
@queue_argument
@click.option("--payload", required=True, type=PAYLOAD, metavar="JSON", help="The job's data; - = stdin, @FILE = file.")
@group_option("Group: its jobs run in order, one at a time.")
@click.option("--priority", type=int, default=0, metavar="N", help="0 (most urgent) to 1023.  [default: 0]")
@click.option("--delay", type=DURATION, metavar="TIME", help="Start after this time: 30, 500ms, 10m, 2h, 7d.")
@click.option("--run-at", type=INSTANT, metavar="WHEN", help="Start then (ISO 8601 with a zone, or epoch seconds).")
@click.option("--order-ms", type=int, metavar="N", help="Order in the group, usually the event's epoch milliseconds.")
@click.option("--max-attempts", type=int, metavar="N", help="Attempts before the job fails for good.")
@click.option("--timeout", type=DURATION, metavar="TIME", help="Cancel a run that takes longer.")
@click.option("--backoff", type=BACKOFF, metavar="TIME", help="Pause before a retry: 5, 500ms, or 1s..5m, which grows.")
@click.option("--on-retry", type=click.Choice(("hold", "yield")), help="What its group does until the retry.")
@click.option(
    "--on-failed", type=click.Choice(("continue", "hold")), help="hold: if the job fails for good, it blocks its group."
)
@click.option("--id", "job_id", metavar="ID", help="Id of the job; if a job with this id exists, nothing is added.")
@click.option(
    "--unique-for",
    type=DURATION,
    metavar="TIME",
    help="With --id: the id stays taken this long after the job has ended.",
)
@click.option("--ttl", type=DURATION, metavar="TIME", help="Fail as expired unless it starts within this time.")
@target_options
def add(target: Target, name: str | None, payload: tuple[Any], **options: Any) -> None:
    """Add a job to QUEUE, which is created if it does not exist."""
    options["backoff"] = backoff_of(options["backoff"])
    with target.open(name) as queue:
        job = queue.add(payload[0], **options)
        show(target, {"queue": queue.name, **described(job)}, lambda: _summary(job, queue.name))


def _summary(job: Job, queue: str) -> str:
    if job.duplicate and job.state == "gone":
        return f"the id {words(job.id)} is taken in {queue}: its job has ended and is not kept; nothing was added"
    if job.duplicate:
        return f"job {words(job.id)} exists already in {queue} ({job.state}); nothing was added"
    later = f" until {when(job.run_at)} UTC" if job.run_at else ""
    return f"added {words(job.id)} to {queue}: {job.state}{later}"
