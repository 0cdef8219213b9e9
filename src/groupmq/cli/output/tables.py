"""Answers as tables for people: plain columns, colours where they help, nothing that a group id could break."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from groupmq.cli.output.readable_data import NotJson
from groupmq.wording import number as number
from groupmq.wording import span as span
from groupmq.wording import when as when

STYLES = {
    "active": "cyan",
    "waiting": "yellow",
    "delayed": "magenta",
    "completed": "green",
    "failed": "red",
    "paused": "red",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
}


def words(value: Any, longest: int | None = None) -> str:
    """A value in one line; control characters, which could drive a terminal, as escapes."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return when(value)
    text = str(value)
    if not text.isprintable():
        text = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
    return text if longest is None or len(text) <= longest else text[: longest - 3] + "..."


def data(value: Any, longest: int | None = None) -> str:
    """Job data in one line."""
    if isinstance(value, NotJson):
        return str(value)
    return words(json.dumps(value, ensure_ascii=False, default=str), longest)


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Columns without rules. Numbers are right-aligned; a cell that names a state has the colour of the state."""
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    cells = [list(row) for row in rows]
    for at, heading in enumerate(headings):
        numbers = bool(cells) and all(isinstance(row[at], int) for row in cells)
        found.add_column(heading, justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        found.add_row(*(_cell(value) for value in row))
    return found


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Names and values, a line each; values that are None are left out."""
    found = Table.grid(padding=(0, 2, 0, 0))
    found.add_column(style="bold")
    found.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            if isinstance(value, datetime):
                value = f"{when(value)} UTC"
            found.add_row(name, value if isinstance(value, Text) else _cell(value))
    return found


def lines(text: str) -> Text:
    """Text of several lines, such as a stack trace."""
    return Text("\n".join(words(line) for line in text.splitlines()))


def _cell(value: Any) -> Text:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else words(value)
    return Text(text, style=STYLES.get(text, ""))
