"""A cluster whose network can be split: nodes of one side cannot reach those of the other, but clients reach all nodes.

Each node announces the ports of gates in front of it, for the bus and for clients, and connects from its own address
(127.0.1.x). A gate therefore knows the caller, and lets only clients and nodes of its own side through.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from tests.support.clusters import Cluster, run, start_node
from tests.support.servers import Kind, Server, free_port
from tests.support.waiting import wait_until


class _Gate:
    """Forwards to one port of a node, as long as the caller is a client or a node of the same side."""

    def __init__(self, address: str, target: int) -> None:
        self.address, self._target = address, target
        self.port = 0
        self._links: dict[asyncio.Task[None], str] = {}
        self._cut_off: frozenset[str] = frozenset()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def split(self, minority: frozenset[str]) -> None:
        self._cut_off = minority
        for link, caller in list(self._links.items()):
            if not self._lets(caller):
                link.cancel()

    def _lets(self, caller: str) -> bool:
        return caller == "127.0.0.1" or (caller in self._cut_off) == (self.address in self._cut_off)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller, task = writer.get_extra_info("peername")[0], asyncio.current_task()
        assert task is not None
        self._links[task] = caller
        try:
            if self._lets(caller):
                await self._forward(reader, writer)
        except (asyncio.CancelledError, OSError):
            pass
        finally:
            writer.transport.abort()
            del self._links[task]

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        ways = [asyncio.ensure_future(_pass(reader, up_writer)), asyncio.ensure_future(_pass(up_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up_writer.transport.abort()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        target.write(data)
        await target.drain()


class SplitCluster(Cluster):
    """A cluster with gates between its nodes.

    Example:
        with SplitCluster("valkey", primaries=3, replicas=1) as cluster:
            cluster.split([cluster.owner("orders")])
            cluster.heal()
    """

    def __init__(self, kind: Kind, *, primaries: int = 3, replicas: int = 0, **config: object) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gates", daemon=True)
        self._thread.start()
        self._gates: dict[int, tuple[_Gate, _Gate]] = {}
        """The gates of each node, for the bus and for clients, by the node's own port."""
        super().__init__(kind, primaries=primaries, replicas=replicas, **config)

    def _start_node(self) -> Server:
        address = f"127.0.1.{len(self._gates) + 1}"
        bus = free_port()
        # The node must know its gates when it starts, and they must know its port, so the port is chosen here.
        gates = _Gate(address, bus), _Gate(address, port := free_port())
        for gate in gates:
            self._do(gate.open())
        announced = {"cluster-announce-bus-port": gates[0].port, "cluster-announce-port": gates[1].port}
        own = {"port": port, "cluster-port": bus, "bind-source-addr": address, **announced}
        node = start_node(self.kind, **{**self._config, **own})
        node.port = port
        self._gates[port] = gates
        return node

    def meet(self, node: Server, other: Server) -> None:
        bus, clients = self._gates[other.port]
        run(node, "CLUSTER", "MEET", "127.0.0.1", clients.port, bus.port)

    def node_at(self, port: int) -> Server:
        """The node that announces this port."""
        return next(node for node in self.nodes if self._gates[node.port][1].port == port)

    def split(self, minority: list[Server]) -> None:
        """Cut these nodes off from the others."""
        addresses = frozenset(self._gates[node.port][0].address for node in minority)
        for gates in self._gates.values():
            for gate in gates:
                self._do(gate.split(addresses))

    def heal(self) -> None:
        self.split([])

    def wait_for_choice(self, queue: str, minority: list[Server]) -> Server:
        """Wait until all other nodes agree on an owner of the queue's slot that is not in the minority."""
        others = [node for node in self.running if node not in minority]
        found: set[int] = set()

        def chosen() -> bool:
            found.clear()
            found.update(self.owner(queue, seen_by=node).port for node in others)
            return len(found) == 1 and found.isdisjoint(node.port for node in minority)

        wait_until(chosen, "the majority has chosen", 30)
        return self.owner(queue, seen_by=others[0])

    def stop(self) -> None:
        super().stop()
        if self._loop.is_closed():
            return
        for gates in self._gates.values():
            for gate in gates:
                self._do(gate.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(20)
