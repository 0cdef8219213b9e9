"""`groupmq queue repartition`."""

from __future__ import annotations

import click

from groupmq.cli.exits import NOT_FOUND, fail
from groupmq.cli.options.shared import examples, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output.answers import show
from groupmq.cli.output.progress import LongWork
from groupmq.cli.output.tables import number
from groupmq.errors import ConfigurationError


@click.command(
    short_help="Change the number of partitions.",
    epilog=examples("groupmq queue pause orders && groupmq queue repartition orders --to 64"),
)
@queue_argument
@click.option("--to", "partitions", type=click.IntRange(1, 1024), required=True, help="The new number of partitions.")
@target_options
def repartition(target: Target, name: str | None, partitions: int) -> None:
    """Spread a paused queue over another number of partitions.

    No job may run. Everything is copied, compared and switched over; until then the queue cannot be used. If this is
    interrupted or killed, run it again: it goes on. Order, attempts, delays, results and repeats are kept; counters,
    charts and the event log start empty. Restart the other processes of the queue, then resume it.
    """
    jobs = 0
    with target.unopened(name) as queue, LongWork("copying", None) as work:
        try:
            jobs = queue.repartition(partitions, progress=work.reached)
        except ConfigurationError as error:
            fail(str(error), NOT_FOUND)
    if work.interrupted:
        return work.report(target, "copied", queue=queue.name)
    answer = {"queue": queue.name, "partitions": partitions, "jobs": jobs}
    done = f"{number(jobs, 'job')} in {number(partitions, 'partition')}; restart the queue's processes"
    show(target, answer, lambda: done)
