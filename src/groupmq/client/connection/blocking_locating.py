# Generated from src/groupmq/client/connection/locating.py by `make sync`; do not edit.
"""Connections that find their server: on connecting, the primary is searched for, and its role checked.

In everything else they are connections of the client library, so its pools and clients use them like any other.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.exceptions import ResponseError

from groupmq.client.connection.address import Ask, Node, PrimarySearch, Route
from groupmq.client.connection.faults import is_denied
from groupmq.client.connection.located import LocatedConnection, library, search_in_thread


class BlockingLocator:
    """How the connections of an endpoint find the primary: the route, and how to reach the nodes that know it."""

    def __init__(self, route: Route, options: dict[str, Any], *, tls: bool) -> None:
        """`options`: those of the connections that ask."""
        self.route = route
        self._options = options
        self._tls = tls

    def find(self) -> Node:
        """The primary, if it is known; otherwise it is searched for."""
        route = self.route
        node = route.node
        if node is None:
            with search_in_thread(route):
                node = route.node
                if node is None:
                    node = route.node = self.run(route.search())
        return node

    def run(self, search: PrimarySearch) -> Node:
        """Ask the questions of a search until it has found the node."""
        try:
            question = next(search)
            while True:
                question = search.send(self._ask(question))
        except StopIteration as end:
            found: Node = end.value
            return found

    def _ask(self, question: Ask) -> Any:
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
            connection.disconnect(True)  # without waiting, where there is something to wait for


class BlockingLocatingPrimary(LocatedConnection):
    """The methods that the connections below add to those of the client library."""

    def __init__(self, *, locator: BlockingLocator, **options: Any) -> None:
        super().__init__(route=locator.route, **options)
        self._locator = locator

    def _connect(self) -> Any:
        self.host, self.port = self._locator.find()
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
        """Newer releases of the client library call this one."""
        super().on_connect_check_health(check_health)  # type: ignore[misc]
        self._greet()

    def _greet(self) -> None:
        role, this = None, library(self)
        if self._route.checks_role:
            this.send_command("ROLE", check_health=False)
            try:
                role = this.read_response(disable_decoding=True)
            except ResponseError as error:
                if not is_denied(error):  # if this user may not ask, the first write shows the role
                    raise
        self._confirm(role)


class BlockingLocatingConnection(BlockingLocatingPrimary, redis.Connection):
    """Without TLS."""


class BlockingLocatingSSLConnection(BlockingLocatingPrimary, redis.SSLConnection):
    """With TLS."""
