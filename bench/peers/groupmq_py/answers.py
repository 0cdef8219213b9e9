"""Waiting for results: a worker, a load of other jobs, and a process that waits. The same clocks as in common.js."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import time
from typing import Any

from bench.peers.clocks import payload, say, told_to_end
from bench.peers.groupmq_py import bulk
from bench.peers.groupmq_py.common import Figures, group_of, open_queue

TICK_S = 0.005
PAUSE_S = 0.004
LIMIT_S = 5


async def serve(args: argparse.Namespace) -> Figures:
    """Process the --jobs that wait, print how long that took, then continue until the input is closed.

    Each handler returns the id of its payload as the result.
    """

    async def go_on(figures: Figures) -> None:
        say(figures)
        await told_to_end()

    return await bulk.process(args, then=go_on)


async def load(args: argparse.Namespace) -> Figures:
    """Add --rate jobs per second, those of a tick in one call, until the input is closed.

    The number of jobs left then shows whether the worker kept up.
    """
    async with open_queue(args) as queue:
        await queue.get_job_counts()
        end = asyncio.ensure_future(told_to_end())
        added = 0
        started = time.perf_counter()
        say({"rate": args.rate})
        while not end.done():
            due = min(args.chunk, int((time.perf_counter() - started) * args.rate) - added)
            if due > 0:
                await queue.add_many([_item(args, i) for i in range(added, added + due)])
                added += due
            await asyncio.sleep(TICK_S)
        took = time.perf_counter() - started
        return {"jobs": added, "seconds": took, "left": (await queue.get_job_counts()).total}


async def probe(args: argparse.Namespace) -> dict[str, list[float]]:
    """Milliseconds from the call of `add` to the result, for --jobs jobs one by one, or as many as --seconds allow.

    A result that is late counts with the limit. The pauses are random, so that they do not synchronise with the load.
    """
    indices = itertools.count()
    async with open_queue(args) as queue:
        await queue.get_job_counts()

        async def several(jobs: int, limit: float) -> list[float]:
            took_ms: list[float] = []
            began = time.perf_counter()
            while len(took_ms) < jobs and time.perf_counter() - began < limit:
                item = _item(args, next(indices))
                result = expected = item["data"]["id"]
                started = time.perf_counter()
                with contextlib.suppress(TimeoutError):
                    result = await (await queue.add(**item)).result(timeout=LIMIT_S)
                took_ms.append(1000 * (time.perf_counter() - started))
                if result != expected:
                    raise RuntimeError(f"expected the result {expected}, got {result!r}")
                await asyncio.sleep(PAUSE_S * random.random())
            return took_ms

        await several(args.warmup, args.seconds / 5)
        return {"ms": await several(args.jobs, args.seconds)}


def _item(args: argparse.Namespace, index: int) -> dict[str, Any]:
    return {"data": payload(index), "group_id": group_of(args, index)}
