"""One script call as a dialogue with the server, without I/O.

The asynchronous and the blocking client drive the same generator: it yields commands to send and pauses to make, and
is sent replies or thrown exceptions. Opening the queue and our own resending live here, once; `calling.py` has how a
function is called.
Every script is safe to resend: it does the same again without harm, or it has kept its answer, which is found by the
slot and the number that travel with the call (`protocol/slots.py`, `lua/lib/answered.lua`).
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Generator
from typing import Any, TypeVar

from groupmq.client.connection.calling import Calling
from groupmq.client.connection.faults import is_passing, understood
from groupmq.client.registry import Entry
from groupmq.core.errors import ConfigurationError, ConnectionLost, GroupMQError, QueueNotFound, ScriptError
from groupmq.core.options import SHARED_DEFAULTS, QueueOptions
from groupmq.protocol import commands, functions
from groupmq.protocol.commands import Call
from groupmq.protocol.keys import Keys
from groupmq.protocol.slots import Slots

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
        self.entry = Entry(options, where)
        self._slots = Slots()
        self.calling = Calling()
        self._opened = False
        self._lenient = False
        self._makes = True
        self.closed = False

    def ask(self, call: Call[T], patience: float) -> Steps[T]:
        """Make a call. While the server cannot be reached, try again for up to `patience` seconds."""
        self._require_open()
        if call.after:
            yield call.after
        give_up = time.monotonic() + patience
        pause = _FIRST_PAUSE
        slot = self._slots.take() if functions.load(call.script).remembers else None
        proof: Command = (slot.name, slot.number) if slot else ()
        again: Command = ()
        while True:
            try:
                if not self._opened:
                    yield from self.open()
                if self.entry.due <= time.monotonic():
                    yield from self.entry.write()
                answer = yield from self._evaluate(call, proof + again)
                if slot and not again:
                    self._slots.give_back(slot)
                return answer
            except GroupMQError as error:
                if slot and isinstance(error, ConnectionLost):
                    again = (b"again",)  # it may have arrived
                left = give_up - time.monotonic()
                if left <= 0 or not is_passing(error):
                    raise
                yield min(left, pause * (0.5 + random.random()))  # noqa: S311
                pause = min(pause * 2, _LONGEST_PAUSE)

    def plainly(self, steps: Steps[T]) -> Steps[T]:
        """Plain commands (`plain.py`), which are about the server and not about this queue."""
        self._require_open()
        return (yield from steps)

    def _require_open(self) -> None:
        if self.closed:
            raise GroupMQError(f"queue {self.options.name!r} is closed; make a new Queue")

    def open(self, *, replace: bool = False) -> Steps[None]:
        """Create the queue, or check that this process agrees with how it was created."""
        options = self.options
        if self._makes:
            call = commands.open_queue(options.shared, options.group_concurrency, options.rules, replace=replace)
        else:
            call = commands.look_at_queue()
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
        if self._makes:
            yield from self.entry.write()

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

    def _evaluate(self, call: Call[T], proof: Command = ()) -> Steps[T]:
        """`proof`: by what the server recognises the call when it is sent again."""
        script = functions.load(call.script)
        tail: Command = (1, self.keys.meta, call.args)
        if call.blob or proof:
            tail = (*tail, call.blob, *proof)
        for _ in range(3):
            try:
                reply = yield from self.calling.call(script, tail)
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
