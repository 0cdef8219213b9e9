"""A simulated cluster of 64 shards with ten million groups: counts which shard each group goes to.

    python -m bench.partitions.simulation [--shards 64] [--groups 10000000] [--partitions 64 256 1024]

Assumptions, each from a measurement or from the code:

- The place of a group is that of `place_of`; the same function is called here, for each of the groups.
- The cluster gives each shard an equal, contiguous range of slots, as `redis-cli --cluster create` does.
- Jobs per group follow a power law (the k-th busiest group has k^-s of the jobs, s = 1 by default): few customers are
  large. A group runs one job at a time, so a hot group loads one shard, whatever P is.
- A waiting job of 100 bytes takes 250 bytes of the server's memory, and a group 180 (docs/internals.md has the keys);
  each partition takes 4 kB for its empty structures.
- An idle worker in a cluster has one blocked read per partition. Each read times out after 5 s, and after every eighth
  timeout the worker asks for work. It also asks each partition once in 30 s, and its duties run 6 times a minute.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from groupmq.core.partitions import Part, place_of, slot_of_tag, tag_of

JOB, GROUP, PARTITION = 250, 180, 4096
JOBS_PER_GROUP = 10


def shard_of_each(partitions: int, shards: int) -> list[int]:
    return [slot_of_tag(tag_of("orders", Part(i, partitions))) * shards // 16384 for i in range(partitions)]


def imbalance(load: list[float]) -> float:
    return max(load) * len(load) / sum(load)


def weights(groups: int, exponent: float) -> Iterator[float]:
    for rank in range(1, groups + 1):
        yield rank**-exponent


def simulate(places: list[int], shards: int, partitions: int, exponent: float, workers: int) -> str:
    where = shard_of_each(partitions, shards)
    groups = [0.0] * shards
    load = [0.0] * shards
    total = 0.0
    hottest = 0.0
    for place, weight in zip(places, weights(len(places), exponent), strict=True):
        shard = where[place % partitions]
        groups[shard] += 1
        load[shard] += weight
        total += weight
        hottest = max(hottest, weight)
    on_each = [where.count(shard) for shard in range(shards)]
    memory = [n * (GROUP + JOBS_PER_GROUP * JOB) + p * PARTITION for n, p in zip(groups, on_each, strict=True)]
    wake_ups = workers * max(on_each) * (1 / 5 + 1 / 40 + 1 / 30 + 6 / 60)
    return (
        f"| {partitions} | {min(on_each)} to {max(on_each)} | {imbalance(groups):.3f} | {max(memory) / 2**30:.2f} GB "
        f"| {imbalance(load):.2f} | {hottest / total * shards:.2f} | {wake_ups:,.0f} | {workers * max(on_each) * 3:,} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--groups", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--exponent", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=100)
    given = parser.parse_args()
    began = time.monotonic()
    places = [place_of(f"customer:{i}") for i in range(given.groups)]
    print(f"{given.groups:,} groups over {given.shards} shards; placed in {time.monotonic() - began:.0f} s")
    print(
        "| P | partitions per shard | groups, max/mean | memory of the fullest | load, max/mean | "
        "hottest group / a shard's mean | idle calls/s of the busiest shard | its connections |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for partitions in given.partitions:
        print(simulate(places, given.shards, partitions, given.exponent, given.workers), flush=True)


if __name__ == "__main__":
    main()
