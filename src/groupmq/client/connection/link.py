"""A link to one server: commands are sent over it, and sent again if a node of a cluster names another node."""

from __future__ import annotations

from typing import Any

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.transport import Transport
from groupmq.core.durability import Confirmation

MOST_CALLS = 50
"""Calls of one queue object under way at a time in one event loop; redis-py 8 allows a pool 100 connections."""


class Link(Transport):
    """A client of the server, which is our own or the user's, and its connections."""

    def __init__(self, endpoint: Endpoint, *, own: bool, most_calls: int = MOST_CALLS) -> None:
        super().__init__(endpoint, own=own)
        self._moves = self._address.moves
        self._limiter = self._bound(most_calls)
        if own:
            self._address.watch(self)

    def limit(self, calls: int) -> None:
        """Allow this many calls under way from now on."""
        self._limiter = self._bound(calls)

    async def execute(self, *parts: Any, wait: Confirmation = ()) -> Any:
        """Send one command. With `wait`, the commands that wait until it is durable are sent behind it; returns both
        replies."""
        if self._moves != self._address.moves or self._renewing.locked():
            async with self._renewing:  # a call must not be given a connection that is just being dropped
                if self._moves != self._address.moves:
                    self._moves = self._address.moves
                    await self._drop_stale(failover=False)
        async with self._limiter:
            moves = self._moves
            try:
                return await self._send(parts, wait)
            except Exception as error:
                if not self._address.observe(error, moves):
                    raise
        return await self._execute_again(parts, wait)

    async def _execute_again(self, parts: tuple[Any, ...], wait: Confirmation) -> Any:
        """Send a command to the node that another one has named as the owner of the queue's slot, and to no other."""
        await self._drop_stale(failover=False)
        async with self._limiter:
            try:
                return await self._send(parts, wait)
            except Exception as error:
                self._address.observe(error, self._address.moves)
                raise

    async def execute_asking(self, *parts: Any) -> Any:
        """Send a command about one key to the node that its slot is being moved to.

        ASKING holds for the next command of its connection only, so both go in one write.
        """
        async with self._limiter:
            return await self._send_asking(parts)

    def primary_moved(self, *, failover: bool) -> None:
        """Drop calls under way, but only after a failover: otherwise the server answers them, with a refusal."""
        if failover:  # else the next call drops what is idle
            self._drop_soon()

    async def close(self) -> None:
        """Close our own connections, never those of the user's client."""
        await self._end()
