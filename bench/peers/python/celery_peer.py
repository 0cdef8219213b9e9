"""Celery: a thread pool, because a process per concurrent job would measure the machine; no results, no bulk call.

Jobs are acknowledged before they run, which is Celery's default.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

from celery import Celery
from celery.worker import WorkController
from redis import Redis

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import Note, OneByOne, run


class CeleryPeer(OneByOne):
    async def open(self, url: str) -> None:
        self._app: Any = Celery("bench", broker=url)
        self._app.conf.update(task_ignore_result=True, worker_hijack_root_logger=False)
        self._client = Redis.from_url(url)
        self._note: Note | None = None

        def handle(data: dict[str, str]) -> None:
            if self._note:
                self._note(data["id"], now_us())

        self._task = self._app.task(handle, name="handle")
        self._app.finalize()
        self._producer: Any = self._app.amqp.producer_pool.acquire(block=True)

    async def add(self, index: int) -> None:
        self._task.apply_async((payload(index),), producer=self._producer)

    async def add_many(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._task.apply_async((payload(index),), producer=self._producer)

    async def work(self, concurrency: int, note: Note) -> None:
        self._note = note
        started = asyncio.Event()
        loop = asyncio.get_running_loop()
        worker = WorkController(
            app=self._app,
            pool="threads",
            concurrency=concurrency,
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
            ready_callback=lambda consumer: loop.call_soon_threadsafe(started.set),
        )
        threading.Thread(target=worker.start, daemon=True).start()
        await started.wait()

    async def left(self) -> int:
        waiting: Any = self._client.llen("celery")
        taken: Any = self._client.hlen("unacked")
        return int(waiting) + int(taken)


if __name__ == "__main__":
    run(CeleryPeer())
