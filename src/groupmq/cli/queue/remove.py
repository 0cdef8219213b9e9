"""`groupmq queue purge` and `queue clean`: many jobs removed, in bounded steps."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from groupmq.cli.exits import BAD_USAGE, NOT_FOUND, fail
from groupmq.cli.job.selection import EVERY
from groupmq.cli.options.shared import STATES, examples, queue_argument, states_option, yes_option
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import DURATION
from groupmq.cli.output.answers import console
from groupmq.cli.output.progress import LongWork
from groupmq.cli.output.tables import number, span
from groupmq.sync import Queue

UNDONE = ("waiting", "delayed")


def confirm(target: Target, question: str, *, yes: bool) -> None:
    """Go on only if the operator confirms; without a terminal, only with --yes."""
    if yes:
        return
    if target.as_json or not sys.stdin.isatty():
        fail("not a terminal; give --yes to remove the jobs", BAD_USAGE)
    console(stderr=True).print(question, end=" ", markup=False)
    if not click.confirm("Go on?", err=True):
        fail("nothing was removed", NOT_FOUND)


@click.command(
    epilog=examples(
        "groupmq queue purge orders",
        "groupmq queue purge orders --state failed --yes",
        "groupmq queue purge orders --all --force --yes",
    )
)
@queue_argument
@states_option("Jobs of this state; may be repeated.  [default: waiting, delayed]")
@click.option("--all", "every", is_flag=True, help="All states; with --force, active jobs too.")
@click.option("--force", is_flag=True, help="Allow active jobs: their handlers are stopped.")
@yes_option
@target_options
def purge(target: Target, name: str | None, states: tuple[str, ...], every: bool, force: bool, yes: bool) -> None:
    """Remove all jobs in some states. Asks first, unless --yes is given. Removes active jobs only with --force.

    Works in bounded steps until none is left; Ctrl-C ends it after a step, and it can be run again.
    """
    if every and states:
        raise click.UsageError("Give --state or --all, not both.")
    if "active" in states and not force:
        raise click.UsageError("Active jobs are running now; --force removes them all the same.")
    chosen = [state for state in STATES if force or state != "active"] if every else list(states or UNDONE)
    with target.existing(name) as queue:
        total, parts = _count(queue, chosen)
        confirm(target, f"This removes {number(total, 'job')} of {queue.name} ({parts}).", yes=yes)
        with LongWork("removing", total) as work:
            queue.purge(chosen, progress=work.reached)
        work.report(target, "removed", lambda: f"removed {number(work.done, 'job')} of {queue.name}", queue=queue.name)


def _count(queue: Queue, states: Sequence[str]) -> tuple[int, str]:
    counts = queue.get_job_counts()
    found = {state: int(getattr(counts, state)) for state in states}
    return sum(found.values()), ", ".join(f"{n:,} {state}" for state, n in found.items())


@click.command(
    epilog=examples(
        "groupmq queue clean orders --older-than 7d",
        "groupmq queue clean orders --state failed --older-than 30d --limit 10000",
    )
)
@queue_argument
@click.option(
    "--state",
    type=click.Choice(("completed", "failed", *UNDONE)),
    default="completed",
    show_default=True,
    help="Age counts from the end of a finished job, or from when any other job was added.",
)
@click.option("--older-than", type=DURATION, required=True, metavar="TIME", help="30, 10m, 2h, 7d; 0 = all.")
@click.option("--limit", type=click.IntRange(1, EVERY), default=EVERY, metavar="N", help="At most this many.")
@yes_option
@target_options
def clean(target: Target, name: str | None, state: str, older_than: float, limit: int, yes: bool) -> None:
    """Remove old jobs of one state, in bounded steps. Asks first for waiting and delayed jobs, unless --yes."""
    with target.existing(name) as queue:
        if state in UNDONE:
            confirm(target, f"This removes {state} jobs of {queue.name} older than {span(older_than)}.", yes=yes)
        with LongWork("removing", None) as work:
            queue.clean(state, grace=older_than, limit=limit, progress=work.reached)
        text = f"removed {number(work.done, f'{state} job')} of {queue.name}"
        work.report(target, "removed", lambda: text, queue=queue.name, state=state)
