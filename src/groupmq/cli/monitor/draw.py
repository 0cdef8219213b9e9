"""A frame from the state and the size of the screen: no line is too wide, and there are no more than fit. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rich.text import Text

from groupmq.cli.monitor import panels
from groupmq.cli.monitor.pages import help_lines, job_lines
from groupmq.cli.monitor.state import State
from groupmq.cli.monitor.text import BAD, BOLD, CHOSEN, DIM, GAP, Glyphs, beside, exactly, fit

MARGIN = 2
"""Columns on the left, where the pointer is."""
NARROW = 64
"""Columns below which the right-hand part is left out."""
AIRY = 32
"""Fewest rows of a screen that has empty lines between the parts."""
RATES_HEIGHT = 4
MOST_STOPPED = 5
"""Blocked groups, and open breakers, that are shown; each of them is trouble, so they come first."""


class Size(NamedTuple):
    width: int
    height: int


class PanelRows(NamedTuple):
    """Rows of each list, headings not counted."""

    groups: int
    runs: int
    failures: int


def frame(state: State, size: Size, glyphs: Glyphs) -> list[Text]:
    """Exactly as many lines as the screen has: a page, the status line, and the keys."""
    width, height = size
    room = max(0, height - 2)
    if state.page == "queue":
        airy = height >= AIRY
        share = shares(room - stopped_height(state, airy=airy), airy=airy)
        body = queue_lines(state, width, share, glyphs, airy=airy, fill=True)
    else:
        top = page_top(state, width, glyphs)
        body = [*top, *page_lines(state, width, glyphs)[state.scroll :][: max(0, room - len(top))]]
    lines = [exactly(one, width) for one in body[:room]]
    lines += [Text(" " * width)] * (room - len(lines))
    lines += [exactly(message(state, width, glyphs), width), exactly(keys(state, width, glyphs), width)]
    return lines[-height:] if height > 0 else []


def sheet(state: State, width: int, glyphs: Glyphs) -> list[Text]:
    """A frame for a pipe: as long as it needs to be, without the keys."""
    lines = queue_lines(state, width, PanelRows(10, 10, 10), glyphs, airy=True, fill=False)
    return [*lines, exactly(message(state, width, glyphs), width)] if state.trouble else lines


def within(state: State, size: Size, glyphs: Glyphs) -> State:
    """The state, scrolled no further than its page is long."""
    if state.page == "queue" or state.scroll == 0:
        return state
    room = max(1, size.height - 2 - len(page_top(state, size.width, glyphs)))
    longest = max(0, len(page_lines(state, size.width, glyphs)) - room)
    return replace(state, scroll=min(state.scroll, longest))


def stopped_height(state: State, *, airy: bool) -> int:
    """Lines that blocked groups and open breakers take: none if there are none."""
    lists = (state.look.blocked, state.look.breakers) if state.look else ()
    return sum(1 + min(MOST_STOPPED, len(groups)) + airy for groups in lists if groups)


def shares(room: int, *, airy: bool) -> PanelRows:
    """How the remaining rows are shared among the lists; none gets more rows than are fetched for it."""
    fixed = 1 + 2 + 1 + RATES_HEIGHT + 3 + (5 if airy else 0)
    left = max(0, room - fixed)
    groups = min(20, (left + 2) // 3)
    failures = min(50, (left - groups) * 3 // 7)
    return PanelRows(groups, left - groups - failures, failures)


def queue_lines(state: State, width: int, share: PanelRows, glyphs: Glyphs, *, airy: bool, fill: bool) -> list[Text]:
    """The page of the queue. `fill`: lists are as high as they may get, so that nothing moves as jobs come and go."""
    inner = max(1, width - MARGIN - 1)
    look = state.look
    wide = width >= NARROW
    left = (inner - GAP) * 3 // 5 if wide else inner
    half = (inner - GAP) // 2 if wide else inner
    rates = panels.rates(state, left, glyphs)
    groups = panels.busiest(look, half, share.groups, glyphs)
    if wide:
        rates = beside(rates, panels.workers(look, inner - left - GAP, RATES_HEIGHT, glyphs), inner, left)
        waiting = panels.longest_waiting(look, inner - half - GAP, share.groups, glyphs)
        groups = beside(groups, waiting, inner, half)
    parts = [
        [panels.header(state, inner, glyphs)],
        panels.counts(look, inner, glyphs),
        panels.blocked(look, inner, MOST_STOPPED, glyphs),
        panels.breakers(look, inner, MOST_STOPPED, glyphs),
        rates,
        _filled(groups, share.groups * fill),
        _filled(panels.runs(state, inner, share.runs, glyphs), share.runs * fill),
        panels.failures(state, inner, share.failures, glyphs),
    ]
    lines: list[Text] = []
    for part in parts:
        if lines and part and airy:
            lines.append(Text())
        lines += [_behind_margin(one, glyphs) for one in part]
    return lines


def _filled(lines: list[Text], height: int) -> list[Text]:
    return lines + [Text()] * (1 + height - len(lines))


def _behind_margin(row: Text, glyphs: Glyphs) -> Text:
    mark = f"{glyphs.pointer} " if row.style == CHOSEN else " " * MARGIN
    return Text.assemble((mark, BOLD), row)


def page_top(state: State, width: int, glyphs: Glyphs) -> list[Text]:
    inner = max(1, width - MARGIN - 1)
    return [_behind_margin(panels.header(state, inner, glyphs), glyphs), Text()]


def page_lines(state: State, width: int, glyphs: Glyphs) -> list[Text]:
    """The page of a job, or the help, from its first line to its last."""
    inner = max(1, width - MARGIN - 1)
    lines = help_lines(inner, glyphs) if state.page == "help" else job_lines(state, inner)
    return [_behind_margin(one, glyphs) for one in lines]


def message(state: State, width: int, glyphs: Glyphs) -> Text:
    """The status line: a question, an error, or the result of an action."""
    inner = max(0, width - MARGIN - 1)
    if state.question is not None:
        text, style = f"{state.question.text} y/n", BOLD
    elif state.trouble is not None:
        text, style = state.trouble, BAD
    else:
        text, style = state.message or "", BOLD
    if state.question is not None and len(text) > inner:
        return Text("  " + fit(state.question.text, max(0, inner - 4), glyphs) + " y/n", style)
    return Text("  " + fit(text, inner, glyphs), style)


def keys(state: State, width: int, glyphs: Glyphs) -> Text:
    """The keys that mean something here."""
    if state.question is not None:
        hints = "y yes   any other key no"
    elif state.page == "queue":
        switch = "p resume" if state.paused else "p pause"
        hints = f"{glyphs.arrows} select   Enter inspect   r retry   {switch}   ? help   q quit"
    else:
        hints = f"{glyphs.arrows} scroll   " + ("r retry   " if state.page == "job" else "") + "q back"
    return Text("  " + fit(hints, max(0, width - MARGIN - 1), glyphs), DIM)
