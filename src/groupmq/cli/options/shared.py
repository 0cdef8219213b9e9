"""How commands are shaped: groups in the order they were written, examples in the help, common options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
STATES = ("active", "waiting", "delayed", "failed", "completed")


class Ordered(click.Group):
    """A group that lists its commands in the order in which they were added, not alphabetically."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def examples(*lines: str) -> str:
    """An epilog with command lines that can be copied."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def states_option(help_text: str, *, allowed: tuple[str, ...] = STATES) -> Callable[[F], F]:
    """The option --state, which may be repeated."""
    return click.option("--state", "states", multiple=True, type=click.Choice(allowed), help=help_text)


def yes_option(command: F) -> F:
    return click.option("--yes", "-y", is_flag=True, help="Do it without asking.")(command)


def group_option(help_text: str) -> Callable[[F], F]:
    return click.option("--group", "-g", "group_id", metavar="ID", help=help_text)


queue_argument = click.argument("name", metavar="[QUEUE]", required=False)
"""The queue as an argument; without it, --queue."""
