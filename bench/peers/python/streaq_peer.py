"""streaq: bulk adds with `enqueue_many`; results are not kept (ttl=0), tasks are not logged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from streaq import Worker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import Note, OneByOne, run


class Streaq(OneByOne):
    async def open(self, url: str) -> None:
        self._url = url
        self._producer, self._handle = self._make(1, None)
        await self._producer.__aenter__()

    def _make(self, concurrency: int, note: Note | None) -> tuple[Any, Any]:
        worker = Worker(redis_url=self._url, queue_name="bench", concurrency=concurrency, handle_signals=False)

        async def handle(data: dict[str, str]) -> None:
            if note:
                note(data["id"], now_us())

        return worker, worker.task(name="handle", ttl=0, silent=True)(handle)

    async def add(self, index: int) -> None:
        await self._handle.enqueue(payload(index))

    async def add_many(self, indices: Iterable[int]) -> None:
        await self._producer.enqueue_many([self._handle.enqueue(payload(index)) for index in indices])

    async def work(self, concurrency: int, note: Note) -> None:
        worker, _ = self._make(concurrency, note)
        self._working = asyncio.create_task(worker.run_async())

    async def left(self) -> int:
        return int(await self._producer.queue_size())


if __name__ == "__main__":
    run(Streaq())
