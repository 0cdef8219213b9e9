"""A TCP proxy between clients and a server that can lose replies and freeze connections."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards to a local port, in its own thread.

    `cut` is called with each request. If it returns True, the server receives and executes the request, and the
    connection is closed before the reply gets through. `drop` does the same, but is called with each reply.
    """

    def __init__(self, port: int, cut: Callable[[bytes], bool] = lambda request: False) -> None:
        self.cut = cut
        self.drop: Callable[[bytes], bool] = lambda reply: False
        self.cuts = 0
        self.port = 0
        self._target = port
        self._era = 0
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="proxy")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def lead_to(self, port: int) -> None:
        """Forward new connections to another port. Existing connections stay as they are."""
        self._target = port

    def freeze(self) -> None:
        """Let nothing pass over existing connections, which stay open. New connections work."""
        self._era += 1

    def is_frozen(self, era: int) -> bool:
        return era < self._era

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._over is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        links: set[asyncio.Task[None]] = set()

        async def serve(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            links.add(task)
            try:
                await self._forward(client, to_client)
            except asyncio.CancelledError:
                pass
            finally:
                to_client.transport.abort()
                links.discard(task)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for link in list(links):
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _forward(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        link = Link(self, self._era)
        writers = [to_client]
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(to_server)
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
        except OSError:
            pass  # the server is away: the client's connection is closed
        finally:
            for writer in writers:  # abort all of them before the first wait, which may be cancelled
                writer.transport.abort()
            for writer in writers:
                with contextlib.suppress(OSError):
                    await writer.wait_closed()


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, era: int) -> None:
        self._proxy = proxy
        self._era = era
        self._doomed = False

    async def requests(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 20):
            await self._hold()
            self._doomed = self._doomed or self._proxy.cut(data)
            target.write(data)
            await target.drain()

    async def replies(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 20):
            await self._hold()
            if self._doomed or self._proxy.drop(data):
                self._proxy.cuts += 1
                return
            target.write(data)
            await target.drain()

    async def _hold(self) -> None:
        """Nothing passes over a frozen connection: wait to be cancelled."""
        if self._proxy.is_frozen(self._era):
            await asyncio.Event().wait()
