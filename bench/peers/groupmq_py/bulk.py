"""Add many jobs, work many jobs off: the two actions that every library has, with the same clocks as common.js."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.peers.groupmq_py.common import Figures, drained, open_queue, payload
from groupmq import Job, Worker

HOUR_MS = 3_600_000


async def enqueue(args: argparse.Namespace) -> Figures:
    """Time from the first `add_many` to the last acknowledgement.

    With --ordered each job says its place itself: an event of the last hour, in the order of arrival.
    """
    starts = iter(range(0, args.jobs, args.chunk))
    first_event = int(time.time() * 1000) - HOUR_MS

    def item(index: int) -> dict[str, Any]:
        described = {"data": payload(index), "group_id": f"group-{index % args.groups}"}
        return {**described, "order_ms": first_event + index} if args.ordered else described

    async with open_queue(args) as queue:
        await queue.get_job_counts()  # connected and known to the server before the clock starts

        async def lane() -> None:
            for first in starts:
                await queue.add_many([item(i) for i in range(first, min(first + args.chunk, args.jobs))])

        started = time.perf_counter()
        await asyncio.gather(*(lane() for _ in range(args.inflight)))
        return {"jobs": args.jobs, "seconds": time.perf_counter() - started}


async def process(args: argparse.Namespace, then: Callable[[Figures], Awaitable[None]] | None = None) -> Figures:
    """Time from the first handler call until all is handled and, unless --take, the queue says it is drained.

    With --take the queue keeps its backlog: the clock stops at that many handled jobs, and `handled` also
    counts the few that were finished while the worker closed, because the server worked for them too.
    With `then` handlers return the id of their payload, and the worker goes on until that is over.
    """
    wanted = args.take or args.jobs
    finished = asyncio.Event()
    handled = 0
    started = stopped = 0.0

    async def handle(job: Job) -> str | None:
        nonlocal handled, started, stopped
        if handled == 0:
            started = time.perf_counter()
        data = job.data  # the Node libraries decode it before the call
        handled += 1
        if handled == wanted:
            stopped = time.perf_counter()
            finished.set()
        return data["id"] if then else None

    async with open_queue(args) as queue:
        worker = Worker(queue, handle, concurrency=args.concurrency)
        await worker.start()
        await finished.wait()
        if not args.take:
            await drained(queue)
            stopped = time.perf_counter()
        figures = {"jobs": wanted, "seconds": stopped - started}
        if then:
            await then(figures)
        await worker.close()
        return {**figures, "handled": handled}
