"""The parts of a frame, each a few lines of a given width. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from rich.text import Text

from groupmq import QueueSurvey, RecentFailure, RunningJob
from groupmq.cli.monitor.history import RATES
from groupmq.cli.monitor.state import MonitorRow, State
from groupmq.cli.monitor.text import (
    BAD,
    BOLD,
    CHOSEN,
    DIM,
    GAP,
    GOOD,
    SPARK,
    Cell,
    Column,
    Glyphs,
    fit,
    heading,
    line,
    number,
    per_second,
    span,
    sparkline,
    widths,
)

T = TypeVar("T")
NO_GROUP = "(no group)"
_COUNT, _NAME, _CLOCK = 9, 12, 12
"""Columns for a count, for the name of the queue, for the time."""
_WITH_HOST, _WITH_REASON = 56, 46
"""Smallest widths at which workers are shown with host and pid, and delayed groups with what holds them."""
_STATES = {"failed": BAD, "paused": BAD, "blocked": BAD, "completed": GOOD, "gone": DIM}


def header(state: State, width: int, glyphs: Glyphs) -> Text:
    """Which queue, where, when."""
    word, style = ("PAUSED", f"{BOLD} {BAD}") if state.paused else ("running", GOOD)
    at = f"{state.look.at:%H:%M:%S} UTC" if state.look else "-"
    columns, cells = [Column("", share=1), Column("", 7)], [Cell(state.queue, BOLD, name=True), Cell(word, style)]
    # The name of the queue comes first; what is left is for its server.
    room = min(len(state.where), width - _NAME - 7 - _CLOCK - 3 * GAP)
    if room > 0:
        columns, cells = [*columns, Column("", room)], [*cells, Cell(state.where, DIM)]
    return line([*columns, Column("", _CLOCK, right=True)], [*cells, Cell(at, DIM)], width, glyphs)


def counts(look: QueueSurvey | None, width: int, glyphs: Glyphs) -> list[Text]:
    """Jobs in each state, and the longest waits: of a job that could start now, and in a group that is held."""
    names = ["total", "active", "waiting", "delayed", "completed", "failed", "groups", "held", "oldest wait"]
    # A number must not be cut, or it would be another number; a narrow screen shows fewer of them.
    for name in ("completed", "total", "groups", "delayed", "failed"):
        if (_COUNT + GAP) * len(names) - GAP > width:
            names.remove(name)
    values = dict.fromkeys(names, Cell("-"))
    if look is not None:
        found = look.counts
        for name in names[:-2]:
            n: int = getattr(found, "unique_groups" if name == "groups" else name)
            colour = f" {BAD}" if name == "failed" else ""
            values[name] = Cell(number(n), BOLD + colour if n else DIM)
        held = look.longest_held_unpaused or look.longest_held
        for name, wait in zip(names[-2:], (held.wait if held else None, look.oldest_wait), strict=True):
            values[name] = Cell(span(wait), BOLD if wait else DIM)
    columns = [Column(name, right=i > 0, share=1) for i, name in enumerate(names)]
    labels = [Cell(name, DIM) for name in names]
    return [line(columns, labels, width, glyphs), line(columns, values.values(), width, glyphs)]


def rates(state: State, width: int, glyphs: Glyphs) -> list[Text]:
    """The rates per second, their history, and the totals of the last hour."""
    columns = [Column("RATES", 9), Column("PER S", 7, right=True), Column("", share=1), Column("1 HOUR", 7, right=True)]
    steps = {name: state.history.steps(name) for name in RATES}
    most = max((value for values in steps.values() for value in values), default=0.0)
    room = widths(columns, width)[2]
    lines = [heading(columns, width, glyphs)]
    for name in RATES:
        hour = "" if state.look is None or name == "added" else number(getattr(state.look.last_hour, name))
        rate = state.history.rate(name)
        bad = BAD if name == "failed" and rate else ""
        bars = sparkline(steps[name], room, most, glyphs)
        cells = [Cell(name), Cell(per_second(rate), bad), Cell(bars, bad or SPARK), Cell(hour)]
        lines.append(line(columns, cells, width, glyphs))
    return lines


def workers(look: QueueSurvey | None, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """The workers."""
    found = look.workers if look else ()
    columns = [
        Column(_title("WORKERS", len(found), height), share=1),
        Column("BUSY", 7, right=True),
        Column("SEEN", 6, right=True),
    ]
    rows = [
        [Cell(one.name, name=True), Cell(f"{one.busy}/{one.concurrency}"), Cell(span(one.seen), DIM)] for one in found
    ]
    if width >= _WITH_HOST:
        columns.insert(1, Column("HOST AND PID", 24))
        for row, one in zip(rows, found, strict=True):
            row.insert(1, Cell(f"{one.host} {one.pid}", DIM, name=True))
    return _table(columns, rows, width, height, glyphs, "no workers")


def busiest(look: QueueSurvey | None, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """The groups with most jobs."""
    columns = [
        Column("BUSIEST GROUPS", share=1),
        Column("WAITING", 7, right=True),
        Column("ACTIVE", 6, right=True),
    ]
    found = look.busiest if look else ()
    rows = [(_group(one.id), Cell(number(one.waiting)), Cell(number(one.active))) for one in found]
    return _table(columns, rows, width, height, glyphs, "no group has jobs")


def blocked(look: QueueSurvey | None, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """The groups that wait until a person retries, skips or removes a failed job; nothing at all if there is none."""
    if look is None or not look.blocked:
        return []
    columns = [
        Column(_title("BLOCKED GROUPS", look.groups_blocked, height), share=3),
        Column("BY JOB", share=3),
        Column("FOR", 6, right=True),
        Column("WAITING", 7, right=True),
    ]
    rows = [
        (
            Cell(one.id, BAD, name=True),
            Cell(one.blocked_by or "-", name=True),
            Cell(span((look.at - one.blocked_since).total_seconds() if one.blocked_since else None)),
            Cell(number(one.waiting)),
        )
        for one in look.blocked
    ]
    return _table(columns, rows, width, height, glyphs, "")


def breakers(look: QueueSurvey | None, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """The groups whose attempts fail in a row, so that they rest; nothing at all if there is none."""
    if look is None or not look.breakers:
        return []
    columns = [
        Column(_title("OPEN BREAKERS", look.breakers_open, height), share=3),
        Column("FAILED IN A ROW", 15, right=True),
        Column("FOR", 6, right=True),
        Column("RESTS", 6, right=True),
        Column("WAITING", 7, right=True),
    ]
    rows = [
        (
            Cell(one.id, BAD, name=True),
            Cell(number(one.failures)),
            Cell(span((look.at - one.breaker_since).total_seconds() if one.breaker_since else None)),
            Cell(span(_left(look.at, one.breaker_until))),
            Cell(number(one.waiting)),
        )
        for one in look.breakers
    ]
    return _table(columns, rows, width, height, glyphs, "")


def _left(at: datetime, until: datetime | None) -> float | None:
    """Seconds of rest that are left; None if it is over, and the next job that starts is the one that is tried."""
    left = (until - at).total_seconds() if until else 0.0
    return left if left > 0 else None


def longest_waiting(look: QueueSurvey | None, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """The groups whose first job has waited longest, and why."""
    held = (look.longest_held_unpaused or look.longest_held) if look else None
    columns = [
        Column("LONGEST WAITING GROUPS", share=1),
        Column("WAITED", 6, right=True),
        Column("HELD BY", 12) if width >= _WITH_REASON else Column("STATE", 7),
    ]
    found = look.longest_waiting if look else ()
    rows = [
        (
            _group(one.id),
            Cell(span(one.waited)),
            # The survey knows the reason only for the group that is held longest; for the others, only the state.
            _state(held.reason if held and held.group_id == one.id and width >= _WITH_REASON else one.state),
        )
        for one in found
    ]
    return _table(columns, rows, width, height, glyphs, "no group waits")


def runs(state: State, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """Running jobs, the longest-running first."""
    look = state.look
    total = look.counts.active if look else 0
    columns = [
        Column(_title("ACTIVE JOBS", total, height), share=3),
        Column("GROUP", share=3),
        Column("ATTEMPT", 7, right=True),
        Column("RUNS FOR", 8, right=True),
        Column("WORKER", share=3),
    ]

    def row(run: RunningJob) -> tuple[Cell, ...]:
        cells = Cell(run.id, name=True), _group(run.group_id), Cell(str(run.attempt)), Cell(span(run.running_for))
        return *cells, Cell(run.worker, DIM, name=True)

    found = look.runs if look else ()
    at = _selected(state, [MonitorRow("run", run.id) for run in found])
    return _walked(columns, found, row, at, width, height, glyphs, "nothing runs")


def failures(state: State, width: int, height: int, glyphs: Glyphs) -> list[Text]:
    """The last failures, and the state of their jobs now."""
    columns = [
        Column("RECENT FAILURES", share=3),
        Column("ATTEMPT", 7, right=True),
        Column("AGO", 6, right=True),
        Column("NOW", 9),
        Column("ERROR", share=5),
    ]

    def row(one: RecentFailure) -> tuple[Cell, ...]:
        cells = Cell(one.id, name=True), Cell(str(one.attempt)), Cell(span(one.ago)), _state(one.state or "gone")
        return *cells, Cell(one.error)

    found = state.look.failures if state.look else ()
    at = _selected(state, [MonitorRow("failure", one.id) for one in found])
    return _walked(columns, found, row, at, width, height, glyphs, "nothing failed")


def first_row(length: int, height: int, at: int | None) -> int:
    """The first row to show so that row `at` is in view."""
    return 0 if at is None or at < height else min(at - height + 1, length - height)


def _title(name: str, total: int, height: int) -> str:
    return f"{name} ({number(total)})" if total > height else name


def _group(group_id: str | None) -> Cell:
    return Cell(NO_GROUP, DIM) if group_id is None else Cell(group_id, name=True)


def _state(name: str) -> Cell:
    return Cell(name, _STATES.get(name, ""))


def _selected(state: State, rows: Sequence[MonitorRow]) -> int | None:
    return rows.index(state.selected) if state.selected in rows else None


def _table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int, height: int, glyphs: Glyphs, nothing: str
) -> list[Text]:
    lines = [heading(columns, width, glyphs)]
    lines += [line(columns, cells, width, glyphs) for cells in rows[:height]]
    if not rows and height > 0:
        lines.append(Text(fit(nothing, width, glyphs), DIM))
    return lines


def _walked(
    columns: Sequence[Column],
    found: Sequence[T],
    row: Callable[[T], Sequence[Cell]],
    at: int | None,
    width: int,
    height: int,
    glyphs: Glyphs,
    nothing: str,
) -> list[Text]:
    """A table with a selection, scrolled so that it is in view."""
    first = first_row(len(found), height, at)
    lines = _table(columns, [row(one) for one in found[first : first + height]], width, height, glyphs, nothing)
    if at is not None and height > 0:
        lines[1 + at - first].style = CHOSEN
    return lines
