"""Commands and their replies on one connection that redis-py has opened.

redis-py opens the connection: address, TLS, greeting, credentials. After that its stream reader and its parser cost a
command more than the server does, so the connection is taken over: bytes go straight to the transport, and what comes
back goes straight to hiredis.
"""

from __future__ import annotations

import asyncio
import select
import time
from typing import Any

from hiredis import PushNotification, Reader
from redis.exceptions import InvalidResponse

_NOTHING = object()


class ConnectionClosed(ConnectionError):
    """The connection has ended, on this side or on the other."""


class Exchange(asyncio.Protocol):
    """Sends one write at a time and collects its replies. An error reply is returned like any other reply."""

    def __init__(self, connection: Any) -> None:
        """`connection`: an open one of redis-py, which nothing else uses from now on."""
        self.connection = connection
        self.used = time.monotonic()
        """When it was last used."""
        self._loop = asyncio.get_running_loop()
        self._transport = connection._writer.transport
        self._streams = self._transport.get_protocol()
        self._parser = Reader(InvalidResponse, connection._parser.parse_error, notEnoughData=_NOTHING)
        self._replies: list[Any] = []
        self._count = 0
        self._waiter: asyncio.Future[list[Any]] | None = None
        # The other side may have closed the connection while redis-py read: we would not be notified again.
        self._lost = self._transport.is_closing() or connection._reader.at_eof()
        self._transport.set_protocol(self)

    @property
    def is_open(self) -> bool:
        """Whether the connection can be used for another write."""
        return not self._lost and self._waiter is None and bool(self.connection.is_connected)

    async def run(self, packed: bytes, count: int, timeout: float | None) -> list[Any]:
        """Send packed commands and return their `count` replies. A run that fails or is cancelled leaves the connection
        closed: replies that are still to come must not be taken for those of the next command."""
        if not self.is_open:
            raise ConnectionClosed("the connection is closed")
        waiter: asyncio.Future[list[Any]] = self._loop.create_future()
        self._waiter = waiter
        self._replies, self._count = [], count
        timer = None if timeout is None else self._loop.call_later(timeout, self._fail, TimeoutError())
        try:
            self._transport.write(packed)
            return await waiter
        except BaseException:
            self._lost = True
            self._transport.abort()
            raise
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def is_quiet(self) -> bool:
        """Whether the connection is open and nothing has arrived on it that the event loop has yet to see."""
        if not self.is_open:
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    def data_received(self, data: bytes) -> None:
        parser, replies = self._parser, self._replies
        try:
            parser.feed(data)
            while (reply := parser.gets()) is not _NOTHING:
                if type(reply) is not PushNotification:
                    replies.append(reply)
        except Exception as error:  # bytes that are not of the protocol
            self._fail(error)
            self._transport.abort()
            return
        waiter = self._waiter
        if waiter is None or waiter.done() or len(replies) > self._count:
            if replies:
                # No command is waiting for a reply: this one would be taken for the reply to the next command.
                self._lost = True
                self._fail(ConnectionClosed("the server has sent a reply that nothing asked for"))
                self._transport.abort()
        elif len(replies) == self._count:
            self._replies = []
            waiter.set_result(replies)

    def eof_received(self) -> None:
        self._lost = True
        self._fail(ConnectionClosed("the server has closed the connection"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._fail(ConnectionClosed(str(exc) if exc else "the connection was closed"))
        self._streams.connection_lost(exc)  # redis-py waits for it when it closes the connection

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
