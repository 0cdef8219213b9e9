"""The workers of one process, as one: for several queues, or for all handlers of a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

from groupmq import Queue, Worker, Workers
from groupmq.cli.output.tables import number


class WorkerSet:
    """One worker, or several, which have slots of their own or `shared` ones.

    `queue`: the workers are those that its `process` has made, and it starts them.
    """

    def __init__(self, workers: Sequence[Worker], shared: Workers | None = None, *, queue: Queue | None = None) -> None:
        self.workers = tuple(workers)
        self._shared = shared
        self._queue = queue
        self._open = AsyncExitStack()

    def __iter__(self) -> Iterator[Worker]:
        return iter(self.workers)

    def described(self) -> list[str]:
        """The workers and their queues, in lines for the log."""
        lines = []
        for one in self.workers:
            where = f"queue {one.queue.name} at {one.queue.address}"
            lines.append(f"worker {one.name} works on {where}, {one.concurrency} at once")
        if self._shared is not None:
            lines.append(f"all queues together have {number(self._shared.concurrency, 'slot')}")
        return lines

    def running(self) -> int:
        return sum(len(worker.get_current_jobs()) for worker in self.workers)

    async def start(self) -> None:
        if self._shared is not None:
            await self._shared.start()
        elif self._queue is not None:
            await self._open.enter_async_context(self._queue)
        else:
            for worker in self.workers:
                await worker.start()

    async def run(self, *, burst: bool) -> None:
        """Work until closed. If one of them gives up, the others are closed too."""
        if self._shared is not None:
            await self._shared.run(burst=burst)
            return
        try:
            async with asyncio.TaskGroup() as group:
                for worker in self.workers:
                    group.create_task(worker.run(burst=burst))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None

    async def close(self, timeout: float) -> None:
        await asyncio.gather(*(worker.close(timeout) for worker in self.workers))

    async def close_queues(self) -> None:
        await self._open.aclose()
        for queue in {id(worker.queue): worker.queue for worker in self.workers}.values():
            await queue.close()
