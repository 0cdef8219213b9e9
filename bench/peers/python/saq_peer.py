"""SAQ: its only bulk call waits for results, so jobs are added one by one; finished jobs are deleted (ttl=-1)."""

from __future__ import annotations

import asyncio
from typing import Any

from saq import Queue, Worker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import MORE_CONNECTIONS, Note, OneByOne, run


class Saq(OneByOne):
    async def open(self, url: str) -> None:
        self._queue: Any = Queue.from_url(f"{url}?{MORE_CONNECTIONS}", name="bench")
        await self._queue.connect()

    async def add(self, index: int) -> None:
        await self._queue.enqueue("handle", data=payload(index), ttl=-1)

    async def work(self, concurrency: int, note: Note) -> None:
        async def handle(ctx: Any, *, data: dict[str, str]) -> None:
            note(data["id"], now_us())

        worker = Worker(self._queue, functions=[("handle", handle)], concurrency=concurrency)
        self._working = asyncio.create_task(worker.start())

    async def left(self) -> int:
        return int(await self._queue.count("incomplete"))


if __name__ == "__main__":
    run(Saq())
