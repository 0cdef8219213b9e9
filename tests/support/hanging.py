"""A worker whose event loop a test can hang without hanging its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from groupmq import Job, Queue, Worker


class WorkerInThread:
    """A worker in a thread with a separate event loop. Subclasses say what hangs that loop, by calling `hang` in it."""

    def __init__(self, name: str, url: str, **options: Any) -> None:
        self.started: list[Any] = []
        """The data of the jobs whose handler was called."""
        self.hangs, self.go_on, self.over = threading.Event(), threading.Event(), threading.Event()
        self.worker: Worker | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work(name, url, options)))
        self._thread.start()

    async def _work(self, name: str, url: str, options: dict[str, Any]) -> None:
        async with Queue(name, url, **options) as queue:
            self.worker = self.make(queue)
            async with self.worker:
                self.has_started(self.worker)
                await asyncio.to_thread(self.over.wait)

    def make(self, queue: Queue) -> Worker:
        return Worker(queue, self.handle)

    def has_started(self, worker: Worker) -> None:
        """Called in the worker's loop when it has started."""

    async def handle(self, job: Job) -> None:
        self.started.append(job.data)

    def hang(self) -> None:
        """Hang the loop that calls this until `go_on` is set."""
        self.hangs.set()
        assert self.go_on.wait(60)

    def end(self) -> None:
        self.go_on.set()
        self.over.set()
        self._thread.join(20)
        assert not self._thread.is_alive()
