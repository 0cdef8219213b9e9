"""Connections that have found their server, of both clients: they check that it is, and still is, the primary."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any
from weakref import WeakKeyDictionary

from redis.exceptions import ConnectionError as Unreachable

from groupmq.client.connection.address import Route
from groupmq.client.connection.replies import decoded

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakKeyDictionary[Route, asyncio.Lock]] = WeakKeyDictionary()


class LocatedConnection:
    """What is added to a connection of the client library that finds its server by a route."""

    host: str
    port: int

    def __init__(self, *, route: Route, **options: Any) -> None:
        super().__init__(**options)
        self._route = route
        self.made_at = -1
        """How often the primary had moved when this connection was made."""

    def _lost(self) -> None:
        self._route.lost((self.host, self.port))

    def _confirm(self, role: Any) -> None:
        """`role`: the reply to ROLE, None if it was not asked for."""
        node, route = (self.host, self.port), self._route
        if role is not None and decoded(role[0]) != "master":
            route.lost(node)
            raise Unreachable(f"{node[0]}:{node[1]} is a replica by now, and the new primary is not known yet")
        self.made_at = route.moves + 1  # if this very connection is the first to find another primary
        if not route.confirmed(node):
            raise Unreachable(f"the primary has moved away from {node[0]}:{node[1]}")
        self.made_at = route.moves


def search_in_loop(route: Route) -> asyncio.Lock:
    """The lock under which the primary is searched for: of all connections of an event loop, one asks at a time."""
    locks = _locks.setdefault(asyncio.get_running_loop(), WeakKeyDictionary())
    return locks.setdefault(route, asyncio.Lock())


def search_in_thread(_route: Route) -> contextlib.AbstractContextManager[None]:
    """No lock: threads do not wait for each other, and each asks."""
    return contextlib.nullcontext()


def library(connection: object) -> Any:
    """The connection as one of the client library, whose releases differ too much for types."""
    return connection


def stale(pool: Any, moves: int, *, in_use: bool) -> list[Any]:
    """The connections of a client's pool that were made before the primary moved for the `moves`-th time."""
    return [connection for connection in made_by(pool, in_use=in_use) if is_stale(connection, moves)]


def made_by(pool: Any, *, in_use: bool) -> list[Any]:
    """The connections of a client's pool: those that are idle, and with `in_use` those in use."""
    idle = getattr(pool, "_available_connections", ())
    return [*idle, *(getattr(pool, "_in_use_connections", ()) if in_use else ())]


def is_stale(connection: Any, moves: int) -> bool:
    """Whether a connection is older than the last move of the primary. One without a record of that counts as older."""
    return bool(getattr(connection, "made_at", -1) < moves)
