"""Addresses: what all connections of this process to one server share. No I/O."""

from __future__ import annotations

import weakref
from collections.abc import Generator
from typing import Any, NamedTuple, Protocol

from groupmq.client.connection.faults import is_away, is_moved
from groupmq.runtime.loops import this_process

Node = tuple[str, int]
"""Host and port."""


class Ask(NamedTuple):
    """A question of a search: which node to ask, and the command."""

    node: Node
    command: tuple[str, ...]


PrimarySearch = Generator[Ask, Any, Node]
"""Yields questions, is sent the replies (or the exception in place of one), and returns the primary."""


class Watcher(Protocol):
    """A connection that may be blocked while the primary moves."""

    def primary_moved(self, *, failover: bool) -> None:
        """Called when older connections lead to the wrong server. May be called from any thread and must not block."""


class Address:
    """A server address, with the number of times that the primary has moved away from it.

    After a failover the old connections still lead to the old primary, which lives on as a replica and refuses writes
    for ever. So the first connection that is refused makes all others reconnect, even those that are blocked.
    """

    def __init__(self) -> None:
        self.moves = 0
        self._watchers: dict[int, tuple[object, weakref.ref[Watcher]]] = {}

    def watch(self, watcher: Watcher) -> None:
        """Notify `watcher` when the primary has moved, as long as that object exists."""
        key, watchers = id(watcher), self._watchers
        watchers[key] = this_process(), weakref.ref(watcher, lambda _: watchers.pop(key, None))

    def observe(self, error: BaseException, since: int) -> bool:
        """Learn what an error says about the primary; True if the command should be sent again at once.

        `since`: the number of moves when the command was sent. Fifty calls that are refused are one move, not fifty.
        """
        if since == self.moves and is_moved(error):
            self._move()
        return False

    def _move(self, *, failover: bool = False) -> None:
        """Count a move: all connections made so far are outdated, after a failover even those that wait for a reply."""
        self.moves += 1
        here = this_process()
        for process, reference in tuple(self._watchers.values()):
            watcher = reference()
            if watcher is not None and process is here:  # else it is a connection of the parent process
                watcher.primary_moved(failover=failover)


class Route(Address):
    """An address that leads to different servers over time: each new connection finds out where the primary is."""

    checks_role = False
    """Whether a new connection asks the server for its role before it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.node: Node | None = None
        """Where the primary is, as far as we know; None: a new connection searches for it."""
        self._last: Node | None = None

    def search(self) -> PrimarySearch:
        """How to find the primary. Raises the client library's ConnectionError if no node knows one."""
        raise NotImplementedError

    def confirmed(self, node: Node) -> bool:
        """Record that a connection to `node` is ready for use; False if meanwhile the primary was found elsewhere."""
        if self.node not in (None, node):
            return False
        before, self._last, self.node = self._last, node, node
        if before not in (None, node):
            self._move(failover=True)
        return True

    def lost(self, node: Node) -> None:
        """Record that `node` cannot be reached, or is not a primary: the next connection searches."""
        if self.node == node:
            self.node = None

    def observe(self, error: BaseException, since: int) -> bool:
        if since == self.moves and (is_away(error) or is_moved(error)):
            self.node = None  # the search may find the same node again; it is cheap
        return super().observe(error, since)
