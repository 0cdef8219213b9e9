"""`groupmq repeat`: the jobs that a queue adds on a schedule."""

from __future__ import annotations

import click
from rich.table import Table

from groupmq import RepeatingJob
from groupmq.cli.exits import NOT_FOUND, fail
from groupmq.cli.options.shared import Ordered, examples, group_option
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import show
from groupmq.sync import Queue


@click.group(
    cls=Ordered,
    epilog=examples("groupmq repeat list --queue orders", "groupmq repeat remove --queue orders nightly"),
)
def repeat() -> None:
    """Look at and remove repeating jobs. They are defined in code: queue.add(..., repeat=Every(5))."""


@repeat.command("list", epilog=examples("groupmq repeat list --queue orders --json"))
@target_options
def list_repeats(target: Target) -> None:
    """List repeating jobs, the next one to run first."""
    with target.existing() as queue:
        found = queue.get_repeating_jobs()
    show(target, found, lambda: _listed(found))


def _listed(found: list[RepeatingJob]) -> Table | str:
    if not found:
        return "nothing repeats"
    headings = ("KEY", "GROUP", "SCHEDULE", "NEXT (UTC)", "LAST (UTC)", "RUNS", "DATA")
    rows = [
        (one.key, one.group_id, one.schedule, one.next_run, one.last_run, one.count, tables.data(one.data, 40))
        for one in found
    ]
    return tables.table(headings, rows)


@repeat.command(
    "remove",
    epilog=examples(
        "groupmq repeat remove --queue orders nightly",
        "groupmq repeat remove --queue orders 'every 5 s' --group sweep",
    ),
)
@click.argument("key")
@group_option("Its group; without it, the repeat of no group.")
@target_options
def remove(target: Target, key: str, group_id: str | None) -> None:
    """Stop a repeating job, named by its KEY in `repeat list`. Jobs that it has added already stay."""
    with target.existing() as queue:
        if not queue.remove_repeating_job(group_id, key):
            fail(_not_there(queue, key, group_id), NOT_FOUND)
        value = {"queue": queue.name, "key": key, "group": group_id, "removed": True}
        show(target, value, lambda: f"{tables.words(key)}: no longer repeats")


def _not_there(queue: Queue, key: str, group_id: str | None) -> str:
    whose = "without a group" if group_id is None else f"of group {group_id!r}"
    others = [one.group_id for one in queue.get_repeating_jobs() if one.key == key]
    hint = ""
    if others:
        hint = f"; there is one of group {others[0]!r}" if others[0] is not None else "; there is one without a group"
    return f"there is no repeat {key!r} {whose}{hint}"
