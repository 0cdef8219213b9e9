"""What the commands share: where the queue is, how answers are shown, what an error costs."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, TypeVar

import click
from rich.console import Console

from groupmq.cli.reading import READABLE
from groupmq.embedded import EmbeddedServerError
from groupmq.errors import (
    ConfigurationError,
    ConnectionLost,
    GroupFull,
    GroupMQError,
    ServerRefused,
)
from groupmq.options import MAX_ATTEMPTS, Retention
from groupmq.sync import Queue

F = TypeVar("F", bound=Callable[..., Any])
DONE, NOT_FOUND, BAD_USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
UNSET_ATTEMPTS = MAX_ATTEMPTS
"""What `max_attempts` of a job is here if it has none of its own: only workers know the queue's."""
_WIDE = 100_000


@dataclass(frozen=True)
class Target:
    """The queue a command is about, and how to show the answer."""

    url: str | None
    queue: str | None
    prefix: str
    as_json: bool

    def name(self, given: str | None = None) -> str:
        """The queue: named by the command, or `--queue`, or $GROUPMQ_QUEUE."""
        name = given or self.queue
        if not name:
            fail("which queue? Name it with --queue, or set GROUPMQ_QUEUE", BAD_USAGE)
        return name

    @contextmanager
    def open(self, given: str | None = None, *, make: bool = True, **options: Any) -> Iterator[Queue]:
        """The queue, as it is stored: a command never disagrees about its settings.

        Nor does it trim what workers keep: it cannot know how much they do.
        """
        settings: dict[str, Any] = {"keep_completed": Retention(), "keep_failed": Retention(), "serializer": READABLE}
        queue = Queue(self.name(given), self.url, prefix=self.prefix, **(settings | options))
        queue.connection.dialogue.accept_stored_settings(make=make)
        try:
            yield queue
        finally:
            queue.close()

    @contextmanager
    def existing(self, given: str | None = None) -> Iterator[Queue]:
        """Like `open`, for a queue that must be there: a slip in its name is told, and makes no new queue."""
        with self.open(given, make=False, max_attempts=UNSET_ATTEMPTS) as queue:
            queue.is_paused()  # raises if there is no such queue, before the command asks or does anything
            yield queue


def target_options(command: F) -> F:
    """Add --redis-url, --queue, --prefix and --json; the command gets them as `target`."""

    @click.option("--redis-url", envvar=["GROUPMQ_URL", "REDIS_URL"], metavar="URL", help="Server to use.")
    @click.option("--queue", "-q", envvar="GROUPMQ_QUEUE", metavar="NAME", help="Queue to use.")
    @click.option("--prefix", default="groupmq", show_default=True, help="Prefix of the queue's keys.")
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @functools.wraps(command)
    def wrapped(*args: Any, redis_url: str | None, queue: str | None, prefix: str, as_json: bool, **rest: Any) -> Any:
        return command(*args, target=Target(redis_url, queue, prefix, as_json), **rest)

    return wrapped  # type: ignore[return-value]


def fail(message: str, code: int) -> NoReturn:
    """One clear line on stderr, and the exit code for it."""
    click.echo(f"groupmq: {' '.join(message.split())}", err=True)
    sys.exit(code)


def console(*, stderr: bool = False) -> Console:
    """Colours only on a terminal, and not with NO_COLOR."""
    colours: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, color_system=colours, highlight=False, soft_wrap=True)


def plain(value: Any) -> Any:
    """Anything we show, as JSON knows it."""
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
        # Ids and data are no markup, whatever brackets they have.
        out.print(found, markup=False)
        return
    # In a pipe nothing is cut to the width of a screen that is not there.
    out.width = _WIDE
    with out.capture() as captured:
        out.print(found, markup=False)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def as_line(value: Any) -> str:
    """Anything we show, as one line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False, default=str)


def guarded(action: Callable[[], Any]) -> None:
    """Run the program; every error that an operator can meet is one line and a code, never a traceback."""
    try:
        code = action()
    except click.UsageError as error:
        _wrong_usage(error)
    except click.ClickException as error:
        fail(error.format_message(), BAD_USAGE)
    except (click.Abort, KeyboardInterrupt):
        fail("interrupted", INTERRUPTED)
    except ConfigurationError as error:
        fail(str(error), BAD_USAGE)
    except (ConnectionLost, ServerRefused, EmbeddedServerError) as error:
        fail(str(error), UNREACHABLE)
    except GroupFull as error:
        fail(f"group {error.group_id!r} is full (max_group_size); nothing was added", NOT_FOUND)
    except GroupMQError as error:
        fail(str(error), NOT_FOUND)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), NOT_FOUND)
    # What click's own `ctx.exit(code)` comes back as; a command's other answers mean nothing.
    sys.exit(code if isinstance(code, int) else DONE)


def _wrong_usage(error: click.UsageError) -> NoReturn:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(BAD_USAGE)
    path = error.ctx.command_path if error.ctx else "groupmq"
    fail(f"{error.format_message()} See {path} --help", BAD_USAGE)


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """The reader of a pipe that goes, as `head` does, is not an error of ours."""
    try:
        yield
    except BrokenPipeError:
        # What is still buffered would complain when the interpreter ends.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(DONE) from None


def tolerant_streams() -> None:
    """A terminal that knows no Unicode gets escapes, not an error."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
