"""Connections that find their server: on connecting, the primary is searched for, and its role checked.

In everything else they are connections of the client library, so its pools and clients use them like any other.
"""

from __future__ import annotations

from typing import Any

import redis.asyncio
from redis.exceptions import ResponseError

from groupmq.client.connection.address import Ask, Node, PrimarySearch, Route
from groupmq.client.connection.faults import is_denied
from groupmq.client.connection.located import LocatedConnection, library, search_in_loop


class Locator:
    """How the connections of an endpoint find the primary: the route, and how to reach the nodes that know it."""

    def __init__(self, route: Route, options: dict[str, Any], *, tls: bool) -> None:
        """`options`: those of the connections that ask."""
        self.route = route
        self._options = options
        self._tls = tls

    async def find(self) -> Node:
        """The primary, if it is known; otherwise it is searched for."""
        route = self.route
        node = route.node
        if node is None:
            async with search_in_loop(route):
                node = route.node
                if node is None:
                    node = route.node = await self.run(route.search())
        return node

    async def run(self, search: PrimarySearch) -> Node:
        """Ask the questions of a search until it has found the node."""
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
            await connection.disconnect(True)  # without waiting, where there is something to wait for


class LocatingPrimary(LocatedConnection):
    """The methods that the connections below add to those of the client library."""

    def __init__(self, *, locator: Locator, **options: Any) -> None:
        super().__init__(route=locator.route, **options)
        self._locator = locator

    async def _connect(self) -> Any:
        self.host, self.port = await self._locator.find()
        try:
            return await super()._connect()  # type: ignore[misc]
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
        role, this = None, library(self)
        if self._route.checks_role:
            await this.send_command("ROLE", check_health=False)
            try:
                role = await this.read_response(disable_decoding=True)
            except ResponseError as error:
                if not is_denied(error):  # if this user may not ask, the first write shows the role
                    raise
        self._confirm(role)


class LocatingConnection(LocatingPrimary, redis.asyncio.Connection):
    """Without TLS."""


class LocatingSSLConnection(LocatingPrimary, redis.asyncio.SSLConnection):
    """With TLS."""
