"""Which queue a command is about: --redis-url, --queue, --prefix, --json."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from groupmq import MAX_ATTEMPTS
from groupmq.cli.exits import BAD_USAGE, fail
from groupmq.cli.output.readable_data import READABLE
from groupmq.sync import Queue

F = TypeVar("F", bound=Callable[..., Any])
QUEUE_VARIABLE = "GROUPMQ_QUEUE"
UNSET_ATTEMPTS = MAX_ATTEMPTS
"""`max_attempts` of a job that has none of its own, if none is stored with its queue."""


@dataclass(frozen=True)
class Target:
    """The queue a command is about, and how to show the answer."""

    url: str | None
    queue: str | None
    prefix: str
    as_json: bool
    queues: tuple[str, ...] = ()
    """The queues of a command that may name several."""
    is_queue_typed: bool = False
    """`queue` is from the command line, not from the environment."""

    def name(self, given: str | None = None) -> str:
        """The queue: named by the command, or `--queue`, or $GROUPMQ_QUEUE."""
        if given == "":
            # Probably an unset variable of a shell script, so the queue of the environment is not the one that was
            # meant.
            fail("the name of the queue is empty", BAD_USAGE)
        if given and self.is_queue_typed and given != self.queue:
            fail(f"two queues are named, {given!r} and {self.queue!r} (--queue); name one", BAD_USAGE)
        name = given or self.queue
        if not name:
            fail("which queue? Name it with --queue, or set GROUPMQ_QUEUE", BAD_USAGE)
        return name

    @contextmanager
    def open(self, given: str | None = None, *, make: bool = True, **options: Any) -> Iterator[Queue]:
        """Open the queue with its stored settings: a command never conflicts with them."""
        name = self.name(given)
        with Queue.attach(name, self.url, make=make, prefix=self.prefix, serializer=READABLE, **options) as queue:
            yield queue

    @contextmanager
    def existing(self, given: str | None = None) -> Iterator[Queue]:
        """Like `open`, for a queue that must exist: a misspelled name raises QueueNotFound and makes no queue."""
        with Queue.open(self.name(given), self.url, prefix=self.prefix, serializer=READABLE) as queue:
            yield queue

    def unopened(self, given: str | None = None) -> Queue:
        """A queue that may not be in a state to be opened; nothing is sent yet."""
        return Queue.attach(self.name(given), self.url, prefix=self.prefix, serializer=READABLE)


def target_options(command: F) -> F:
    """Add --redis-url, --queue, --prefix and --json; the command gets them as `target`."""

    @click.option("--redis-url", envvar=["GROUPMQ_URL", "REDIS_URL"], metavar="URL", help="Server to use.")
    @click.option("--queue", "--namespace", "-q", "queue", envvar=QUEUE_VARIABLE, metavar="NAME", help="Queue to use.")
    @click.option("--prefix", default="groupmq", show_default=True, help="Prefix of the queue's keys.")
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @functools.wraps(command)
    def wrapped(*args: Any, redis_url: str | None, queue: str | None, prefix: str, as_json: bool, **rest: Any) -> Any:
        typed = click.get_current_context().get_parameter_source("queue") is ParameterSource.COMMANDLINE
        return command(*args, target=Target(redis_url, queue, prefix, as_json, is_queue_typed=typed), **rest)

    return wrapped  # type: ignore[return-value]


def several_queues_options(command: F) -> F:
    """Like `target_options`, but --queue may be repeated."""

    @click.option("--redis-url", envvar=["GROUPMQ_URL", "REDIS_URL"], metavar="URL", help="Server to use.")
    @click.option(
        "--queue", "--namespace", "-q", "queues", multiple=True, metavar="NAME", help="Queue to use; may be repeated."
    )
    @click.option("--prefix", default="groupmq", show_default=True, help="Prefix of the queue's keys.")
    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
    @functools.wraps(command)
    def wrapped(
        *args: Any, redis_url: str | None, queues: tuple[str, ...], prefix: str, as_json: bool, **rest: Any
    ) -> Any:
        # Read here: click would split the value of the variable at spaces.
        named = queues or tuple(filter(None, [os.environ.get(QUEUE_VARIABLE)]))
        queues = tuple(dict.fromkeys(named))
        target = Target(redis_url, queues[0] if queues else None, prefix, as_json, queues)
        return command(*args, target=target, **rest)

    return wrapped  # type: ignore[return-value]
