"""A producer that adds continuously while servers fail over or slots move, and checks of the result."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from groupmq import Queue, Worker
from groupmq.errors import ConnectionLost, ServerRefused
from tests.support.waiting import eventually
from tests.support.workers import Recorder

GROUPS = 5


class Load:
    """Numbers added to a few groups, one after the other, until stopped."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.added: list[int] = []
        """The acknowledged numbers, in order."""
        self.refused = 0
        """The number of adds that failed."""
        self._stopped = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._produce())

    async def _produce(self) -> None:
        n = 0
        while not self._stopped:
            try:
                await self.queue.add(n, group_id=f"g{n % GROUPS}", job_id=f"job-{n}", max_attempts=9)
            except (ConnectionLost, ServerRefused):
                self.refused += 1
                await asyncio.sleep(0.01)
                continue
            self.added.append(n)
            n += 1
            await asyncio.sleep(0.002)

    async def goes_on(self, more: int = 50, timeout: float = 30) -> None:
        """Wait until that many more adds are acknowledged."""
        enough = len(self.added) + more
        await eventually(lambda: len(self.added) >= enough, f"{more} more jobs are added", timeout)

    async def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            await self._task


@asynccontextmanager
async def working(url: Any, name: str, *, workers: int = 2, **options: Any) -> AsyncIterator[tuple[Load, Recorder]]:
    """A producer and workers of one queue, each with its own connections."""
    handler = Recorder()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(workers):
            queue = await stack.enter_async_context(Queue(name, url, **options))
            worker = Worker(queue, handler, concurrency=4, heartbeat=0.5, blocking_timeout=5)
            await stack.enter_async_context(worker)
        load = Load(await stack.enter_async_context(Queue(name, url, **options)))
        load.start()
        try:
            yield load, handler
        finally:
            await load.stop()


async def all_done(load: Load, handler: Recorder, safe: Iterable[int], timeout: float = 30) -> None:
    """Stop adding, and wait until every job that cannot be lost has run and the queue is empty."""
    await load.stop()
    expected = set(safe)
    await eventually(
        lambda: expected <= set(handler.ended),
        f"all of {len(expected)} jobs ran; {len(set(handler.ended))} did",
        timeout,
    )

    async def is_empty() -> bool:
        counts = await load.queue.get_job_counts()
        return counts.waiting + counts.active + counts.delayed == 0

    await eventually(is_empty, "the queue is empty", timeout)


def in_order(started: Iterable[int]) -> dict[str, list[int]]:
    """Groups in which a job first started after a later one; empty if the order is right."""
    seen: set[int] = set()
    by_group: dict[str, list[int]] = defaultdict(list)
    for n in started:
        if n not in seen:  # a job whose outcome was lost with the old primary runs again
            seen.add(n)
            by_group[f"g{n % GROUPS}"].append(n)
    return {name: numbers for name, numbers in by_group.items() if numbers != sorted(numbers)}
