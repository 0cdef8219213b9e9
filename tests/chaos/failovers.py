"""Counts acknowledged adds that a failover loses, with and without `durability`: python -m tests.chaos.failovers

Each round has a primary, a replica that is `--lag` milliseconds behind it, and eight producers at full speed. The
primary is killed with kill -9 at a random moment and the replica takes over. An add is lost if it was acknowledged and
the replica does not have its job.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import deque
from dataclasses import dataclass, field

import redis

from groupmq import Durability, GroupMQError, Queue
from tests.support.servers import Kind, Server
from tests.support.waiting import wait_until

PRODUCERS = 8
NAME = "orders"


class Lag:
    """Forwards to a local port. Data from the server is delayed, and is dropped when the connection ends."""

    def __init__(self, port: int, seconds: float) -> None:
        self._target = port
        self._seconds = seconds
        self.port = 0

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        down = asyncio.create_task(self._delayed(up_reader, writer))
        try:
            while data := await reader.read(1 << 16):
                up_writer.write(data)
        except OSError:
            pass
        finally:
            down.cancel()
            up_writer.close()
            writer.close()

    async def _delayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held: deque[tuple[float, bytes]] = deque()
        loop = asyncio.get_running_loop()

        def pass_on() -> None:
            now = loop.time()
            while held and held[0][0] <= now + 0.001:
                writer.write(held.popleft()[1])

        try:
            while data := await reader.read(1 << 16):
                held.append((loop.time() + self._seconds, data))
                loop.call_later(self._seconds, pass_on)
        except OSError:
            pass
        finally:
            held.clear()  # data in transit when the primary died never arrives
            writer.close()


@dataclass
class Tally:
    """The losses of several failovers."""

    failovers: int = 0
    acknowledged: int = 0
    refused: int = 0
    lost: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        hit = sum(n > 0 for n in self.lost)
        return (
            f"{self.failovers} failovers, {self.acknowledged:,} adds acknowledged, {self.refused:,} refused as not "
            f"durable; lost {sum(self.lost):,} in {hit} failovers, at most {max(self.lost, default=0):,} in one"
        )


async def one_round(kind: Kind, durability: Durability | None, lag_ms: float, seed: int, tally: Tally) -> None:
    rng = random.Random(seed)
    primary = Server.start(kind, config={"repl-diskless-sync-delay": 0})
    lag = Lag(primary.port, lag_ms / 1000)
    forwarding = await lag.start()
    replica = Server.start(kind, config={"replicaof": f"127.0.0.1 {lag.port}", "replica-read-only": "yes"})
    try:
        with primary.client() as client, replica.client() as other:
            await asyncio.to_thread(wait_until, lambda: _follows(other, client), "the replica follows", 30)
        acknowledged = await _produce(primary, durability, rng.uniform(0.1, 0.5), tally)
        with replica.client() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
            found = client.hkeys(f"groupmq:{{{NAME}}}:jobs")
        tally.failovers += 1
        tally.acknowledged += len(acknowledged)
        tally.lost.append(len(acknowledged - {raw.decode() for raw in found}))
    finally:
        forwarding.close()
        primary.stop()
        replica.stop()


def _follows(replica: redis.Redis, primary: redis.Redis) -> bool:
    """Whether a write reaches the replica. The primary's report is not enough: a loading replica counts as online."""
    sent = str(time.monotonic())
    primary.set("probe", sent)
    time.sleep(0.02)
    return bool(replica.get("probe") == sent.encode())


async def _produce(primary: Server, durability: Durability | None, seconds: float, tally: Tally) -> set[str]:
    acknowledged: set[str] = set()
    queue = Queue(NAME, primary.url, durability=durability or "server")
    queue._connection.patience = 0.0
    over = False

    async def produce(number: int) -> None:
        n = 0
        while not over:
            n += 1
            try:
                job = await queue.add(n, group_id=f"g{number}", job_id=f"{number}.{n}")
            except GroupMQError:
                tally.refused += not over
                return
            acknowledged.add(job.id)

    await queue.add(0, job_id="first")
    producers = [asyncio.create_task(produce(number)) for number in range(PRODUCERS)]
    await asyncio.sleep(seconds)
    primary.kill()
    over = True
    await asyncio.gather(*producers)
    await queue.close()
    return acknowledged


async def measure(kind: Kind, count: int, lag_ms: float, seed: int, *, durable: bool) -> Tally:
    tally = Tally()
    began = time.monotonic()
    for number in range(count):
        await one_round(kind, Durability(replicas=1) if durable else None, lag_ms, seed + number, tally)
        if (number + 1) % 20 == 0:
            print(f"  {time.monotonic() - began:5.0f} s  {tally}", flush=True)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.failovers", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="number of failovers with each durability")
    parser.add_argument("--lag", type=float, default=5.0, help="milliseconds that the replica is behind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=("valkey", "redis"), default="valkey")
    chosen = parser.parse_args()
    totals = {}
    for name, durable in (("server", False), ("replicated", True)):
        print(f"durability={name!r}, a replica {chosen.lag:g} ms behind, {chosen.server}", flush=True)
        totals[name] = asyncio.run(measure(chosen.server, chosen.count, chosen.lag, chosen.seed, durable=durable))
    for name, tally in totals.items():
        print(f"{name:>10}: {tally}")
    return 1 if sum(totals["replicated"].lost) else 0


if __name__ == "__main__":
    raise SystemExit(main())
