"""Connections that find their server: on connecting, the primary is searched for, and its role checked.

They are connections of the client library in everything else, so its pools and clients use them like any other.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import ResponseError

from groupmq.client.connection.address import Ask, Node, Route, Search
from groupmq.client.connection.faults import is_denied
from groupmq.client.connection.replies import decoded

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakKeyDictionary[Route, asyncio.Lock]] = WeakKeyDictionary()


class Finder:
    """How the connections of an endpoint find the primary: the route, and how to reach those who know."""

    def __init__(self, route: Route, options: dict[str, Any], *, tls: bool) -> None:
        """`options`: of the connections that ask, for both halves of the client library."""
        self.route = route
        self._options = options
        self._tls = tls

    async def find(self) -> Node:
        """The primary. Of many connections at once only one asks."""
        route = self.route
        if route.node is not None:
            return route.node
        locks = _locks.setdefault(asyncio.get_running_loop(), WeakKeyDictionary())
        async with locks.setdefault(route, asyncio.Lock()):
            if route.node is None:
                route.node = await self.run(route.search())
            return route.node

    async def run(self, search: Search) -> Node:
        """Ask what a search wants to know, until it has found the node."""
        try:
            question = next(search)
            while True:
                question = search.send(await self._ask(question))
        except StopIteration as end:
            found: Node = end.value
            return found

    async def _ask(self, question: Ask) -> Any:
        kind = redis.asyncio.SSLConnection if self._tls else redis.asyncio.Connection
        host, port = question.node
        connection: Any = kind(host=host, port=port, **self._options)
        try:
            await connection.connect()
            await connection.send_command(*question.command, check_health=False)
            return await connection.read_response(disable_decoding=True)
        except Exception as error:
            return error
        finally:
            await connection.disconnect(nowait=True)

    def find_blocking(self) -> Node:
        """The same for a thread."""
        route = self.route
        node = route.node
        if node is None:
            node = route.node = self.run_blocking(route.search())
        return node

    def run_blocking(self, search: Search) -> Node:
        try:
            question = next(search)
            while True:
                question = search.send(self._ask_blocking(question))
        except StopIteration as end:
            found: Node = end.value
            return found

    def _ask_blocking(self, question: Ask) -> Any:
        kind = redis.SSLConnection if self._tls else redis.Connection
        host, port = question.node
        connection: Any = kind(host=host, port=port, **self._options)
        try:
            connection.connect()
            connection.send_command(*question.command, check_health=False)
            return connection.read_response(disable_decoding=True)
        except Exception as error:
            return error
        finally:
            connection.disconnect()


class _Connection:
    """What connections of both kinds share."""

    host: str
    port: int

    def __init__(self, *, finder: Finder, **options: Any) -> None:
        super().__init__(**options)
        self._finder = finder
        self.made_at = -1
        """How often the primary had moved when this connection was made."""

    def _lost(self) -> None:
        self._finder.route.lost((self.host, self.port))

    def _confirm(self, role: Any) -> None:
        """`role`: the reply to ROLE, None if it was not asked for."""
        node, route = (self.host, self.port), self._finder.route
        if role is not None and decoded(role[0]) != "master":
            route.lost(node)
            raise Unreachable(f"{node[0]}:{node[1]} is a replica by now, and the new primary is not known yet")
        self.made_at = route.moves + 1  # if this very connection is the first to find another primary
        if not route.confirmed(node):
            raise Unreachable(f"the primary has moved away from {node[0]}:{node[1]}")
        self.made_at = route.moves


class _Finding(_Connection):
    async def _connect(self) -> None:
        self.host, self.port = await self._finder.find()
        try:
            await super()._connect()  # type: ignore[misc]
        except Exception:
            self._lost()
            raise

    async def on_connect(self) -> None:
        base: Any = super()
        await base.on_connect()
        if not hasattr(base, "on_connect_check_health"):
            await self._greet()

    async def on_connect_check_health(self, check_health: bool = True) -> None:
        """Newer releases of the client library call this one."""
        await super().on_connect_check_health(check_health)  # type: ignore[misc]
        await self._greet()

    async def _greet(self) -> None:
        role, this = None, _library(self)
        if self._finder.route.checks_role:
            await this.send_command("ROLE", check_health=False)
            try:
                role = await this.read_response(disable_decoding=True)
            except ResponseError as error:
                if not is_denied(error):  # else this user may not ask, and the first write tells
                    raise
        self._confirm(role)


class _BlockingFinding(_Connection):
    def _connect(self) -> Any:
        self.host, self.port = self._finder.find_blocking()
        try:
            return super()._connect()  # type: ignore[misc]
        except Exception:
            self._lost()
            raise

    def on_connect(self) -> None:
        base: Any = super()
        base.on_connect()
        if not hasattr(base, "on_connect_check_health"):
            self._greet()

    def on_connect_check_health(self, check_health: bool = True) -> None:
        super().on_connect_check_health(check_health)  # type: ignore[misc]
        self._greet()

    def _greet(self) -> None:
        role, this = None, _library(self)
        if self._finder.route.checks_role:
            this.send_command("ROLE", check_health=False)
            try:
                role = this.read_response(disable_decoding=True)
            except ResponseError as error:
                if not is_denied(error):
                    raise
        self._confirm(role)


def _library(connection: object) -> Any:
    """The connection as one of the client library, whose releases differ too much for types."""
    return connection


class FindingConnection(_Finding, redis.asyncio.Connection):
    """Asynchronous, without TLS."""


class FindingSSLConnection(_Finding, redis.asyncio.SSLConnection):
    """Asynchronous, with TLS."""


class BlockingFindingConnection(_BlockingFinding, redis.Connection):
    """Blocking, without TLS."""


class BlockingFindingSSLConnection(_BlockingFinding, redis.SSLConnection):
    """Blocking, with TLS."""


def stale(pool: Any, moves: int, *, in_use: bool) -> list[Any]:
    """The connections of a client's pool that were made before the primary has moved for the `moves`-th time."""
    return [connection for connection in made_by(pool, in_use=in_use) if is_stale(connection, moves)]


def made_by(pool: Any, *, in_use: bool) -> list[Any]:
    """The connections of a client's pool: those that are idle, and those in use."""
    idle = getattr(pool, "_available_connections", ())
    return [*idle, *(getattr(pool, "_in_use_connections", ()) if in_use else ())]


def is_stale(connection: Any, moves: int) -> bool:
    """Whether a connection is older than the last move of the primary; one that does not know is."""
    return bool(getattr(connection, "made_at", -1) < moves)
