"""Answers of commands: JSON for programs, tables and text for people."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click
from rich.console import Console

from groupmq.cli.exits import DONE
from groupmq.cli.options.target import Target

_WIDE = 100_000


def console(*, stderr: bool = False) -> Console:
    """A console with colours only on a terminal, and not with NO_COLOR."""
    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, color_system=colours, highlight=False, soft_wrap=True)


def plain(value: Any) -> Any:
    """Anything we show, in types that JSON has."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def show(target: Target, value: Any, text: Callable[[], Any]) -> None:
    """Print `value` as JSON, or what `text()` makes of it for people."""
    if target.as_json:
        click.echo(as_line(value))
        return
    found = text()
    if found is None:
        return
    out = console()
    if out.is_terminal:
        # Brackets in ids and data are not markup.
        out.print(found, markup=False)
        return
    # Output to a pipe is not cut: there is no screen with a width.
    out.width = _WIDE
    with out.capture() as captured:
        out.print(found, markup=False)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def as_line(value: Any) -> str:
    """Anything we show, as one line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False, default=str)


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End without an error if the reader closes the pipe, as `head` does."""
    try:
        yield
    except BrokenPipeError:
        # Python would print an error for buffered text when the interpreter ends.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(DONE) from None


def tolerant_streams() -> None:
    """Write escapes, instead of raising, to a terminal without Unicode."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
