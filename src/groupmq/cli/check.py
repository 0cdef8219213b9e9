"""`groupmq check`: whether the server is fit for a queue, and whether the queue makes progress."""

from __future__ import annotations

import click
from rich.table import Table

from groupmq import Finding
from groupmq.cli.exits import NOT_FOUND
from groupmq.cli.options.shared import examples, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import DURATION
from groupmq.cli.output import tables
from groupmq.cli.output.answers import show
from groupmq.sync import Queue


@click.command(
    epilog=examples(
        "groupmq check orders",
        "groupmq check orders --max-wait 1m --strict || alert",
        "groupmq check --redis-url redis://host:6379 --json",
    )
)
@queue_argument
@click.option("--max-wait", type=DURATION, default=300, metavar="TIME", help="Longest wait allowed.  [default: 5m]")
@click.option(
    "--prune", is_flag=True, help="Also delete function libraries of other releases that no worker uses any more."
)
@click.option("--strict", is_flag=True, help="Warnings count as failures.")
@target_options
@click.pass_context
def check(ctx: click.Context, target: Target, name: str | None, max_wait: float, prune: bool, strict: bool) -> None:
    """Check the server, and whether a queue makes progress.

    Checks the version, role, persistence, eviction, memory, scripts, functions and clock of the server. For a queue it
    checks the workers, the longest wait of a job that could start now, the longest wait in a held group (with the
    group, what holds it and until when), and whether failed jobs were dropped because of keep_failed.
    Exit code 0: nothing failed (warnings count only with --strict). 1: a check failed. 3: the server cannot be reached.
    """
    pruned = Queue.prune_libraries(target.url, prefix=target.prefix) if prune else []
    name = name or target.queue
    where, found = _of_queue(target, name, max_wait) if name else _of_server(target)
    found.insert(0, Finding("server", "ok", where))
    if prune:
        found.insert(1, Finding("pruned", "ok", ", ".join(pruned) or "no unused library"))
    bad = {"fail", "warn"} if strict else {"fail"}
    passed = not any(one.status in bad for one in found)
    show(target, {"ok": passed, "server": where, "queue": name, "checks": found}, lambda: _table(found))
    if not passed:
        ctx.exit(NOT_FOUND)


def _table(found: list[Finding]) -> Table:
    rows = [(one.status, one.name, one.detail + (f" - {one.hint}" if one.hint else "")) for one in found]
    return tables.table(("", "CHECK", "FOUND"), rows)


def _of_server(target: Target) -> tuple[str, list[Finding]]:
    """The address, without secrets, and facts about the server."""
    return Queue.address_of(target.url), Queue.check_server(target.url)


def _of_queue(target: Target, name: str, max_wait: float) -> tuple[str, list[Finding]]:
    with target.existing(name) as queue:
        return queue.address, queue.check(oldest=max_wait)
