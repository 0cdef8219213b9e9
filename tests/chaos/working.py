"""A worker process: workers of one or several queues, with every kind of handler."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from groupmq import Backoff, Breaker, Job, Ordering, Queue, RateLimit, Worker
from tests.chaos.cast import QUEUE_OF
from tests.chaos.handlers import run_async, run_batch, run_in_child, run_in_thread
from tests.chaos.history import HistoryFile

CLOSE_WITHIN = 1.5
BLOCK = 1.0


def options_of(name: str) -> dict[str, Any]:
    """The options of a queue, as `Queue` takes them."""
    options = QUEUE_OF[name].all_options() | {"backoff": Backoff.exponential(base=0.05, max=0.5)}
    if "rate_limit" in options:
        options["rate_limit"] = RateLimit(**options["rate_limit"])
    if "breaker" in options:
        options["breaker"] = Breaker(**options["breaker"])
    if "ordering" in options:
        window = dict(options["ordering"])
        options["ordering"] = getattr(Ordering, window.pop("kind"))(**window)
    return options


def open_queue(name: str, url: str) -> Queue:
    return Queue(name, url, **options_of(name))


def make_worker(history: HistoryFile, queue: Queue, told: dict[str, Any]) -> Worker:
    options = {name: value for name, value in told.items() if name not in ("queue", "handler")}
    kind = told.get("handler", "async")

    async def on_loop(job: Job) -> Any:
        return await run_async(history, job)

    async def on_loop_together(jobs: list[Job]) -> Any:
        return await run_batch(history, jobs)

    handlers: dict[str, Callable[..., Any]] = {
        "async": on_loop,
        "batch": on_loop_together,
        "thread": partial(run_in_thread, history),
        "process": run_in_child,
    }
    if kind == "process":
        options["executor"] = "process"
    worker = Worker(queue, handlers[kind], blocking_timeout=BLOCK, **options)
    worker.on("lease-lost", lambda job: history.note("lost", q=queue.name, job=job.id, fence=job.fence))
    worker.on("ready", lambda: history.note("ready", q=queue.name, worker=worker.id, name=worker.name))
    return worker


async def work(history: HistoryFile, settings: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        workers = []
        for told in settings["works"]:
            queue = await stack.enter_async_context(open_queue(told["queue"], settings["url"]))
            workers.append(make_worker(history, queue, told))

        async def leave() -> None:
            began = time.monotonic()
            history.note("closing")
            await asyncio.gather(*(worker.close(timeout=CLOSE_WITHIN) for worker in workers))
            history.note("closed", took=time.monotonic() - began, within=CLOSE_WITHIN)

        tasks: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: tasks.add(loop.create_task(leave())))
        await asyncio.gather(*(worker.run() for worker in workers))
        await asyncio.gather(*tasks)
