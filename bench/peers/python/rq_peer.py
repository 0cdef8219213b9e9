"""RQ: bulk adds with `enqueue_many`; one SimpleWorker per process, which does not fork for each job; no results."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Iterable
from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import Note, run

FORK = multiprocessing.get_context("fork")
notes: Any = FORK.SimpleQueue()
"""The starts that handlers of all worker processes record; None stands for a worker that has started."""


def handle(data: dict[str, str]) -> None:
    notes.put((data["id"], now_us()))


def work(url: str) -> None:
    """Run a worker process, which exits with its parent."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    client = Redis.from_url(url)
    worker = SimpleWorker([Queue("bench", connection=client)], connection=client)
    notes.put(None)
    worker.work(logging_level="ERROR")


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


class Rq:
    async def open(self, url: str) -> None:
        self._url = url
        self._queue: Any = Queue("bench", connection=Redis.from_url(url))
        self._processes: list[Any] = []
        # Workers import the handler by its module name; here the module is `__main__`.
        self._handler = "bench.peers.python.rq_peer.handle"

    async def add(self, index: int) -> None:
        self._queue.enqueue(self._handler, payload(index), result_ttl=0)

    async def add_many(self, indices: Iterable[int]) -> None:
        described = [
            Queue.prepare_data(self._handler, args=(payload(index),), result_ttl=0, timeout=180) for index in indices
        ]
        self._queue.enqueue_many(described)

    async def work(self, concurrency: int, note: Note) -> None:
        import bench.peers.python.rq_peer as by_name

        by_name.notes = notes
        started = asyncio.Event()
        loop = asyncio.get_running_loop()

        def read() -> None:
            to_start = concurrency
            while True:
                if (noted := notes.get()) is not None:
                    note(*noted)
                    continue
                to_start -= 1
                if not to_start:
                    loop.call_soon_threadsafe(started.set)

        for _ in range(concurrency):
            process = FORK.Process(target=work, args=(self._url,), daemon=True)
            process.start()
            self._processes.append(process)
        threading.Thread(target=read, daemon=True).start()
        await started.wait()

    async def left(self) -> int:
        return int(self._queue.count + self._queue.started_job_registry.get_job_count(cleanup=False))

    async def close(self) -> None:
        for process in self._processes:
            process.kill()


if __name__ == "__main__":
    run(Rq())
