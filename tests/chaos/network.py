"""Network wires between processes and the server, each with its own port, that can fail like a real network."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

_CHUNK = 1 << 18


class Wire:
    """The network path of one process to the server. Its methods must be called in the loop of the network."""

    def __init__(self, target: int, on_try: Callable[[], object] = lambda: None) -> None:
        """`on_try` is called for each connection attempt."""
        self.target = target
        self._on_try = on_try
        self.port = 0
        self.broken = False
        """No connection passes, and none can be made."""
        self.delay = 0.0
        self.drop_next = False
        """The next reply is lost and its connection closed, though the server has executed the call."""
        self.truncate_next = False
        """Only a part of the next reply arrives, then the connection ends."""
        self.done = 0
        """Replies that were dropped or truncated."""
        self._passable = asyncio.Event()
        self._passable.set()
        self._links: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.abort()
        await asyncio.gather(*self._links, return_exceptions=True)

    def abort(self) -> None:
        """End all open connections."""
        for link in list(self._links):
            link.cancel()

    def hang(self) -> None:
        """Let nothing pass from now on. Data sent meanwhile arrives when `flow` is called."""
        self._passable.clear()

    def flow(self) -> None:
        self._passable.set()

    async def _accept(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        self._on_try()
        try:
            if not self.broken:
                await self._forward(client, to_client)
        except asyncio.CancelledError:
            pass
        finally:
            to_client.transport.abort()
            self._links.discard(task)

    async def _forward(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return  # the server is away: the client's connection is closed
        ways = [
            asyncio.ensure_future(self._pass(client, to_server, reply=False)),
            asyncio.ensure_future(self._pass(server, to_client, reply=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, reply: bool) -> None:
        while data := await source.read(_CHUNK):
            await self._passable.wait()
            if self.delay:
                await asyncio.sleep(self.delay)
            if reply and self.drop_next:
                self.drop_next, self.done = False, self.done + 1
                return
            if reply and self.truncate_next and len(data) > 1:
                self.truncate_next, self.done = False, self.done + 1
                target.write(data[: len(data) // 2])
                with contextlib.suppress(OSError):
                    await target.drain()
                    # The part must leave before the connection is aborted.
                    await asyncio.sleep(0.005)
                return
            target.write(data)
            await target.drain()


class Network:
    """All wires, in one separate thread."""

    def __init__(self, target: int, names: list[str], on_try: Callable[[str], object] = lambda name: None) -> None:
        self._target = target
        self._on_try = on_try
        self._names = names
        self.wires: dict[str, Wire] = {}
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="network")

    def url(self, name: str) -> str:
        return f"redis://127.0.0.1:{self.wires[name].port}/0"

    def call(self, action: Callable[[], object]) -> None:
        """Run a function in the loop of the network."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(action)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._over is not None
        self.call(self._over.set)
        self._thread.join(20)

    async def _main(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        for name in self._names:
            self.wires[name] = Wire(self._target, partial(self._on_try, name))
            await self.wires[name].open()
        self._ready.set()
        await self._over.wait()
        for wire in self.wires.values():
            await wire.close()
