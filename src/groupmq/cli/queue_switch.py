"""`groupmq queue pause`, `resume`, `repair`."""

from __future__ import annotations

import click
from rich.table import Table

from groupmq.cli import tables
from groupmq.cli.common import Target, plain, target_options
from groupmq.cli.common import show as show_answer
from groupmq.cli.progress import LongWork
from groupmq.cli.shapes import examples, group_option, queue_argument
from groupmq.views import RepairReport


@click.command(epilog=examples("groupmq queue pause orders", "groupmq queue pause orders --group user:42"))
@queue_argument
@group_option("Only this group; the others go on.")
@target_options
def pause(target: Target, name: str | None, group_id: str | None) -> None:
    """Stop starting jobs. What runs goes on, and jobs can still be added."""
    _switch(target, name, group_id, paused=True)


@click.command(epilog=examples("groupmq queue resume orders", "groupmq queue resume orders --group user:42"))
@queue_argument
@group_option("Only this group.")
@target_options
def resume(target: Target, name: str | None, group_id: str | None) -> None:
    """Start jobs again."""
    _switch(target, name, group_id, paused=False)


def _switch(target: Target, name: str | None, group_id: str | None, *, paused: bool) -> None:
    with target.existing(name) as queue:
        if group_id is not None:
            changed = queue.pause_group(group_id) if paused else queue.resume_group(group_id)
        else:
            changed = queue.is_paused() != paused
            if paused:
                queue.pause()
            else:
                queue.resume()
    what = f"group {tables.words(group_id)} of {queue.name}" if group_id is not None else queue.name
    now = "paused; what runs goes on" if paused else "running"
    value = {"queue": queue.name, "group": group_id, "paused": paused, "changed": changed}
    show_answer(target, value, lambda: f"{what} is {now}" if changed else f"{what} was {now.split(';')[0]} already")


@click.command(short_help="Look for damage, and mend it.", epilog=examples("groupmq queue repair orders"))
@queue_argument
@target_options
def repair(target: Target, name: str | None) -> None:
    """Check every structure of a queue against every other, and mend what does not agree.

    Works while the queue works. In normal life there is nothing to mend; after a restored backup, or keys that were
    edited by hand, there may be.
    """
    report = RepairReport()
    with target.existing(name) as queue, LongWork("checking", None) as work:
        report = queue.run(work.through(queue.operations.repair()))
    if work.interrupted:
        return work.report(target, "checked", queue=queue.name)
    show_answer(target, {"queue": queue.name, **plain(report)}, lambda: _repaired(report))


def _repaired(report: RepairReport) -> Table | str:
    looked = f"{tables.number(report.jobs, 'job')} and {tables.number(report.groups, 'group')} checked"
    if report.clean:
        return f"{looked}, nothing to mend"
    mended = [(kind, len(ids), tables.words(", ".join(ids), 60)) for kind, ids in sorted(report.mended.items())]
    found = tables.table(("MENDED", "HOW MANY", "WHICH"), mended)
    found.caption, found.caption_justify = looked, "left"
    return found
