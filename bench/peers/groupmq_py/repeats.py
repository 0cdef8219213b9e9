"""How many ticks of repeating jobs run, and how late."""

from __future__ import annotations

import argparse
import asyncio
import time

from bench.peers.clocks import payload
from bench.peers.groupmq_py.common import Figures, Lateness, drained, open_queue
from bench.spread import spread
from groupmq import Every, Queue, Worker

LEAD_S, LEAD_PER_REPEAT_S = 1.0, 0.003
"""Seconds between the first definition and the first tick: everything is defined before."""
LOOK_S = 0.1


async def run(args: argparse.Namespace) -> Figures:
    """Ticks expected and run, and milliseconds from tick to start, for --jobs repeating jobs that run for --seconds.

    Each ticks every --interval_ms. Their first ticks are spread evenly over one interval.
    """
    interval = args.interval_ms / 1000
    expected = args.jobs * args.seconds * 1000 // args.interval_ms
    late = Lateness(expected)
    async with open_queue(args) as queue:
        first = time.time() + LEAD_S + LEAD_PER_REPEAT_S * args.jobs
        for i in range(args.jobs):
            start = first + i * interval / args.jobs
            # Half an interval after the last tick, so that rounding to milliseconds neither adds nor drops one.
            end = start + args.seconds - interval / 2
            await queue.add(payload(i), group_id=f"group-{i}", repeat=Every(interval, start=start, end=end))
        if time.time() > first:
            raise RuntimeError("defining the repeats took so long that the first ticks had passed")
        async with Worker(queue, late, concurrency=args.concurrency):
            await _ended(queue)
    return {"expected": expected, "run": len(late.late_ms), **spread(late.late_ms.values())}


async def _ended(queue: Queue) -> None:
    """Wait until every repeating job is past its end and all occurrences are done."""
    while await queue.get_repeating_jobs():  # noqa: ASYNC110 - the truth is on the server
        await asyncio.sleep(LOOK_S)
    await drained(queue)
