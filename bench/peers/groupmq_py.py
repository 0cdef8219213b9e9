"""groupmq itself behind the peers' command line: public API only, same payload, same clocks as common.js."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Coroutine
from typing import Any

from groupmq import Job, Queue, Worker

POLL_S = 0.001


def payload(index: int) -> dict[str, str]:
    """20 bytes as JSON, different for every job."""
    return {"id": f"{index:011d}"}


def open_queue(args: argparse.Namespace) -> Queue:
    return Queue(args.queue, f"redis://127.0.0.1:{args.port}", keep_completed=0, keep_failed=0)


async def enqueue(args: argparse.Namespace) -> dict[str, float]:
    """Time from the first `add_many` to the last acknowledgement."""
    starts = iter(range(0, args.jobs, args.chunk))

    async with open_queue(args) as queue:
        await queue.get_job_counts()  # connected and known to the server before the clock starts

        async def lane() -> None:
            for first in starts:
                indexes = range(first, min(first + args.chunk, args.jobs))
                await queue.add_many([{"data": payload(i), "group_id": f"group-{i % args.groups}"} for i in indexes])

        started = time.perf_counter()
        await asyncio.gather(*(lane() for _ in range(args.inflight)))
        return {"jobs": args.jobs, "seconds": time.perf_counter() - started}


async def process(args: argparse.Namespace) -> dict[str, float]:
    """Time from the first handler call until all is handled and, unless --take, the queue says it is drained.

    With --take the queue keeps its backlog: the clock stops at that many handled jobs, and `handled` also
    counts the few that were finished while the worker closed, because the server worked for them too.
    """
    wanted = args.take or args.jobs
    finished = asyncio.Event()
    handled = 0
    started = stopped = 0.0

    async def handle(job: Job) -> None:
        nonlocal handled, started, stopped
        if handled == 0:
            started = time.perf_counter()
        _ = job.data  # the Node libraries decode it before the call
        handled += 1
        if handled == wanted:
            stopped = time.perf_counter()
            finished.set()

    async with open_queue(args) as queue:
        worker = Worker(queue, handle, concurrency=args.concurrency)
        await worker.start()
        await finished.wait()
        if not args.take:
            while (await queue.get_job_counts()).total:  # noqa: ASYNC110 - the truth is on the server
                await asyncio.sleep(POLL_S)
            stopped = time.perf_counter()
        seconds = stopped - started
        await worker.close()
        return {"jobs": wanted, "seconds": seconds, "handled": handled}


def run(main: Coroutine[Any, Any, dict[str, float]]) -> dict[str, float]:
    """Run with uvloop where it is installed, as a deployment would."""
    factory = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["enqueue", "process"])
    parser.add_argument("--queue", default="bench")
    numbers = {"port": 6379, "jobs": 1000, "groups": 1000, "chunk": 1000, "inflight": 1, "concurrency": 1}
    for name, default in {**numbers, "take": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse()
    actions = {"enqueue": enqueue, "process": process}
    print(json.dumps(run(actions[arguments.action](arguments))))
