"""How long an exclusive queue is idle when the turn passes from one worker to the other."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import NamedTuple

from bench.peers.clocks import payload
from bench.peers.groupmq_py.common import Figures, drained, millis, open_queue
from bench.spread import spread
from groupmq import Job, Worker


class Start(NamedTuple):
    """The start of a job. Fences give the order of starts; times are by the server's clock."""

    fence: int
    worker: str | None
    job_id: str
    at_ms: int


async def run(args: argparse.Namespace) -> Figures:
    """Milliseconds from the end of a turn to the first start of the other worker, and jobs per second of both.

    The workers share a process, not a connection. A turn is --batch jobs, which run at the same time.
    """
    starts: list[Start] = []
    finished = asyncio.Event()
    began = 0.0

    async def handle(job: Job) -> None:
        nonlocal began
        began = began or time.perf_counter()
        starts.append(Start(job.fence, job.worker, job.id, millis(job.started_at)))
        if len(starts) == args.jobs:
            finished.set()

    async with AsyncExitStack() as stack:
        queues = [await stack.enter_async_context(open_queue(args, keep=args.jobs)) for _ in range(2)]
        items = ({"data": payload(i), "group_id": f"group-{i % args.groups}"} for i in range(args.jobs))
        await queues[0].add_many(items)
        for queue in queues:
            await stack.enter_async_context(Worker(queue, handle, concurrency=args.batch, batch_size=args.batch))
        await finished.wait()
        await drained(queues[0])
        seconds = time.perf_counter() - began
        done = await queues[0].get_completed_jobs(limit=args.jobs)
    ends = {job.id: millis(job.finished_at) for job in done}
    waits = list(hand_overs(sorted(starts), ends))
    return {"rate": args.jobs / seconds, "hand_overs": len(waits), **spread(waits)}


def hand_overs(starts: list[Start], ends: Mapping[str, int]) -> Iterator[int]:
    """For each change of workers, the time between the last end before it and the first start after it."""
    last_end = 0
    for before, after in pairwise(starts):
        last_end = max(last_end, ends[before.job_id])
        if after.worker != before.worker:
            yield after.at_ms - last_end
