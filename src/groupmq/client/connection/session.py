"""What one queue object knows of its queue on the server. All of its connections share it. No I/O."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Literal

from groupmq.client.connection.known import Known, KnownPart
from groupmq.client.connection.registry_entry import RegistryEntry
from groupmq.core.durability import REPORTING, Confirmation
from groupmq.core.errors import ConfigurationError, GroupMQError, QueueNotFound
from groupmq.core.queue_options import QueueArguments, QueueOptions
from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.protocol.keys import Keys
from groupmq.protocol.requesters import Requesters

_WARN_EVERY = 60.0
"""Seconds between warnings that outcomes are not durable in time."""


class Session:
    """Whether the queue was opened, how functions are called, and whether the queue object is closed."""

    def __init__(
        self,
        options: QueueOptions,
        where: str,
        known: Known | KnownPart | None = None,
        confirm: Callable[[], Any] | None = None,
    ) -> None:
        """`known`: that of another connection to the same queue, or of one of its partitions."""
        self.known = Known(options) if known is None else known
        self.partition = known if isinstance(known, KnownPart) else None
        """None: these are connections to the queue itself."""
        self.keys = Keys(options.prefix, options.name, None if self.partition is None else self.partition.part)
        self.confirm = confirm
        """For a partition: reads the settings of the queue itself, and makes it if it is gone. None: only read them."""
        self.where = where
        self.is_in_cluster = "+cluster://" in where
        self.entry = RegistryEntry(options, where)
        self.requesters = Requesters()
        self.calls_by: Literal["function", "script"] = "function"
        """A function adds nothing to the cost of a call; a script is set up again by each call. The first call that is
        refused a function, and then works as a script, switches to scripts."""
        self.closed = False
        self.needs_fsync = options.durability is not None and options.durability.fsync
        """Whether it is not yet known that the server can wait for its disk."""
        self._warn_after = 0.0

    @property
    def options(self) -> QueueOptions:
        """The options as stored with the queue, once they are known."""
        return self.known.options

    @property
    def whole(self) -> Known:
        """What is known of the queue itself."""
        return self.known.whole if isinstance(self.known, KnownPart) else self.known

    @property
    def settings_key(self) -> str:
        """The key that has the settings of the queue itself."""
        return Keys(self.keys.prefix, self.keys.queue).meta

    @property
    def opened(self) -> bool:
        return self.known.opened

    @opened.setter
    def opened(self, opened: bool) -> None:
        self.known.opened = opened

    @property
    def creates(self) -> bool:
        return self.known.creates

    def require_open(self) -> None:
        if self.closed:
            raise GroupMQError(f"queue {self.options.name!r} is closed; make a new Queue")

    def accept_stored_settings(self, *, make: bool = True) -> None:
        """Use the queue with whatever settings it has; for tools that only look at it or act on its jobs.

        Without `make` no method creates a queue that does not exist: each raises QueueNotFound.
        """
        self.whole.accepts_stored = True
        self.whole.creates = make

    def must_be_durable(self, function: str) -> bool:
        """Whether a call of this function returns only when what it wrote is durable."""
        durability = self.options.durability
        return durability is not None and durability.applies_to(function)

    def confirmation(self) -> Confirmation:
        """The commands that are sent after a call that must be durable."""
        durability = self.options.durability
        return () if durability is None else durability.commands(self.keys.durable)

    def check_durable(self, function: str, reply: Any) -> None:
        """Raise if an add is not durable in time. For outcomes it is logged instead: no caller could act on it."""
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

    def opening_call(self) -> Call[StoredQueue]:
        if self.partition is not None:
            # A user who only looks may have no permission to write. Any other use creates a missing partition.
            return self.making_call() if self.whole.creates else commands.look_at_queue()
        # A flushed queue is made again with the settings last known, not with those this process was started with.
        return commands.open_queue(self.options) if self.creates else commands.look_at_queue()

    def making_call(self) -> Call[StoredQueue]:
        """Makes a partition, unless it exists."""
        return commands.open_partition(self.options.name, self.whole.stored)

    def updating_call(self, was: StoredQueue) -> Call[StoredQueue]:
        """Gives a partition the settings of the queue, if it has not changed since it was read."""
        return commands.open_partition(self.options.name, self.whole.stored, was)

    def check_opened(self, stored: StoredQueue) -> None:
        """Raise unless the stored queue can be used by this process; learn its settings."""
        if stored.schema is None:
            self.whole.opened = False
            raise QueueNotFound(self.options.name, self.where)
        self._check_format(stored, commands.SCHEMA, commands.PARTITIONED)
        self.whole.learn(stored)

    def check_partition(self, stored: StoredQueue) -> None:
        self._check_format(stored, commands.SCHEMA)

    def changed(self, stored: StoredQueue, changes: QueueArguments) -> QueueOptions:
        """The options to store instead, with these changes."""
        if stored.schema is not None:
            self._check_format(stored, commands.SCHEMA, commands.PARTITIONED)
        elif not self.creates:
            raise QueueNotFound(self.options.name, self.where)
        return self.whole.change(stored, changes)

    def has_changed(self, stored: StoredQueue, changes: QueueArguments) -> None:
        self.whole.has_changed(stored, changes)

    def _check_format(self, stored: StoredQueue, *readable: str) -> None:
        if stored.schema == commands.MOVING:
            raise ConfigurationError(
                f"queue {self.options.name!r} is being repartitioned; use it when `groupmq queue repartition` has "
                "ended, or run that again if it was interrupted"
            )
        if stored.schema not in readable:
            raise ConfigurationError(
                f"queue {self.options.name!r} is stored in format {stored.schema}, this release of groupmq reads "
                f"format {commands.SCHEMA}; use the release that made it, or drain and obliterate it"
            )
