"""What one queue object knows of its queue on the server. All of its connections share it. No I/O."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Literal

from groupmq.client.connection.registry_entry import RegistryEntry
from groupmq.core.errors import ConfigurationError, GroupMQError, QueueNotFound
from groupmq.core.options import SHARED_DEFAULTS, QueueOptions
from groupmq.core.partitions import Part
from groupmq.core.settings import options_as_stored
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.protocol.keys import Keys
from groupmq.protocol.slots import CallSlots


class Session:
    """Whether the queue was opened, how functions are called, and whether the queue object is closed."""

    def __init__(self, options: QueueOptions, where: str) -> None:
        self.options = options
        self.keys = Keys(options.prefix, options.name, options.part)
        self.where = where
        self.is_in_cluster = "+cluster://" in where
        self.entry = RegistryEntry(options, where)
        self.slots = CallSlots()
        self.calls_by: Literal["function", "script"] = "function"
        """Functions cost a call nothing, a script is set up anew by each call. The first call that is refused a
        function switches to scripts."""
        self.opened = False
        self.closed = False
        self.creates = options.part is None
        """Whether opening a queue that does not exist creates it."""
        self.accepts_stored = False
        """Whatever settings the queue has are taken."""
        self.stored: dict[str, Any] = {}
        """The settings that the queue was found with."""
        self.partitions = options.partitions
        """How many there are; None = not known yet."""
        self.confirm: Callable[[], Any] | None = None
        """Of a partition: asks whether the queue still has as many as this process believes."""

    def require_open(self) -> None:
        if self.closed:
            raise GroupMQError(f"queue {self.options.name!r} is closed; make a new Queue")

    def accept_stored_settings(self, *, make: bool = True) -> None:
        """Use the queue with whatever settings it has; for tools that only look at it or act on its jobs.

        Without `make` a queue that does not exist is not created, whatever is called: that raises QueueNotFound.
        """
        self.accepts_stored = True
        self.creates = make

    def confirm_by(self, confirm: Callable[[], Any], whole: Session) -> None:
        """For a partition of a queue: it is made when it does not exist, as long as `confirm` does not object."""
        self.confirm, self.creates, self.accepts_stored = confirm, True, whole.accepts_stored

    def opening_call(self, *, replace: bool) -> Call[tuple[str | None, str]]:
        if not self.creates:
            return commands.look_at_queue()
        options = dataclasses.replace(self.options, partitions=self.partitions)
        return commands.open_queue(
            options.shared, options.group_concurrency, options.rules, replace=replace, schema=self._schema
        )

    def options_of(self, part: Part) -> QueueOptions:
        """The options of one partition: shared settings as the queue has them, whatever this process was given."""
        return dataclasses.replace(options_as_stored(self.options, self.stored), part=part, partitions=part.of)

    @property
    def _schema(self) -> str:
        """The format that a new queue gets. That of a queue with partitions no function takes: its jobs are in them."""
        spread = self.options.part is None and (self.partitions or 1) > 1
        return commands.PARTITIONED if spread else commands.SCHEMA

    def check_opened(self, schema: str | None, config: str) -> None:
        """Raise unless the stored queue can be used by this process."""
        if schema is None:
            self.opened = False
            raise QueueNotFound(self.options.name, self.where)
        stored = json.loads(config)
        if schema == commands.PARTITIONED and self.options.part is None:
            schema = commands.SCHEMA
        if schema == commands.MOVING:
            raise ConfigurationError(
                f"queue {self.options.name!r} is being repartitioned; use it when `groupmq queue repartition` has "
                "ended, or run that again if it was interrupted"
            )
        if schema != commands.SCHEMA:
            raise ConfigurationError(
                f"queue {self.options.name!r} is stored in format {schema}, this release of groupmq reads "
                f"format {commands.SCHEMA}; use the release that made it, or drain and obliterate it"
            )
        self.stored = dict(stored)
        self._learn(stored.get("partitions", 1))
        if not self.accepts_stored:
            mine = json.loads(self.options.shared)
            if self.options.partitions is None:
                stored.pop("partitions", None)
            self._compare(stored, mine)
        self.opened = True

    def _learn(self, stored: int) -> None:
        """How many partitions the queue has. Work with another number would put jobs where nobody looks for them."""
        if self.partitions is None:
            self.partitions = stored
        elif self.partitions != stored:
            raise ConfigurationError(
                f"queue {self.options.name!r} exists with other settings: partitions is {stored} there and "
                f"{self.partitions} here. `groupmq queue repartition` changes it; restart processes after that"
            )

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
