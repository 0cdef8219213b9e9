"""The server cost of a job and how evenly it is spread: one primary and three, with and without partitions.

python -m bench.partitions.cost [--jobs 20000] [--groups 10000] [--partitions 1 16 64] [--primaries 1 3]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import redis

from groupmq import Job, Queue, Worker
from tests.support.clusters import Cluster
from tests.support.servers import Server, prefer


async def nothing(_job: Job) -> None: ...


def cpu(ports: list[int]) -> list[float]:
    used = []
    for port in ports:
        with redis.Redis(port=port) as client:
            info: Any = client.info("cpu")
            used.append(info["used_cpu_user"] + info["used_cpu_sys"])
    return used


async def measure(url: str, ports: list[int], partitions: int, jobs: int, groups: int) -> str:
    async with Queue("q", url, partitions=partitions, keep_completed=0) as queue:
        await queue.add_many({"data": i, "group_id": f"user:{i}"} for i in range(200))
        await Worker(queue, nothing, concurrency=32).run(burst=True)
        before, began = cpu(ports), time.monotonic()
        for at in range(0, jobs, 5000):
            await queue.add_many({"data": i, "group_id": f"user:{i % groups}"} for i in range(at, min(jobs, at + 5000)))
        added = time.monotonic()
        await Worker(queue, nothing, concurrency=32).run(burst=True)
        ended = time.monotonic()
        used = [b - a for a, b in zip(before, cpu(ports), strict=True)]
        assert (await queue.get_job_counts()).total == 0
        await queue.obliterate()
    mean = sum(used) / len(used)
    return (
        f"| {len(ports)} | {partitions} | {sum(used) / jobs * 1e6:.1f} us | {max(used) / mean:.2f} "
        f"| {jobs / (added - began):,.0f} | {jobs / (ended - added):,.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--primaries", type=int, nargs="+", default=[1, 3])
    given = parser.parse_args()
    print("| primaries | P | server CPU per job | busiest primary / mean | added/s | run/s |")
    print("|---|---|---|---|---|---|")
    for primaries in given.primaries:
        for partitions in given.partitions:
            if primaries == 1:
                server = Server.start(prefer("valkey"), config={"save": ""})
                ports, url, stop = [server.port], server.url, server.stop
            else:
                cluster = Cluster(prefer("valkey"), primaries=primaries)
                ports, url, stop = [node.port for node in cluster.nodes], cluster.url, cluster.stop
            try:
                print(asyncio.run(measure(url, ports, partitions, given.jobs, given.groups)), flush=True)
            finally:
                stop()


if __name__ == "__main__":
    main()
