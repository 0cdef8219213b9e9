"""`groupmq queue`: a queue as a whole."""

from __future__ import annotations

import click

from groupmq.cli.options.shared import Ordered, examples
from groupmq.cli.queue.listing import failures, list_queues
from groupmq.cli.queue.pause import pause, resume
from groupmq.cli.queue.remove import clean, purge
from groupmq.cli.queue.repair import repair
from groupmq.cli.queue.repartition import repartition
from groupmq.cli.queue.settings import settings
from groupmq.cli.queue.show import groups, stats


@click.group(
    cls=Ordered,
    epilog=examples(
        "groupmq queue stats orders",
        "groupmq queue settings orders --set max_attempts=7",
        "groupmq queue pause orders --group user:42",
        "groupmq queue clean orders --state completed --older-than 7d",
    ),
)
def queue() -> None:
    """Look at a queue, its groups and settings; pause, empty, repair it."""


for command in (list_queues, stats, groups, failures, settings, pause, resume, purge, clean, repair, repartition):
    queue.add_command(command)
