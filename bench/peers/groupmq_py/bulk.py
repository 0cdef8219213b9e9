"""Adding and processing many jobs: the two actions that every library has, with the same clocks as common.js."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.peers.clocks import Count, payload
from bench.peers.groupmq_py.common import Figures, drained, group_of, open_queue
from groupmq import Job, Worker

HOUR_MS = 3_600_000


async def enqueue(args: argparse.Namespace) -> Figures:
    """Time from the first `add_many` to the last acknowledgement.

    With --ordered each job has its own order_ms: the time of an event of the last hour, in the order of arrival.
    """
    starts = iter(range(0, args.jobs, args.chunk))
    first_event = int(time.time() * 1000) - HOUR_MS

    def item(index: int) -> dict[str, Any]:
        described = {"data": payload(index), "group_id": group_of(args, index)}
        return {**described, "order_ms": first_event + index} if args.ordered else described

    async with open_queue(args) as queue:
        await queue.get_job_counts()  # connects and opens the queue before the clock starts

        async def lane() -> None:
            for first in starts:
                await queue.add_many([item(i) for i in range(first, min(first + args.chunk, args.jobs))])

        started = time.perf_counter()
        await asyncio.gather(*(lane() for _ in range(args.inflight)))
        return {"jobs": args.jobs, "seconds": time.perf_counter() - started}


async def process(args: argparse.Namespace, then: Callable[[Figures], Awaitable[None]] | None = None) -> Figures:
    """Time from the first handler call until all jobs are handled and, unless --take, the queue is empty.

    With --take the queue keeps its backlog: the clock stops at that many handled jobs, and `handled` also counts the
    few that ended while the worker closed, because the server worked for them too.
    With `then` handlers return the id of their payload, and the worker continues until `then` returns.
    With --sleep_ms each handler waits that long, with --blocking it is a `def` that runs in a thread.
    """
    count = Count(args.take or args.jobs)
    pause = args.sleep_ms / 1000

    async def handle(job: Job) -> str | None:
        count.start()
        data = job.data  # the Node libraries decode it before the call
        if pause:
            await asyncio.sleep(pause)
        count.end()
        return data["id"] if then else None

    def handle_in_thread(job: Job) -> None:
        count.start()
        assert job.data["id"]
        if pause:
            time.sleep(pause)
        count.end()

    async with open_queue(args) as queue:
        worker = Worker(queue, handle_in_thread if args.blocking else handle, concurrency=args.concurrency)
        await worker.start()
        await count.all.wait()
        if not args.take:
            await drained(queue)
            count.stopped = time.perf_counter()
        figures = {"jobs": count.wanted, "seconds": count.stopped - count.started}
        if then:
            await then(figures)
        await worker.close()
        return {**figures, "handled": count.handled}
