"""taskiq with its stream broker, which has acknowledgements; no result backend, no bulk call."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.asyncio import Redis
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import MORE_CONNECTIONS, Note, OneByOne, run


class Taskiq(OneByOne):
    async def open(self, url: str) -> None:
        # Read from the start of the stream: jobs may be added before the first worker starts.
        self._broker: Any = RedisStreamBroker(f"{url}?{MORE_CONNECTIONS}", queue_name="bench", consumer_id="0")
        self._client: Any = Redis.from_url(url)
        self._note: Note | None = None

        async def handle(data: dict[str, str]) -> None:
            if self._note:
                self._note(data["id"], now_us())

        self._task = self._broker.register_task(handle, task_name="handle")
        await self._broker.startup()

    async def add(self, index: int) -> None:
        await self._task.kiq(payload(index))

    async def work(self, concurrency: int, note: Note) -> None:
        self._note = note
        receiving = run_receiver_task(self._broker, max_async_tasks=concurrency, max_prefetch=concurrency)
        self._working = asyncio.create_task(receiving)

    async def left(self) -> int:
        (group,) = await self._client.xinfo_groups("bench")
        return int(group["pending"]) + int(group["lag"] or 0)


if __name__ == "__main__":
    run(Taskiq())
