"""A worker process of a soak run: it serves every queue, and does what the data of each job says."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from typing import Any

from groupmq import FailJob, Job, RateLimited, Snooze, Worker
from tests.soak.pulse import Pulse
from tests.soak.queues import QUEUES, open_queue

CLOSE_WITHIN = 3.0


async def handle(job: Job) -> Any:
    """`job.data` is {"do": what, "s": seconds}. Failures and timeouts happen only in the first attempt."""
    data, first = job.data, job.attempt == 1
    match data["do"]:
        case "fail" if first:
            raise ValueError("told to fail")
        case "give up":
            raise FailJob("told to give up")
        case "snooze" if job.fence % 2:
            raise Snooze(data["s"])
        case "limited" if job.fence % 2:
            raise RateLimited(retry_after=data["s"])
        case "talk":
            await job.report_progress({"half": True})
            await job.log("half")
        case "slow" if first:
            await asyncio.sleep(30)
    if data["s"]:
        await asyncio.sleep(data["s"])
    return {"attempt": job.attempt}


async def work(settings: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        workers = []
        for name in QUEUES:
            queue = await stack.enter_async_context(open_queue(name, settings["url"]))
            workers.append(Worker(queue, handle, concurrency=settings["concurrency"], cleanup_interval=10))
        tasks: set[asyncio.Task[Any]] = set()

        def leave() -> None:
            for worker in workers:
                tasks.add(asyncio.ensure_future(worker.close(timeout=CLOSE_WITHIN)))

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
        await stack.enter_async_context(Pulse(settings))
        await asyncio.gather(*(worker.run() for worker in workers))
        await asyncio.gather(*tasks)
