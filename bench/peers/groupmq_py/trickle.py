"""Jobs that arrive one by one: a producer at a fixed rate, a worker that records starts. The clocks of trickle.js."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from bench.peers.clocks import Stamps, Trickle, now_us, payload, say, told_to_end
from bench.peers.groupmq_py.answers import LIMIT_S
from bench.peers.groupmq_py.common import group_of, open_queue
from groupmq import Job, Worker


async def trickle(args: argparse.Namespace) -> dict[str, Any]:
    """Add --rate jobs per second for --seconds, one per call; see `Trickle`."""
    async with open_queue(args) as queue:
        await queue.get_job_counts()

        async def add(index: int) -> Job:
            return await queue.add(payload(index), group_id=group_of(args, index))

        async def wait(index: int) -> None:
            """Wait for the result of a job. A result that is late counts with the limit."""
            job = await add(index)
            with contextlib.suppress(TimeoutError):
                await job.result(timeout=LIMIT_S)

        async def left() -> int:
            return (await queue.get_job_counts()).total

        return await Trickle(args, add, left, wait).run()


async def stamp(args: argparse.Namespace) -> dict[str, Any]:
    """Process jobs until the input is closed, and record when they start."""
    stamps = Stamps(args.each)

    async def handle(job: Job) -> str:
        at = now_us()
        name: str = job.data["id"]
        stamps.note(name, at)
        return name

    async with open_queue(args) as queue, Worker(queue, handle, concurrency=args.concurrency):
        say({"ready": 1})
        await told_to_end()
    return stamps.figures()
