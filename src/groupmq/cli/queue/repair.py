"""`groupmq queue repair`."""

from __future__ import annotations

import click
from rich.table import Table

from groupmq import RepairReport
from groupmq.cli.options.shared import examples, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import plain, show
from groupmq.cli.output.progress import LongWork


@click.command(short_help="Find damage and repair it.", epilog=examples("groupmq queue repair orders"))
@queue_argument
@target_options
def repair(target: Target, name: str | None) -> None:
    """Check all structures of a queue against each other, and repair any disagreement.

    The queue can stay in use. Normally there is nothing to repair; after a restored backup, or when keys were
    edited by hand, there may be.
    """
    report = RepairReport()
    with target.existing(name) as queue, LongWork("checking", None) as work:
        report = queue.repair(progress=work.reached)
    if work.interrupted:
        return work.report(target, "checked", queue=queue.name)
    show(target, {"queue": queue.name, **plain(report)}, lambda: _repaired(report))


def _repaired(report: RepairReport) -> Table | str:
    looked = f"{tables.number(report.jobs, 'job')} and {tables.number(report.groups, 'group')} checked"
    if report.clean:
        return f"{looked}, nothing to repair"
    mended = [(kind, len(ids), tables.words(", ".join(ids), 60)) for kind, ids in sorted(report.mended.items())]
    found = tables.table(("MENDED", "HOW MANY", "WHICH"), mended)
    found.caption, found.caption_justify = looked, "left"
    return found
