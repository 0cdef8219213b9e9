"""The processes of `ticks.py`: schedulers that race for each tick, and a worker that records the jobs they added."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any, TypeVar

from groupmq import GroupMQError, Job, Queue, Worker
from groupmq.protocol.commands import Call
from tests.chaos.handlers import millis
from tests.chaos.history import HistoryFile

T = TypeVar("T")
NAME = "ticks"
OPTIONS: dict[str, Any] = {"keep_completed": 0, "job_timeout": 60.0}
"""Completed jobs are not kept, so the id of a tick is free again; and leases are long enough never to expire."""
LONGEST, NOTE_EVERY = 0.5, 1.0


class _Counting(Queue):
    """Counts the ticks that its scheduler added, and how often another scheduler was first."""

    made = races = lost = 0

    async def _call(self, call: Call[T], /) -> T:
        reply = await super()._call(call)
        if call.script == "tick":
            added: int = reply.added  # type: ignore[attr-defined]
            self.made, self.races, self.lost = self.made + added, self.races + 1, self.lost + (added == 0)
        return reply


async def schedule(history: HistoryFile, settings: dict[str, Any]) -> None:
    """Like `groupmq scheduler`: look for due ticks, sleep until the next one, look again."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with _Counting(NAME, settings["url"], **OPTIONS) as queue:
        history.note("ready", q=NAME)
        noted = time.monotonic()
        while not over.is_set():
            pause = LONGEST
            try:
                report = await queue.run_duty_once("scheduler")
                pause = min(LONGEST, report.next_in or LONGEST)
            except GroupMQError as error:
                history.note("trouble", error=f"{type(error).__name__}: {error}")
            if time.monotonic() - noted > NOTE_EVERY or over.is_set():
                noted = time.monotonic()
                history.note("raced", made=queue.made, calls=queue.races, lost=queue.lost)
            try:
                await asyncio.wait_for(over.wait(), max(0.001, pause))
            except TimeoutError:
                continue


async def work(history: HistoryFile, settings: dict[str, Any]) -> None:
    async def handler(job: Job) -> None:
        history.note(
            "ran",
            key=job.data,
            tick=job.order_ms,
            attempt=job.attempt,
            fence=job.fence,
            created=millis(job.created_at),
        )

    async with Queue(NAME, settings["url"], **OPTIONS) as queue:
        worker = Worker(queue, handler, concurrency=50, maintenance=False, blocking_timeout=1.0)
        worker.on("ready", lambda: history.note("ready", q=NAME))
        tasks: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: tasks.add(loop.create_task(worker.close(timeout=5))))
        await worker.run()
        await asyncio.gather(*tasks)
