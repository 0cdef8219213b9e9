"""`groupmq queue settings`: what is stored with a queue, and changing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.table import Table

from groupmq import Backoff, Breaker, ConfigurationError, Ordering, QueueSettings, RateLimit, Retention
from groupmq.cli.options.shared import examples, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import BACKOFF, DURATION
from groupmq.cli.output import tables
from groupmq.cli.output.answers import show
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

    They hold for every process that gives none of its own. Processes that run use a change from their next call on; one
    that is started with another value is refused.

    \b
    Durations   30, 500ms, 10m, 2h, 7d      job_timeout, priority_ageing
    Back-off    5s, or 1s..5m, which grows  backoff
    Kept        100, 30d, 10000,30d or all  keep_completed, keep_failed
    Limits      100/1s                      rate_limit, group_rate_limit, breaker
    Ordering    event_time:2s, arrival:500ms..2s
    "none" turns off what is off by default.
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
    if name not in QueueSettings.names():
        known = ", ".join(QueueSettings.names())
        raise click.BadParameter(f"{name!r} is no setting of a queue; known: {known}.", param_hint="--set")
    try:
        return name, READERS[name](value.strip())
    except (click.BadParameter, ConfigurationError, ValueError) as error:
        said = error.message if isinstance(error, click.BadParameter) else f"{error}."
        raise click.BadParameter(f"{name}: {said}", param_hint="--set") from None


def _duration(text: str) -> float:
    return DURATION.convert(text, None, None)


def _number(text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _flag(text: str) -> bool:
    known = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is neither yes nor no")
    return known[text.lower()]


def _optional(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text.lower() == "none" else read(text)


def _backoff(text: str) -> Backoff:
    found = BACKOFF.convert(text, None, None)
    return Backoff.exponential(base=found[0], max=found[1]) if isinstance(found, list) else Backoff.fixed(found)


def _kept(text: str) -> Retention:
    """`100`, `30d`, `10000,30d` or `all`: a plain number counts jobs, one with a unit is an age."""
    if text.lower() == "all":
        return Retention()
    count, age = None, None
    for part in text.split(","):
        if part.strip().isdigit():
            count = int(part)
        else:
            age = _duration(part)
    return Retention(count=count, age=age)


def _pair(text: str) -> tuple[int, float]:
    """`100/1s`: how many, in how long."""
    count, slash, per = text.partition("/")
    if not slash:
        raise ValueError(f"{text!r} is not COUNT/TIME, such as 100/1s")
    return _number(count.strip()), _duration(per)


def _ordering(text: str) -> Ordering:
    kind, _, window = text.partition(":")
    first, dots, last = window.partition("..")
    if kind == "event_time" and not dots:
        return Ordering.event_time(_duration(first))
    if kind == "arrival":
        return Ordering.arrival(_duration(first), **({"max_wait": _duration(last)} if dots else {}))
    raise ValueError(f"{text!r} is not event_time:TIME, arrival:TIME or arrival:TIME..TIME")


def _partitions(_text: str) -> int:
    raise ValueError("it takes moving the jobs; use `groupmq queue repartition`")


READERS: dict[str, Callable[[str], Any]] = {
    "job_timeout": _duration,
    "max_attempts": _number,
    "backoff": _backoff,
    "on_retry": str,
    "keep_completed": _kept,
    "keep_failed": _kept,
    "group_concurrency": _number,
    "on_failed": str,
    "breaker": _optional(lambda text: Breaker(*_pair(text))),
    "ordering": _optional(_ordering),
    "fairness": str,
    "exclusive": _flag,
    "rate_limit": _optional(lambda text: RateLimit(*_pair(text))),
    "group_rate_limit": _optional(lambda text: RateLimit(*_pair(text))),
    "max_group_size": _optional(_number),
    "priority_ageing": _optional(_duration),
    "partitions": _partitions,
    "events": _flag,
}
