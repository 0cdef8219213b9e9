"""docket (pydocket): bulk adds with `add_many`; finished jobs are not kept (execution_ttl=0).

A worker without a free slot polls every 10 ms here. With the default of 250 ms, only the polling would be measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from docket import Docket, Worker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import MORE_CONNECTIONS, Note, OneByOne, run

CHECK = timedelta(milliseconds=10)


class DocketPeer(OneByOne):
    async def open(self, url: str) -> None:
        self._docket: Any = Docket(name="bench", url=f"{url}/0?{MORE_CONNECTIONS}", execution_ttl=timedelta(0))
        await self._docket.__aenter__()
        self._note: Note | None = None

        async def handle(data: dict[str, str]) -> None:
            if self._note:
                self._note(data["id"], now_us())

        self._handle = handle
        self._docket.register(handle)

    async def add(self, index: int) -> None:
        await self._docket.add(self._handle)(payload(index))

    async def add_many(self, indices: Iterable[int]) -> None:
        await self._docket.add_many([self._docket.call(self._handle)(payload(index)) for index in indices])

    async def work(self, concurrency: int, note: Note) -> None:
        self._note = note
        worker: Any = Worker(
            self._docket, concurrency=concurrency, minimum_check_interval=CHECK, schedule_automatic_tasks=False
        )
        await worker.__aenter__()
        self._working = asyncio.create_task(worker.run_forever())

    async def left(self) -> int:
        async with self._docket.redis() as redis:
            return int(await redis.xlen(self._docket.stream_key))


if __name__ == "__main__":
    run(DocketPeer())
