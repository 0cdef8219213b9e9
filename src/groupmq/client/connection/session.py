"""What one queue object knows of its queue on the server. All of its connections share it. No I/O."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Literal

from groupmq.client.connection.registry_entry import RegistryEntry
from groupmq.core.durability import REPORTING
from groupmq.core.errors import ConfigurationError, GroupMQError, QueueNotFound
from groupmq.core.options import SHARED_DEFAULTS, QueueOptions
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.protocol.keys import Keys
from groupmq.protocol.slots import CallSlots

_WARN_EVERY = 60.0
"""Seconds between warnings that outcomes are not durable in time."""


class Session:
    """Whether the queue was opened, how functions are called, and whether the queue object is closed."""

    def __init__(self, options: QueueOptions, where: str) -> None:
        self.options = options
        self.keys = Keys(options.prefix, options.name)
        self.where = where
        self.is_in_cluster = "+cluster://" in where
        self.entry = RegistryEntry(options, where)
        self.slots = CallSlots()
        self.calls_by: Literal["function", "script"] = "function"
        """Functions cost a call nothing, a script is set up anew by each call. The first call that is refused a
        function switches to scripts."""
        self.opened = False
        self.closed = False
        self.creates = True
        """Whether opening a queue that does not exist creates it."""
        self._accepts_stored = False
        self.needs_fsync = options.durability is not None and options.durability.fsync
        """Whether it is still to be seen that the server can wait for its disk."""
        self._warn_after = 0.0

    def require_open(self) -> None:
        if self.closed:
            raise GroupMQError(f"queue {self.options.name!r} is closed; make a new Queue")

    def accept_stored_settings(self, *, make: bool = True) -> None:
        """Use the queue with whatever settings it has; for tools that only look at it or act on its jobs.

        Without `make` a queue that does not exist is not created, whatever is called: that raises QueueNotFound.
        """
        self._accepts_stored = True
        self.creates = make

    def must_be_durable(self, function: str) -> bool:
        """Whether a call of this function returns only when what it wrote is durable."""
        durability = self.options.durability
        return durability is not None and durability.applies_to(function)

    def confirmation(self) -> tuple[tuple[Any, ...], ...]:
        """What is sent behind a call that must be durable."""
        durability = self.options.durability
        return () if durability is None else durability.commands(self.keys.durable)

    def check_durable(self, function: str, reply: Any) -> None:
        """Raise if what was added is not durable in time. An outcome is told to nobody who could act: it is logged."""
        durability = self.options.durability
        if durability is None or (lacking := durability.missing(reply)) is None:
            return
        if function not in REPORTING:
            durability.require(reply)
        if time.monotonic() >= self._warn_after:
            self._warn_after = time.monotonic() + _WARN_EVERY
            log = self.options.logger or logging.getLogger("groupmq")
            log.warning(
                "queue %s: outcomes were reported, but after %g s %s; after a failover their jobs may run again",
                self.options.name,
                durability.timeout_ms / 1000,
                lacking,
            )

    def opening_call(self, *, replace: bool) -> Call[tuple[str | None, str]]:
        if not self.creates:
            return commands.look_at_queue()
        options = self.options
        return commands.open_queue(options.shared, options.group_concurrency, options.rules, replace=replace)

    def check_opened(self, schema: str | None, config: str) -> None:
        """Raise unless the stored queue can be used by this process."""
        if schema is None:
            self.opened = False
            raise QueueNotFound(self.options.name, self.where)
        if schema != commands.SCHEMA:
            raise ConfigurationError(
                f"queue {self.options.name!r} is stored in format {schema}, this release of groupmq reads "
                f"format {commands.SCHEMA}; use the release that made it, or drain and obliterate it"
            )
        if not self._accepts_stored:
            self._compare(json.loads(config), json.loads(self.options.shared))
        self.opened = True

    def _compare(self, stored: dict[str, Any], mine: dict[str, Any]) -> None:
        default = SHARED_DEFAULTS.get
        differences = [
            f"{name} is {stored.get(name, default(name))!r} there and {mine.get(name, default(name))!r} here"
            for name in sorted(stored.keys() | mine.keys())
            if stored.get(name) != mine.get(name)
        ]
        if differences:
            raise ConfigurationError(
                f"queue {self.options.name!r} exists with other settings: {'; '.join(differences)}. "
                "Every process must use the same; call reconfigure() once to change what is stored"
            )
