"""One script call as a dialogue with the server, without I/O.

The asynchronous and the blocking client drive the same generator: it yields commands to send and pauses to make, and
is sent replies or thrown exceptions. EVALSHA, NOSCRIPT, opening the queue and our own resending live here, once.
Every script is safe to resend, which is what makes the resending honest.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Generator
from typing import Any, TypeVar

from groupmq import commands, scripts
from groupmq.commands import Call
from groupmq.errors import ConfigurationError, GroupMQError, QueueNotFound, ScriptError
from groupmq.faults import is_no_script, is_passing, understood
from groupmq.keys import Keys
from groupmq.options import SHARED_DEFAULTS, QueueOptions

T = TypeVar("T")
Command = tuple[Any, ...]
Pause = float
Steps = Generator[Command | Pause, Any, T]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Dialogue:
    """The conversation of one queue object with its server."""

    def __init__(self, options: QueueOptions, where: str) -> None:
        self.options = options
        self.keys = Keys(options.prefix, options.name)
        self.where = where
        self._opened = False
        self._lenient = False
        self._makes = True
        self.closed = False

    def ask(self, call: Call[T], patience: float) -> Steps[T]:
        """Make a call. While the server cannot be reached, try again for up to `patience` seconds."""
        if self.closed:
            raise GroupMQError(f"queue {self.options.name!r} is closed; make a new Queue")
        give_up = time.monotonic() + patience
        pause = _FIRST_PAUSE
        while True:
            try:
                if not self._opened:
                    yield from self.open()
                return (yield from self._evaluate(call))
            except GroupMQError as error:
                left = give_up - time.monotonic()
                if left <= 0 or not is_passing(error):
                    raise
                yield min(left, pause * (0.5 + random.random()))  # noqa: S311
                pause = min(pause * 2, _LONGEST_PAUSE)

    def open(self, *, replace: bool = False) -> Steps[None]:
        """Create the queue, or check that this process agrees with how it was created."""
        call = commands.open_queue(
            self.options.shared,
            self.options.group_concurrency,
            self.options.rules,
            replace=replace,
            only_look=not self._makes,
        )
        schema, config = yield from self._evaluate(call)
        if schema is None:
            self._opened = False
            raise QueueNotFound(self.options.name, self.where)
        if schema != commands.SCHEMA:
            raise ConfigurationError(
                f"queue {self.options.name!r} is stored in format {schema}, this release of groupmq reads "
                f"format {commands.SCHEMA}; use the release that made it, or drain and obliterate it"
            )
        self._compare(json.loads(config), json.loads(self.options.shared))
        self._opened = True

    def accept_stored_settings(self, *, make: bool = True) -> None:
        """Use the queue with whatever settings it has; for tools that only look at it or act on its jobs.

        Without `make` a queue that does not exist is not made, whatever is called: that raises QueueNotFound.
        """
        self._lenient = True
        self._makes = make

    def _compare(self, stored: dict[str, Any], mine: dict[str, Any]) -> None:
        default = SHARED_DEFAULTS.get
        differences = [
            f"{name} is {stored.get(name, default(name))!r} there and {mine.get(name, default(name))!r} here"
            for name in sorted(stored.keys() | mine.keys())
            if stored.get(name) != mine.get(name)
        ]
        if differences and not self._lenient:
            raise ConfigurationError(
                f"queue {self.options.name!r} exists with other settings: {'; '.join(differences)}. "
                "Every process must use the same; call reconfigure() once to change what is stored"
            )

    def _evaluate(self, call: Call[T]) -> Steps[T]:
        script = scripts.load(call.script)
        tail: Command = (1, self.keys.meta, call.args, call.blob) if call.blob else (1, self.keys.meta, call.args)
        for _ in range(3):
            try:
                try:
                    reply = yield ("EVALSHA", script.sha, *tail)
                except Exception as error:
                    if not is_no_script(error):
                        raise
                    reply = yield ("EVAL", script.text, *tail)
            except Exception as error:
                known = understood(error, self.where)
                if not isinstance(known, ScriptError):
                    raise known from error
                if "GROUPMQ_SCHEMA" not in str(known):
                    raise ScriptError(f"{script.name}: {script.explain(str(known))}") from error
                # The queue is gone (flushed, obliterated) or of another format: open says which.
                yield from self.open()
                continue
            return call.parse(reply)
        raise ScriptError(f"{script.name}: the queue {self.options.name!r} disappears as fast as it is opened")
