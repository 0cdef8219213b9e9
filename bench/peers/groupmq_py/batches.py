"""One hot group whose handler waits in each call, as for a database: with one job per call, and a batch per call."""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from bench.peers.clocks import payload
from bench.peers.groupmq_py.common import Figures, drained, open_queue
from groupmq import Job, Worker


async def run(args: argparse.Namespace) -> Figures:
    """Jobs per second of one group: --jobs in batches of --batch, and a tenth of them one by one.

    Each call of the handler sleeps for --sleep-ms, however many jobs it got.
    """
    pause = args.sleep_ms / 1000

    async def one(job: Job) -> None:
        await asyncio.sleep(pause)

    async def many(jobs: list[Job]) -> None:
        await asyncio.sleep(pause)

    single = await _rate(args, one, max(1, args.jobs // 10))
    batch = await _rate(args, many, args.jobs, batch=args.batch)
    return {"single": single, "batch": batch}


async def _rate(args: argparse.Namespace, handler: Any, jobs: int, **options: Any) -> float:
    async with open_queue(args) as queue:
        await queue.add_many({"data": payload(i), "group_id": "hot"} for i in range(jobs))
        began = time.perf_counter()
        async with Worker(queue, handler, **options):
            await drained(queue)
        return jobs / (time.perf_counter() - began)
