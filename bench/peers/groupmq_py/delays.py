"""How late delayed jobs start."""

from __future__ import annotations

import argparse
import random
import time

from bench.peers.clocks import payload
from bench.peers.groupmq_py.common import Figures, Lateness, open_queue
from bench.spread import spread
from groupmq import Worker

LEAD_S = 2.0
"""Seconds between the start of adding and the first due time: everything is stored before."""


async def run(args: argparse.Namespace) -> Figures:
    """Milliseconds from the due time of a job to its start, for --jobs jobs due at random times within --seconds."""
    chance = random.Random(1)
    late = Lateness(args.jobs)
    async with open_queue(args) as queue:
        first = time.time() + LEAD_S
        items = [
            {
                "data": payload(i),
                "group_id": f"group-{i % args.groups}",
                "run_at": first + chance.random() * args.seconds,
            }
            for i in range(args.jobs)
        ]
        await queue.add_many(items)
        if time.time() > first:
            raise RuntimeError(f"adding took more than {LEAD_S:g} s, so some jobs were late from the start")
        async with Worker(queue, late, concurrency=args.concurrency):
            await late.complete.wait()
    return spread(late.late_ms.values())
