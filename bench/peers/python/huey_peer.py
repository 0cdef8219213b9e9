"""huey: one process with a thread per concurrent job; no bulk call, no results.

A job is removed from its list before it runs, and is lost if its worker dies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from huey import RedisHuey

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import MORE_CONNECTIONS, Note, OneByOne, run


class Huey(OneByOne):
    async def open(self, url: str) -> None:
        self._huey: Any = RedisHuey("bench", url=f"{url}?{MORE_CONNECTIONS}", results=False)
        self._note: Note | None = None

        def handle(data: dict[str, str]) -> None:
            if self._note:
                self._note(data["id"], now_us())

        self._task = self._huey.task(name="handle")(handle)

    async def add(self, index: int) -> None:
        self._task(payload(index))

    async def add_many(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._task(payload(index))

    async def work(self, concurrency: int, note: Note) -> None:
        self._note = note
        self._consumer = self._huey.create_consumer(workers=concurrency, worker_type="thread", periodic=False)
        self._consumer.start()

    async def left(self) -> int:
        return int(self._huey.pending_count())


if __name__ == "__main__":
    run(Huey())
