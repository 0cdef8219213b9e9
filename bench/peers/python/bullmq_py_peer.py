"""BullMQ for Python: bulk adds with `addBulk`; finished jobs are removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bullmq import Queue, Worker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import Note, OneByOne, run


class BullMQ(OneByOne):
    async def open(self, url: str) -> None:
        self._url = url
        self._queue: Any = Queue("bench", {"connection": url})

    async def add(self, index: int) -> None:
        await self._queue.add("job", payload(index))

    async def add_many(self, indices: Iterable[int]) -> None:
        await self._queue.addBulk([{"name": "job", "data": payload(index)} for index in indices])

    async def work(self, concurrency: int, note: Note) -> None:
        async def handle(job: Any, fence: str) -> None:
            note(job.data["id"], now_us())

        self._worker = Worker(
            "bench", handle, {"connection": self._url, "concurrency": concurrency, "removeOnComplete": True}
        )

    async def left(self) -> int:
        counts = await self._queue.getJobCounts("wait", "active")
        return int(sum(counts.values()))


if __name__ == "__main__":
    run(BullMQ())
