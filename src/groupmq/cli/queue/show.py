"""`groupmq queue stats` and `queue groups`."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from groupmq import GroupInfo, HeldGroup
from groupmq.cli.options.shared import examples, group_option, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import plain, show

GROUP_STATES = ("ready", "parked", "paused", "blocked")
"""States of a group: it may start a job, has to wait, is paused by an operator, is blocked by a failed job."""

MOST_LISTED = 1_000


@click.command(
    short_help="Show how many jobs are in each state.",
    epilog=examples("groupmq queue stats orders", "groupmq queue stats orders --json | jq .counts.waiting"),
)
@queue_argument
@target_options
def stats(target: Target, name: str | None) -> None:
    """Show how many jobs are in each state, the counters so far, and the number of workers."""
    with target.existing(name) as queue:
        counts, paused = queue.get_job_counts(), queue.is_paused()
        metrics, workers = queue.get_metrics(minutes=0), len(queue.get_workers())
    value = {
        "queue": queue.name,
        "paused": paused,
        "workers": workers,
        "counts": plain(counts),
        "groups": {state: getattr(metrics, f"groups_{state}") for state in GROUP_STATES},
        "oldest_wait": metrics.oldest_wait,
        "longest_held": plain(metrics.longest_held),
        "longest_held_unpaused": plain(metrics.longest_held_unpaused),
        "longest_blocked": metrics.longest_blocked,
        "breakers_open": metrics.breakers_open,
        "longest_breaker_open": metrics.longest_breaker_open,
        "metrics": {
            name: count
            for name, count in plain(metrics).items()
            if isinstance(count, int) and not name.startswith(("groups_", "breakers_"))
        },
    }
    show(target, _with_old_names(value), lambda: _stats(value, metrics.longest_held_unpaused or metrics.longest_held))


def _with_old_names(value: dict[str, Any]) -> dict[str, Any]:
    """The answer for programs, which also has `due` for parked and `processed` for completed, for this release."""
    groups, metrics = value["groups"], value["metrics"]
    both = {"groups": groups | {"due": groups["parked"]}, "metrics": metrics | {"processed": metrics["completed"]}}
    return value | both


def _stats(value: dict[str, Any], held: HeldGroup | None) -> Table:
    counts, metrics = value["counts"], value["metrics"]
    wait = None if value["oldest_wait"] is None else tables.span(value["oldest_wait"])
    blocked = None if value["longest_blocked"] is None else tables.span(value["longest_blocked"])
    opened = None if value["longest_breaker_open"] is None else tables.span(value["longest_breaker_open"])
    breakers = opened and f"{value['breakers_open']:,} open, the first for {opened}; queue groups --breakers names them"
    live = [(state, counts[state]) for state in ("active", "waiting", "delayed")]
    return tables.facts(
        [
            ("queue", value["queue"]),
            ("state", "paused" if value["paused"] else "running"),
            ("workers", value["workers"]),
            ("groups", f"{counts['unique_groups']:,}: {', '.join(f'{n:,} {at}' for at, n in value['groups'].items())}"),
            *live,
            ("longest wait", wait and f"a job that may start has waited {wait}"),
            ("longest held", held and f"{held.group_id!r} for {tables.span(held.wait)}: {held.explanation}"),
            ("blocked", blocked and f"a group for {blocked}; queue groups --blocked names it"),
            ("breakers", breakers),
            ("kept", f"{counts['completed']:,} completed, {counts['failed']:,} failed"),
            ("so far", ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in metrics.items())),
        ]
    )


@click.command(
    short_help="List groups with their jobs, and what holds them.",
    epilog=examples(
        "groupmq queue groups orders",
        "groupmq queue groups orders --blocked",
        "groupmq queue groups orders --breakers",
        "groupmq queue groups orders --group user:42 --json",
    ),
)
@queue_argument
@group_option("Only this group, whether it has jobs or not.")
@click.option("--blocked", is_flag=True, help="Only groups that a failed job blocks, the longest blocked first.")
@click.option("--breakers", is_flag=True, help="Only groups whose breaker is open, the longest open first.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most this many.")
@target_options
def groups(target: Target, name: str | None, group_id: str | None, blocked: bool, breakers: bool, limit: int) -> None:
    """List groups that have a live job: how many jobs wait and run in each, and what holds it.

    With --blocked: groups that wait until a failed job is retried, skipped or removed (on_failed="hold"), whether they
    have other jobs or not. With --breakers: groups that rest because their attempts fail in a row (breaker), and those
    that have rested but have not completed a job since.
    """
    given = [("--group", group_id is not None), ("--blocked", blocked), ("--breakers", breakers)]
    chosen = [flag for flag, is_given in given if is_given]
    if len(chosen) > 1:
        raise click.UsageError(f"Give {' or '.join(chosen)}, not both.")
    with target.existing(name) as queue:
        if blocked:
            stopped = queue.get_blocked_groups(min(limit, MOST_LISTED))
            return show(target, stopped, lambda: _blocked(stopped, queue.get_metrics(minutes=0).groups_blocked))
        if breakers:
            opened = queue.get_open_breakers(min(limit, MOST_LISTED))
            return show(target, opened, lambda: _breakers(opened, queue.get_metrics(minutes=0).breakers_open))
        ids = [group_id] if group_id is not None else queue.get_unique_groups(limit)
        found = [queue.get_group(one) for one in ids]
        total = queue.get_unique_groups_count()
    found.sort(key=lambda group: (-group.waiting, group.id))
    show(target, found, lambda: _groups(found, total, all_groups=group_id is None))


def _groups(found: list[GroupInfo], total: int, *, all_groups: bool) -> Table | str:
    if not found:
        return "no group has a live job"
    rows = [
        (group.id, group.state, group.waiting, group.active, group.delayed, group.concurrency, _held(group))
        for group in found
    ]
    headings = ("GROUP", "STATE", "WAITING", "ACTIVE", "DELAYED", "AT ONCE", "HELD FOR")
    listed = tables.table(headings, rows)
    if all_groups and total > len(found):
        listed.caption = f"{len(found):,} of {total:,} groups; --limit shows more"
        listed.caption_justify = "left"
    return listed


def _blocked(found: list[GroupInfo], total: int) -> Table | str:
    if not found:
        return "no group is blocked by a failed job"
    rows = [(one.id, one.blocked_by, one.blocked_since, one.blockers, one.waiting) for one in found]
    listed = tables.table(("GROUP", "BLOCKED BY", "SINCE (UTC)", "FAILED JOBS", "WAITING"), rows)
    more = f"{len(found):,} of {total:,} groups; --limit shows more. " if total > len(found) else ""
    listed.caption = f"{more}groupmq job retry ID runs the failed job again, job skip ID gives it up"
    listed.caption_justify = "left"
    return listed


def _breakers(found: list[GroupInfo], total: int) -> Table | str:
    if not found:
        return "no breaker is open"
    rows = [(one.id, one.breaker_since, one.failures, one.breaker_until, one.state, one.waiting) for one in found]
    headings = ("GROUP", "OPEN SINCE (UTC)", "FAILED IN A ROW", "RESTS UNTIL (UTC)", "STATE", "WAITING")
    listed = tables.table(headings, rows)
    more = f"{len(found):,} of {total:,} groups; --limit shows more. " if total > len(found) else ""
    listed.caption = f"{more}After its rest, one job of a group is tried; if it completes, the breaker is closed"
    listed.caption_justify = "left"
    return listed


def _held(group: GroupInfo) -> str:
    return "" if group.held_for is None else tables.span(group.held_for)
