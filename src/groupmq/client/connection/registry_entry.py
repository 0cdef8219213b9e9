"""The entry of one queue in the list of queues: whether it has to be written, and what a failure means. No I/O."""

from __future__ import annotations

import logging
import math
import time

from groupmq.client.connection.faults import is_passing, understood
from groupmq.core.checks import Logger
from groupmq.core.errors import GroupMQError, ServerRefused
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol.keys import registry_key

TRY_AGAIN = 10.0
"""Seconds until the next try to enter a queue that could not be entered for a passing reason."""

_FOR_NOW = frozenset({"OOM", "MISCONF", "NOREPLICAS"})
_warned: set[tuple[str, str, str]] = set()
"""The queues whose warning was logged: a process has several connections, and each would log it."""


class RegistryEntry:
    """When the name of a queue is to be written to the list. The queue works without it."""

    def __init__(self, options: QueueOptions, where: str) -> None:
        self.name, self.prefix, self._where = options.name, options.prefix, where
        self._logger: Logger = options.logger or logging.getLogger("groupmq.queue")
        self.due = math.inf
        """When to write it, on the monotonic clock; infinity once it is written."""

    @property
    def key(self) -> str:
        return registry_key(self.prefix)

    @property
    def command(self) -> tuple[str, str, str]:
        return ("SADD", self.key, self.name)

    def written(self) -> None:
        self.due = math.inf

    def not_written(self, error: Exception) -> None:
        """Plan another try if that may help, else log a warning and give up: only the list is affected."""
        known = understood(error, self._where)
        if is_passing(known) or (isinstance(known, ServerRefused) and known.kind in _FOR_NOW):
            self.due = time.monotonic() + TRY_AGAIN
            return
        self.due = math.inf
        self._warn(known)

    def not_removed(self, error: GroupMQError) -> None:
        self._logger.debug("queue %s stays in the list of queues until Queue.list() removes it: %s", self.name, error)

    def _warn(self, error: GroupMQError) -> None:
        this = self._where, self.prefix, self.name
        if this not in _warned:
            _warned.add(this)
            self._logger.warning(
                "queue %s works, but Queue.list() will not show it: its name cannot be written to the key %s (%s)",
                self.name,
                registry_key(self.prefix),
                error,
            )
