"""`groupmq queue settings`: what is stored with a queue, and changing it."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from groupmq import ConfigurationError, QueueSettings
from groupmq.cli.options.shared import examples, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.output import tables
from groupmq.cli.output.answers import show
from groupmq.wording import read_setting
from groupmq.wording import setting as spelled


@click.command(
    short_help="Show the settings that are stored with a queue, or change them.",
    epilog=examples(
        "groupmq queue settings orders",
        "groupmq queue settings orders --set max_attempts=7 --set backoff=1s..5m",
        "groupmq queue settings orders --set keep_failed=5000,14d --set rate_limit=100/1s",
    ),
)
@queue_argument
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Store this value; may be repeated.")
@target_options
def settings(target: Target, name: str | None, changes: tuple[str, ...]) -> None:
    """Show the settings that are stored with a queue, or change some of them in one write.

    They apply to every process that does not give its own value. Running processes use a change from their next call
    on; a process that is started with another value is refused.

    \b
    Durations   30, 500ms, 10m, 2h, 7d      job_timeout, priority_ageing
    Back-off    5s, or 1s..5m, which grows  backoff
    Kept        100, 30d, 10000,30d or all  keep_completed, keep_failed
    Limits      100/1s                      rate_limit, group_rate_limit, breaker
    Ordering    event_time:2s, arrival:500ms..2s
    "none" turns off a setting that is off by default.
    """
    wanted = dict(_change(one) for one in changes)
    with target.existing(name) as queue:
        before = queue.get_settings()
        after = queue.reconfigure(**wanted) if wanted else before
    changed = [one for one in wanted if getattr(before, one) != getattr(after, one)]
    value = {"queue": queue.name, "settings": after.to_dict(), "changed": changed}
    show(target, value, lambda: _table(after, before, changed))


def _table(after: QueueSettings, before: QueueSettings, changed: list[str]) -> Table:
    rows = []
    for name in QueueSettings.names():
        was = f"was {spelled(name, getattr(before, name))}" if name in changed else ""
        rows.append((name, spelled(name, getattr(after, name)), was))
    rows += [(name, tables.data(value), "unknown to this release") for name, value in after.unknown.items()]
    return tables.table(("SETTING", "VALUE", ""), rows)


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as max_attempts=7.", param_hint="--set")
    try:
        return name, read_setting(name, value)
    except ConfigurationError as error:
        raise click.BadParameter(f"{error}.", param_hint="--set") from None
