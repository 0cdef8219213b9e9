"""The list of the queues of a server: one set per prefix, `<prefix>:queues`, with the names of its queues.

Opening a queue enters it. It is struck out when it is obliterated, or when the queues are listed and it is gone. The
key is not in the hash tag of a queue, so in a cluster it may live on another node: it is read and written by commands
of its own, never by a queue's script, and no queue depends on it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence

from groupmq.client.connection.faults import is_passing, understood
from groupmq.client.connection.plain import PATIENCE, Steps, ask, decoded
from groupmq.core.checks import Logger
from groupmq.core.errors import ConfigurationError, GroupMQError, ServerRefused
from groupmq.core.options import QueueOptions, queue_name
from groupmq.protocol.keys import Keys, registry_key

AT_ONCE = 100
"""Queues whose existence is asked for in one command."""
PAGE = 500
"""Names read in one command."""
TRY_AGAIN = 10.0
"""Seconds after which a queue that could not be entered for now is entered anew."""

_FOR_NOW = frozenset({"OOM", "MISCONF", "NOREPLICAS"})
_told: set[tuple[str, str, str]] = set()
"""The queues whose warning was logged: a process has several connections, and each would log it."""


class Entry:
    """The entry of one queue, as one connection writes it."""

    def __init__(self, options: QueueOptions, where: str) -> None:
        self._name, self._prefix, self._where = options.name, options.prefix, where
        self._logger: Logger = options.logger or logging.getLogger("groupmq.queue")
        self.due = math.inf
        """When to try again, on the monotonic clock; never, once it is written."""

    def write(self) -> Steps[None]:
        """Enter the queue. If that fails, it is missing in the list, and nothing else suffers."""
        self.due = 0.0
        try:
            yield ("SADD", registry_key(self._prefix), self._name)
        except Exception as error:
            known = understood(error, self._where)
            if is_passing(known) or (isinstance(known, ServerRefused) and known.kind in _FOR_NOW):
                self.due = time.monotonic() + TRY_AGAIN
                return
            self._tell(known)
        self.due = math.inf

    def _tell(self, error: GroupMQError) -> None:
        this = self._where, self._prefix, self._name
        if this not in _told:
            _told.add(this)
            self._logger.warning(
                "queue %s works, but Queue.list() will not show it: its name cannot be written to the key %s (%s)",
                self._name,
                registry_key(self._prefix),
                error,
            )

    def strike(self) -> Steps[None]:
        """Take the queue out, unless it was made again meanwhile. If that fails, the next `Queue.list` does it."""
        self.due = math.inf
        try:
            yield from strike(self._prefix, self._name, self._where)
        except GroupMQError as error:
            self._logger.debug("queue %s is still in the list of queues: %s", self._name, error)


def strike(prefix: str, name: str, where: str, patience: float = PATIENCE) -> Steps[bool]:
    """Take a queue that is gone out of the list; False if it is there again.

    A queue is stored first and entered then. So if it was entered before we struck it out, it is stored by now.
    """
    yield from ask(where, "SREM", registry_key(prefix), name, patience=patience)
    if not (yield from ask(where, "EXISTS", Keys(prefix, name).meta, patience=patience)):
        return True
    yield from ask(where, "SADD", registry_key(prefix), name, patience=patience)
    return False


def names(prefix: str, where: str) -> Steps[list[str]]:
    """The queues that exist, sorted; those that are gone are struck out."""
    listed = yield from _listed(prefix, where)
    found: list[str] = []
    for at in range(0, len(listed), AT_ONCE):
        found += yield from _existing(prefix, listed[at : at + AT_ONCE], where)
    return found


def _listed(prefix: str, where: str) -> Steps[list[str]]:
    cursor, found = "0", set[str]()
    while True:
        try:
            reply = yield from ask(where, "SSCAN", registry_key(prefix), cursor, "COUNT", PAGE)
        except GroupMQError as error:
            if "WRONGTYPE" not in str(error):
                raise
            raise ConfigurationError(
                f"prefix: the key {registry_key(prefix)!r} at {where} is no list of queues: another program wrote it; "
                "delete it and open the queues again, or use another prefix"
            ) from error
        found.update(name for name in map(_name, reply[1]) if name is not None)
        cursor = decoded(reply[0])
        if cursor == "0":
            return sorted(found)


def _name(raw: bytes | str) -> str | None:
    """The name of a queue; None for something else that was put into our set."""
    try:
        return queue_name(raw.decode() if isinstance(raw, bytes) else raw)
    except ValueError:
        return None


def _existing(prefix: str, listed: Sequence[str], where: str) -> Steps[list[str]]:
    try:
        count = yield from ask(where, "EXISTS", *(Keys(prefix, name).meta for name in listed))
        if count == len(listed):
            return list(listed)
    except GroupMQError as error:
        if not _is_denied(error):
            raise
    found = []
    for name in listed:
        if (yield from _exists(prefix, name, where)):
            found.append(name)
    return found


def _exists(prefix: str, name: str, where: str) -> Steps[bool]:
    """Whether a queue is there, and this user may look at it."""
    try:
        if (yield from ask(where, "EXISTS", Keys(prefix, name).meta)):
            return True
    except GroupMQError as error:
        if not _is_denied(error):
            raise
        return False
    try:
        return not (yield from strike(prefix, name, where, patience=0.0))
    except GroupMQError:
        return False  # a replica, or a user who may only read: somebody else strikes it out


def _is_denied(error: GroupMQError) -> bool:
    return isinstance(error, ServerRefused) and error.kind == "NOPERM"
