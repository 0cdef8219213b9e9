"""arq: no bulk call. It polls every 10 ms here. With the default of 0.5 s, only the polling would be measured."""

from __future__ import annotations

import asyncio
from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.constants import default_queue_name
from arq.worker import Worker, func

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import Note, OneByOne, run

POLL_DELAY_S = 0.01


class Arq(OneByOne):
    async def open(self, url: str) -> None:
        self._settings = RedisSettings.from_dsn(url)
        self._pool: Any = await create_pool(self._settings)

    async def add(self, index: int) -> None:
        await self._pool.enqueue_job("handle", payload(index))

    async def work(self, concurrency: int, note: Note) -> None:
        async def handle(ctx: dict[str, Any], data: dict[str, str]) -> None:
            note(data["id"], now_us())

        worker = Worker(
            functions=[func(handle, name="handle", keep_result=0)],
            redis_settings=self._settings,
            max_jobs=concurrency,
            poll_delay=POLL_DELAY_S,
            handle_signals=False,
        )
        self._working = asyncio.create_task(worker.async_run())

    async def left(self) -> int:
        return int(await self._pool.zcard(default_queue_name))


if __name__ == "__main__":
    run(Arq())
