"""`groupmq monitor`."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
from typing import Any

import click

from groupmq import GroupMQError, QueueSurvey
from groupmq.cli.monitor import terminal
from groupmq.cli.monitor.draw import sheet
from groupmq.cli.monitor.fetch import QueueWatcher
from groupmq.cli.monitor.history import RATES
from groupmq.cli.monitor.live import LiveView, trouble
from groupmq.cli.monitor.state import State, seen
from groupmq.cli.monitor.text import Glyphs, glyphs_for
from groupmq.cli.options.shared import examples, queue_argument
from groupmq.cli.options.target import Target, target_options
from groupmq.cli.options.values import DurationType
from groupmq.cli.output.answers import as_line, console, plain

NARROWEST, WIDEST = 40, 400


@click.command(
    short_help="Watch a queue live.",
    epilog=examples(
        "groupmq monitor --queue orders",
        "groupmq monitor orders --interval 500ms >> orders.log",
        "groupmq monitor orders --once --json | jq .rates.completed",
    ),
)
@queue_argument
@click.option(
    "--interval",
    type=DurationType(0.1),
    default=1.0,
    show_default=True,
    metavar="TIME",
    help="Time between two refreshes.",
)
@click.option("--once", is_flag=True, help="Print one frame. It reads the queue twice, one interval apart, for rates.")
@target_options
def monitor(target: Target, name: str | None, interval: float, once: bool) -> None:
    """Watch a queue: counts, rates, groups, running jobs, workers and failures.

    On a terminal it fills the screen; ? lists the keys: inspect a job, retry one that failed, pause and resume. In a
    pipe it prints a frame of plain text, or with --json a line, at each refresh. It only reads: nothing in the queue
    changes unless you press a key that asks for it.
    """
    with target.existing(name) as queue:
        found = queue.name
    asyncio.run(_watch(target, found, interval, once=once))


async def _watch(target: Target, name: str, interval: float, *, once: bool) -> None:
    watcher = QueueWatcher(target, name)
    try:
        # Done before anything is drawn, so that an error is shown as by any other command.
        state = seen(State(name, watcher.where, interval), await watcher.look())
        glyphs = glyphs_for(sys.stdout.encoding)
        if once:
            await asyncio.sleep(interval)
            _print(target, seen(state, await watcher.look()), glyphs)
        elif terminal.is_there() and not target.as_json:
            await LiveView(watcher, terminal.Terminal(), state, glyphs).run()
        else:
            await _stream(target, watcher, state, glyphs)
    finally:
        await watcher.close()


async def _stream(target: Target, watcher: QueueWatcher, state: State, glyphs: Glyphs) -> None:
    """Frame after frame, until a signal ends it."""
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    _print(target, state, glyphs)
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(state.interval):
                await over.wait()
        if over.is_set():
            return
        try:
            state = seen(state, await watcher.look())
        except GroupMQError as error:
            text = trouble(error, watcher.where)
            click.echo(as_line({"queue": state.queue, "trouble": text}) if target.as_json else text)
        else:
            if not target.as_json:
                click.echo()
            _print(target, state, glyphs)


def _print(target: Target, state: State, glyphs: Glyphs) -> None:
    if target.as_json:
        click.echo(as_line(facts(state)))
        return
    out = console()
    for row in sheet(state, _width(), glyphs):
        if out.is_terminal:
            row.rstrip()
            click.echo(terminal.rendered(out, row))
        else:
            click.echo(row.plain.rstrip())


def _width() -> int:
    """The width of the terminal, else $COLUMNS, else 80 columns."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((80, 24)).columns))


def facts(state: State) -> dict[str, Any]:
    """The state, for programs."""
    found: dict[str, Any] = {"queue": state.queue}
    for name, value in (_survey_facts(state.look) if state.look else {}).items():
        found[name] = plain(value)
        if name == "counts":
            found["rates"] = _with_old_name(state.history.rates())
    return found


def _with_old_name(numbers: dict[str, Any]) -> dict[str, Any]:
    """The numbers, with `processed` as a second name of `completed` in this release."""
    return numbers | {"processed": numbers["completed"]}


def _survey_facts(survey: QueueSurvey) -> dict[str, Any]:
    """A survey for `--json`, in this order. `added` of the last hour is left out: only its rate is known."""
    return {
        "at": survey.at,
        "paused": survey.paused,
        "counts": survey.counts,
        "oldest_wait": survey.oldest_wait,
        "longest_held": survey.longest_held,
        "longest_held_unpaused": survey.longest_held_unpaused,
        "last_hour": _with_old_name({name: getattr(survey.last_hour, name) for name in RATES if name != "added"}),
        "groups_blocked": survey.groups_blocked,
        "breakers_open": survey.breakers_open,
        "groups": {
            "busiest": survey.busiest,
            "longest_waiting": survey.longest_waiting,
            "most_delayed": survey.longest_waiting,  # deprecated
            "blocked": survey.blocked,
            "breakers": survey.breakers,
        },
        "active": survey.runs,
        "workers": survey.workers,
        "failures": survey.failures,
    }
