"""`groupmq queue pause` and `queue resume`."""

from __future__ import annotations

import click

from groupmq.cli.options.shared import examples, group_option, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import show as show_answer


@click.command(epilog=examples("groupmq queue pause orders", "groupmq queue pause orders --group user:42"))
@queue_argument
@group_option("Only this group; the others go on.")
@target_options
def pause(target: Target, name: str | None, group_id: str | None) -> None:
    """Stop starting jobs. Running jobs go on, and jobs can still be added."""
    _switch(target, name, group_id, paused=True)


@click.command(epilog=examples("groupmq queue resume orders", "groupmq queue resume orders --group user:42"))
@queue_argument
@group_option("Only this group.")
@target_options
def resume(target: Target, name: str | None, group_id: str | None) -> None:
    """Start jobs again.

    A group that is not paused but blocked goes on too: the failed jobs that block it are given up, as by `job skip`.
    """
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
    now = "paused; running jobs go on" if paused else "running"
    value = {"queue": queue.name, "group": group_id, "paused": paused, "changed": changed}
    show_answer(target, value, lambda: f"{what} is {now}" if changed else f"{what} was {now.split(';')[0]} already")
