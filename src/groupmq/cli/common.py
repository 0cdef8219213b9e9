"""What the commands share: where the queue is, how answers are shown, what an error costs."""

from __future__ import annotations

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

from groupmq.errors import ConfigurationError, ConnectionLost, GroupMQError, JobNotFound, ServerRefused, WrongState
from groupmq.sync import Queue

F = TypeVar("F", bound=Callable[..., Any])
DONE, NOT_FOUND, BAD_USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes."""


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
    def open(self, given: str | None = None) -> Iterator[Queue]:
        """The queue, as it is stored: a command never disagrees about its settings."""
        queue = Queue(self.name(given), self.url, prefix=self.prefix)
        queue.connection.dialogue.accept_stored_settings()
        try:
            yield queue
        finally:
            queue.close()


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
    click.echo(f"groupmq: {message}", err=True)
    sys.exit(code)


def console(*, stderr: bool = False) -> Console:
    """Colours only on a terminal, and not with NO_COLOR."""
    return Console(stderr=stderr, no_color="NO_COLOR" in os.environ, highlight=False, soft_wrap=True)


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
        click.echo(json.dumps(plain(value), ensure_ascii=False, default=str))
        return
    found = text()
    if found is not None:
        console().print(found)


def guarded(action: Callable[[], None]) -> None:
    """Run the program; every error that an operator can meet is one line and a code, never a traceback."""
    try:
        action()
    except (JobNotFound, WrongState) as error:
        fail(str(error), NOT_FOUND)
    except ConfigurationError as error:
        fail(str(error), BAD_USAGE)
    except (ConnectionLost, ServerRefused) as error:
        fail(str(error), UNREACHABLE)
    except GroupMQError as error:
        fail(str(error), NOT_FOUND)
    except KeyboardInterrupt:
        fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of a pipe has gone: not an error of ours.
        sys.stdout = None  # type: ignore[assignment]
        sys.exit(0)
