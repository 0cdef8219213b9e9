"""A TCP proxy between clients and a server that loses replies and freezes connections, as networks do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards to a port of this machine.

    `cut`: asked about each request; when it says True the request reaches the server, which carries it out, and the
    connection ends before the reply gets through.
    """

    def __init__(self, port: int, cut: Callable[[bytes], bool] = lambda request: False) -> None:
        self.cut = cut
        self.cuts = 0
        self.connections = 0
        self._target = port
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._era = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    def freeze(self) -> None:
        """From now on nothing passes over the connections there are; they stay open. New ones work."""
        self._era += 1

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        self.connections += 1
        link = Link(self, self._era)
        to_server: asyncio.StreamWriter | None = None
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            ways = [
                asyncio.create_task(link.requests(client, to_server)),
                asyncio.create_task(link.replies(server, to_client)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._links.discard(task)
            for writer in (to_client, to_server):
                if writer is not None:
                    writer.transport.abort()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()

    def is_frozen(self, era: int) -> bool:
        return era < self._era


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, era: int) -> None:
        self._proxy = proxy
        self._era = era
        self._doomed = False

    async def requests(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._hold()
            if self._proxy.cut(data):
                self._doomed = True
            target.write(data)
            await target.drain()

    async def replies(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._hold()
            if self._doomed:
                self._proxy.cuts += 1
                return
            target.write(data)
            await target.drain()

    async def _hold(self) -> None:
        """On a frozen connection nothing passes any more: wait to be cancelled."""
        if self._proxy.is_frozen(self._era):
            await asyncio.Event().wait()
