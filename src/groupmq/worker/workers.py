"""Several workers in one process, for several queues, with shared slots."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from groupmq.core.checks import whole
from groupmq.core.durations import Duration
from groupmq.core.errors import ConfigurationError
from groupmq.runtime.loops import soon
from groupmq.worker.life.burst import is_over
from groupmq.worker.sharing import Membership, SharedSlots
from groupmq.worker.worker import Worker


class Workers:
    """Runs several workers, with at most `concurrency` jobs at once in all of them together.

    A queue that has work is always served, however much work the others have. A `concurrency` that was given to one
    of the workers limits how many of the shared slots it uses.

    >>> workers = Workers([Worker(orders, charge), Worker(mails, send)], concurrency=8)
    >>> await workers.run()
    """

    def __init__(self, workers: Sequence[Worker], *, concurrency: int = 1) -> None:
        self._workers = _checked(workers)
        self.concurrency = whole(concurrency, "concurrency", 1, 10_000)
        self._changed = asyncio.Event()
        membership = Membership(SharedSlots(self.concurrency, defer=soon), self._changed.set)
        for worker in self._workers:
            worker._join(membership)

    def __iter__(self) -> Iterator[Worker]:
        return iter(self._workers)

    def __len__(self) -> int:
        return len(self._workers)

    async def start(self) -> Self:
        """Start all of them; if one cannot be started, all are closed."""
        try:
            for worker in self._workers:
                await worker.start()
        except BaseException:
            await self.close(0)
            raise
        return self

    async def run(self, *, burst: bool = False) -> None:
        """Work until closed; with `burst`, until nothing is runnable in any queue.

        Raises the error that the `run` of a worker raised, after the others have been closed.
        """
        runs = [asyncio.ensure_future(worker._run(burst=False, bursts_later=burst)) for worker in self._workers]
        done = asyncio.ensure_future(self._until_done()) if burst else None
        try:
            waited = [*runs, done] if done is not None else runs
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            failed = any(run.done() and run.exception() is not None for run in runs)
            await self.close(0 if failed else 30)
            await asyncio.gather(*runs)
        except asyncio.CancelledError:
            await self.close(0)
            raise
        finally:
            if done is not None:
                done.cancel()
            await asyncio.gather(*runs, return_exceptions=True)

    async def _until_done(self) -> None:
        while not await is_over([worker for worker in self._workers if not worker.is_closed()], self._changed):
            await self._changed.wait()

    async def close(self, timeout: Duration = 30) -> None:
        """Close all of them, each as `Worker.close` does."""
        await asyncio.gather(*(worker.close(timeout) for worker in self._workers))

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _checked(workers: object) -> tuple[Worker, ...]:
    if not isinstance(workers, Sequence) or not workers or not all(isinstance(one, Worker) for one in workers):
        raise ConfigurationError.expected("workers", "a sequence of Workers", workers)
    if len(set(map(id, workers))) < len(workers):
        raise ConfigurationError("workers: the same Worker is listed twice")
    return tuple(workers)
