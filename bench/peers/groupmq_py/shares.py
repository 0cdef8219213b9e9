"""The shares of groups: many large groups that were added first, and a small one that was added last."""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections import Counter

from bench.peers.clocks import payload
from bench.peers.groupmq_py.common import Figures, open_queue
from groupmq import Job, Worker

SMALL, SMALL_JOBS = "small", 10


async def run(args: argparse.Namespace) -> Figures:
    """Jobs started before the first of the small group, and jobs per large group among the first --starts."""
    large = [f"group-{i}" for i in range(args.groups)]
    depth = args.jobs // args.groups
    groups = [group for group in large for _ in range(depth)] + [SMALL] * SMALL_JOBS
    starts: list[tuple[int, str | None]] = []
    finished = asyncio.Event()

    async def handle(job: Job) -> None:
        starts.append((job.fence, job.group_id))
        if len(starts) == len(groups):
            finished.set()

    async with open_queue(args) as queue:
        await queue.add_many([{"data": payload(i), "group_id": group} for i, group in enumerate(groups)])
        async with Worker(queue, handle, concurrency=args.concurrency):
            await finished.wait()
    # Fences are granted in the order of starts.
    order = [group for _, group in sorted(starts)]
    among_first = Counter(order[: args.starts])
    shares = [among_first[group] for group in large]
    return {
        "before": order.index(SMALL),
        "min": min(shares),
        "median": statistics.median(shares),
        "max": max(shares),
    }
