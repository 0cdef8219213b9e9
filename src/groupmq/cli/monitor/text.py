"""Text in columns of exact width: whatever a group is called, a line is never wider than the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from groupmq.cli.output import tables

DIM, BOLD, TITLE, GOOD, BAD, SPARK = "dim", "bold", "bold", "green", "red", "cyan"
CHOSEN = "reverse"
GAP = 2
_MIDDLE = 8
"""Smallest width, in cells, at which a name is cut in the middle; below that, at its end."""
_UNITS = "kMGTPE"


class Glyphs(NamedTuple):
    """The characters beyond ASCII that are used."""

    pointer: str
    cut: str
    levels: str
    arrows: str


RICH = Glyphs("▸", "…", "▁▂▃▄▅▆▇█", "↑↓")
PLAIN = Glyphs(">", "~", "_.:-=+*#", "Up/Down")


def glyphs_for(encoding: str | None) -> Glyphs:
    """The glyphs that a terminal, or a file, can show."""
    try:
        "".join(RICH).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return RICH


class Column(NamedTuple):
    """A column: its heading, its width, and its part of what is left over."""

    title: str
    width: int = 0
    share: int = 0
    right: bool = False


class Cell(NamedTuple):
    """`name`: cut in the middle if it is too long, because names often differ only at their end."""

    text: str
    style: str = ""
    name: bool = False


def fit(value: object, width: int, glyphs: Glyphs, *, right: bool = False, name: bool = False) -> str:
    """A value in exactly `width` cells, cut or filled up; control characters as escapes. `name`: as in `Cell`."""
    text = tables.words(value, None)
    if (cells := cell_len(text)) > width:
        if width <= 0:
            return ""
        if name and width >= _MIDDLE:
            return _cut_in_the_middle(text, width, glyphs)
        # A letter two cells wide may not fit before the mark: set_cell_size then leaves a space.
        return set_cell_size(text, width - 1) + glyphs.cut
    return " " * (width - cells) + text if right else text + " " * (width - cells)


def _cut_in_the_middle(text: str, width: int, glyphs: Glyphs) -> str:
    end = ""
    for letter in reversed(text):
        if cell_len(letter + end) > (width - 1) // 2:
            break
        end = letter + end
    return set_cell_size(text, width - 1 - cell_len(end)) + glyphs.cut + end


def widths(columns: Sequence[Column], width: int) -> list[int]:
    """Widths that fill a line: the fixed ones, then the shares of the rest."""
    left = max(0, width - sum(column.width for column in columns) - GAP * (len(columns) - 1))
    shares = sum(column.share for column in columns) or 1
    found = [column.width + left * column.share // shares for column in columns]
    grows = [i for i, column in enumerate(columns) if column.share]
    if grows:
        found[grows[-1]] += left - sum(left * column.share // shares for column in columns)
    return found


def line(columns: Sequence[Column], cells: Iterable[Cell], width: int, glyphs: Glyphs) -> Text:
    """One row of a table."""
    row = Text()
    for i, (column, cell, size) in enumerate(zip(columns, cells, widths(columns, width), strict=True)):
        row.append(" " * GAP if i else "")
        row.append(fit(cell.text, size, glyphs, right=column.right, name=cell.name), cell.style)
    return exactly(row, width)


def heading(columns: Sequence[Column], width: int, glyphs: Glyphs) -> Text:
    """The row of headings. The first of them is the title of the table."""
    cells = [Cell(column.title, DIM if i else TITLE) for i, column in enumerate(columns)]
    return line(columns, cells, width, glyphs)


def exactly(row: Text, width: int) -> Text:
    """The row cut or filled to a width."""
    row = row.copy()
    row.truncate(width, overflow="crop", pad=True)
    return row


def beside(left: Sequence[Text], right: Sequence[Text], width: int, left_width: int) -> list[Text]:
    """Two blocks side by side."""
    height = max(len(left), len(right))
    blank = Text()
    rows = []
    for i in range(height):
        row = exactly(left[i] if i < len(left) else blank, left_width) + Text(" " * GAP)
        rows.append(exactly(row + (right[i] if i < len(right) else blank), width))
    return rows


def number(value: int) -> str:
    """At most seven characters: `999,999`, `1.23M`."""
    if value < 1_000_000:
        return f"{value:,}"
    power = min(len(_UNITS), (len(str(value)) - 1) // 3)
    size = value / 1000**power
    if size >= 999.5 and power < len(_UNITS):
        power, size = power + 1, size / 1000
    return f"{size:.3g}{_UNITS[power - 1]}" if size < 999.5 else f"{size:.0f}{_UNITS[power - 1]}"


def per_second(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate:.1f}" if rate < 1000 else number(round(rate))


def span(seconds: float | None) -> str:
    """A duration in at most six characters: `1.2s`, `12s`, `3m05s`, `2h10m`, `4d03h`, `123d`."""
    if seconds is None:
        return "-"
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    for size, part, unit, smaller in ((86_400, 3600, "d", "h"), (3600, 60, "h", "m"), (60, 1, "m", "s")):
        if whole >= size:
            large = whole // size
            return f"{large}{unit}{whole % size // part:02d}{smaller}" if large < 100 else f"{large}{unit}"
    raise AssertionError("unreachable")


def sparkline(values: Sequence[float], width: int, most: float, glyphs: Glyphs) -> str:
    """The last values as bars, `most` the highest; zero is the lowest bar, and a small value never looks like zero."""
    levels = glyphs.levels
    shown = values[-width:] if width > 0 else ()
    bars = "".join(
        levels[0] if value <= 0 or most <= 0 else levels[max(1, min(7, round(value / most * 7)))] for value in shown
    )
    return bars.rjust(max(0, width))
