"""The server cost of idle workers of a queue with partitions.

python -m bench.partitions.idle [--workers 100] [--partitions 1 16 64] [--seconds 30]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import time
from typing import Any

from groupmq import Job, Queue, Worker
from tests.support.servers import Server, prefer


async def nothing(_job: Job) -> None: ...


def look(server: Server) -> dict[str, float]:
    with server.client() as client:
        info: Any = client.info("all")
    return {
        "cpu": info["used_cpu_user"] + info["used_cpu_sys"],
        "calls": sum(info.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("fcall", "fcall_ro", "bzpopmin")),
        "connections": info["connected_clients"],
        "memory": info["used_memory"],
        "at": time.monotonic(),
    }


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(server: Server, partitions: int, n: int, seconds: float) -> str:
    empty = look(server)
    queues = [Queue(f"q{partitions}", server.url, partitions=partitions) for _ in range(n)]
    workers = [Worker(queue, nothing, concurrency=8) for queue in queues]
    began = time.monotonic()
    for worker in workers:
        await worker.start()
    started = time.monotonic() - began
    await asyncio.sleep(10)  # wait until all start-up work is over
    first, own = look(server), own_cpu()
    await asyncio.sleep(seconds)
    last, own = look(server), own_cpu() - own
    lapse = last["at"] - first["at"]
    added = time.monotonic()
    job = await queues[0].add(1, group_id="g")
    await job.result(10)
    latency = time.monotonic() - added
    for at in range(0, n, 10):
        await asyncio.gather(*(worker.close(1) for worker in workers[at : at + 10]))
    for queue in queues:
        await queue.close()
    return (
        f"| {partitions} | {n} | {(last['cpu'] - first['cpu']) / lapse:.2%} "
        f"| {(last['calls'] - first['calls']) / lapse:.0f} "
        f"| {last['connections'] - empty['connections']:.0f} | {(last['memory'] - empty['memory']) / 2**20:.0f} MB "
        f"| {own / lapse / n:.2%} | {started:.1f} s | {latency * 1000:.1f} ms |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    print(
        "| P | workers | server CPU | calls/s | connections | server memory "
        "| CPU per worker | start of all | add to result |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for partitions in given.partitions:
        server = Server.start(prefer("valkey"), config={"maxclients": 20000, "save": ""})
        try:
            print(asyncio.run(measure(server, partitions, given.workers, given.seconds)), flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
