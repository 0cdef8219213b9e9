"""dramatiq: one process with a thread per concurrent job; no bulk call; the middleware of a default broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.clocks import now_us, payload
from bench.peers.python.harness import MORE_CONNECTIONS, Note, OneByOne, run


class Dramatiq(OneByOne):
    async def open(self, url: str) -> None:
        self._broker: Any = RedisBroker(url=f"{url}?{MORE_CONNECTIONS}")
        dramatiq.set_broker(self._broker)
        self._note: Note | None = None

        def handle(data: dict[str, str]) -> None:
            if self._note:
                self._note(data["id"], now_us())

        self._actor: Any = dramatiq.actor(handle, queue_name="bench")

    async def add(self, index: int) -> None:
        self._actor.send(payload(index))

    async def add_many(self, indices: Iterable[int]) -> None:
        for index in indices:
            self._actor.send(payload(index))

    async def work(self, concurrency: int, note: Note) -> None:
        self._note = note
        self._worker = dramatiq.Worker(self._broker, worker_threads=concurrency)
        self._worker.start()

    async def left(self) -> int:
        return int(self._broker.do_qsize("bench"))


if __name__ == "__main__":
    run(Dramatiq())
