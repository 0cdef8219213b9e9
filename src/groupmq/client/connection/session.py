"""What one queue object knows of its queue on the server. All of its connections share it. No I/O."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Any, Literal

from groupmq.client.connection.registry_entry import RegistryEntry
from groupmq.core.checks import Logger
from groupmq.core.durability import REPORTING
from groupmq.core.errors import ConfigurationError, GroupMQError, QueueNotFound
from groupmq.core.options import AS_STORED, HANDLING, QueueArguments, QueueOptions
from groupmq.core.settings import QueueSettings, StoredQueue, adopted, changed, differences, given_too, not_known
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.protocol.keys import Keys
from groupmq.protocol.slots import CallSlots

_WARN_EVERY = 60.0
"""Seconds between warnings that outcomes are not durable in time."""


class Known:
    """What a process knows of the stored settings of one queue, for all connections that it uses the queue with."""

    def __init__(self, given: QueueOptions) -> None:
        self.given = given
        """As the process was started."""
        self._learned = given, b""
        """Both at once: with the options of one revision under the number of another, a change would go unnoticed."""
        self._told: dict[bytes, object] = {}
        self.opened = False
        self.creates = True
        """Whether opening a queue that does not exist creates it."""
        self.accepts_stored = False
        self._logger: Logger = given.logger or logging.getLogger("groupmq.queue")

    @property
    def options(self) -> QueueOptions:
        """As the queue is stored, once that is known. Another object after each change."""
        return self._learned[0]

    @property
    def revision(self) -> bytes:
        """Of the settings that are known; empty = none are, and calls are not checked."""
        return self._learned[1]

    def learn(self, stored: StoredQueue) -> None:
        """Use the queue as it is stored from now on. Raises ConfigurationError if this process was given other values.

        Settings that change while a process runs are used by it, whatever it was given: it must not stop in the middle
        of its work. The change is logged, and the next start is refused.
        """
        if self.opened and stored.revision == self.revision:
            return
        settings = QueueSettings.of(stored)
        found = self._differences(settings)
        if found and not self.opened:
            raise _disagrees(self.given.name, found)
        if found and self.revision:
            self._tell(stored.revision, found)
        self._learned = self._adopted(stored, settings), stored.revision
        self.opened = True

    def _tell(self, revision: bytes, found: list[str]) -> None:
        """Log a change once, whether the heartbeat's thread or the event loop notices it first."""
        mine = object()
        if self._told.setdefault(revision, mine) is mine:
            self._logger.warning(
                "queue %s: the stored settings have changed, and this process goes on with them: %s. "
                "With what it was given it cannot be started again",
                self.given.name,
                "; ".join(found),
            )

    def _differences(self, settings: QueueSettings) -> list[str]:
        return [] if self.accepts_stored else [*differences(self.given, settings), *not_known(settings)]

    def change(self, stored: StoredQueue, changes: QueueArguments) -> QueueOptions:
        """The options to store in place of what is stored. Raises as `learn` for what is not to change."""
        if stored.schema is None:
            return changed(QueueSettings.from_stored(self.options.described()), self.given.name, changes)
        settings = QueueSettings.of(stored)
        others = replace(self.given, given=self.given.given - changes.keys())
        if not self.opened and not self.accepts_stored and (found := differences(others, settings)):
            raise _disagrees(self.given.name, found)
        return changed(settings, self.given.name, changes)

    def has_changed(self, stored: StoredQueue, changes: QueueArguments) -> None:
        """This process has changed what is stored: from now on that is what it was given."""
        self.given = given_too(self.given, QueueSettings.of(stored), changes.keys())
        self.learn(stored)

    def _adopted(self, stored: StoredQueue, settings: QueueSettings) -> QueueOptions:
        options, mine = adopted(self.given, settings), self.given
        if not self.accepts_stored:
            return options
        # How a tool handles jobs is its own affair where it was told so. If nothing is stored about that, it must
        # neither fail jobs early nor remove what workers keep.
        own = given_too(options, QueueSettings.from_stored(mine.described()), mine.given.intersection(HANDLING))
        if stored.handling:
            return own
        careful: Any = {name: value for name, value in AS_STORED.items() if name not in mine.given}
        return replace(own, **careful)


def _disagrees(name: str, found: list[str]) -> ConfigurationError:
    return ConfigurationError(
        f"queue {name!r} exists with other settings: {'; '.join(found)}. "
        "Leave out what is to be as stored; reconfigure() changes what is stored"
    )


class Session:
    """Whether the queue was opened, how functions are called, and whether the queue object is closed."""

    def __init__(self, options: QueueOptions, where: str, known: Known | None = None) -> None:
        """`known`: that of another connection to the same queue."""
        self.known = Known(options) if known is None else known
        self.keys = Keys(options.prefix, options.name)
        self.where = where
        self.is_in_cluster = "+cluster://" in where
        self.entry = RegistryEntry(options, where)
        self.slots = CallSlots()
        self.calls_by: Literal["function", "script"] = "function"
        """Functions cost a call nothing, a script is set up anew by each call. The first call that is refused a
        function switches to scripts."""
        self.closed = False
        self.needs_fsync = options.durability is not None and options.durability.fsync
        """Whether it is still to be seen that the server can wait for its disk."""
        self._warn_after = 0.0

    @property
    def options(self) -> QueueOptions:
        """As the queue is stored, once that is known."""
        return self.known.options

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

        Without `make` a queue that does not exist is not created, whatever is called: that raises QueueNotFound.
        """
        self.known.accepts_stored = True
        self.known.creates = make

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

    def opening_call(self) -> Call[StoredQueue]:
        # A queue that was flushed is made again as it was known, not as this process was once started.
        return commands.open_queue(self.options) if self.creates else commands.look_at_queue()

    def check_opened(self, stored: StoredQueue) -> None:
        """Raise unless the stored queue can be used by this process; learn its settings."""
        if stored.schema is None:
            self.opened = False
            raise QueueNotFound(self.options.name, self.where)
        self._check_format(stored)
        self.known.learn(stored)

    def changed(self, stored: StoredQueue, changes: QueueArguments) -> QueueOptions:
        """The options to store instead, with these changes."""
        if stored.schema is not None:
            self._check_format(stored)
        elif not self.creates:
            raise QueueNotFound(self.options.name, self.where)
        return self.known.change(stored, changes)

    def has_changed(self, stored: StoredQueue, changes: QueueArguments) -> None:
        self.known.has_changed(stored, changes)

    def _check_format(self, stored: StoredQueue) -> None:
        if stored.schema != commands.SCHEMA:
            raise ConfigurationError(
                f"queue {self.options.name!r} is stored in format {stored.schema}, this release of groupmq reads "
                f"format {commands.SCHEMA}; use the release that made it, or drain and obliterate it"
            )
