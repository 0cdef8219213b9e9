"""`groupmq mark`: name a moment in the history of a queue."""

from __future__ import annotations

from typing import Any

import click

from groupmq.cli.options.shared import examples
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import INSTANT
from groupmq.cli.output.answers import plain, show
from groupmq.cli.output.tables import when, words


@click.command(
    epilog=examples(
        'groupmq mark "v1.4" --queue orders',
        'groupmq mark "deploy $(git rev-parse --short HEAD)" --queue orders',
        'groupmq mark "payments down" --queue orders --at 2026-01-31T09:00:00+01:00',
    )
)
@click.argument("label")
@click.option("--at", type=INSTANT, metavar="WHEN", help="ISO 8601 with a zone, or epoch seconds.  [default: now]")
@target_options
def mark(target: Target, label: str, at: Any) -> None:
    """Mark a moment in the history of a queue, such as a deployment.

    The charts of the queue show it. The newest 100 marks are kept.
    """
    with target.existing() as queue:
        made = queue.mark(label, at=at)
    text = f"marked {when(made.at)} UTC in {queue.name}: {words(made.label)}"
    show(target, {"queue": queue.name, **plain(made)}, lambda: text)
