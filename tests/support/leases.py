"""Leases that are short enough to expire in a test, and a watch over those that do."""

from __future__ import annotations

import threading
from typing import Self

from groupmq import Queue
from groupmq.sync import Queue as SyncQueue

LEASE = 2.5
"""Seconds. A heartbeat comes every third of it, so no lease is lost if a busy machine gives this process no time for up
to two thirds of it."""
LONG = 2.2 * LEASE


class Watch:
    """Takes back every lease that expires, in a separate thread, since the test's event loop may hang."""

    def __init__(self, queue: Queue) -> None:
        self.stalled: list[str] = []
        self._queue = SyncQueue(queue.name, queue._connection.endpoint.where)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.stalled += self._queue.check_stalled_jobs()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join()
        self._queue.close()
