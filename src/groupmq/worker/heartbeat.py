"""The heartbeat: one thread with its own connection renews all leases of a worker.

In a thread, so that a handler that blocks the event loop does not lose its lease. Between two beats it waits for mail,
so that what concerns a busy worker reaches it at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from groupmq import commands
from groupmq.checks import Logger
from groupmq.connection import BlockingConnection
from groupmq.errors import GroupMQError

_RETRY, _SOON = 1.0, 0.1
_WORTH_BLOCKING = 1.0


class Heartbeat:
    """Renews leases each `interval` seconds until stopped, and tells which are lost."""

    def __init__(
        self,
        connect: Callable[[], BlockingConnection],
        worker: str,
        interval: float,
        lease_ms: int,
        held: Callable[[], list[tuple[str, int]]],
        info: Callable[[], str],
        lost: Callable[[Sequence[tuple[str, int]]], None],
        tick: Callable[[int], None],
        cancelled: Callable[[Sequence[int]], None],
        logger: Logger,
    ) -> None:
        self._connect = connect
        self._worker = worker
        self._interval = interval
        self._lease_ms = lease_ms
        self._held = held
        self._info = info
        self._lost = lost
        self._tick = tick
        self._cancelled = cancelled
        self.last_beat = time.monotonic()
        self._connection: BlockingConnection | None = None
        self._logger = logger
        self._stop = threading.Event()
        self._beating = threading.Lock()
        self._thread = threading.Thread(target=self._loop, name=f"{worker}-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread: at once if it waits for mail, after its beat if one is under way.

        A beat that was cut off might still arrive, after our goodbye, and say that we are there.
        """
        self._stop.set()
        if self._beating.acquire(blocking=False):
            self.abandon()
            self._beating.release()

    def abandon(self) -> None:
        """End the thread, whatever it does: the server does not answer."""
        self._stop.set()
        if self._connection is not None:
            self._connection.interrupt()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _loop(self) -> None:
        connection = self._connection = self._connect()
        while not self._stop.is_set():
            self._wait(connection, self._interval if self._beat(connection) else min(_RETRY, self._interval))
        connection.close()

    def _wait(self, connection: BlockingConnection, duration: float) -> None:
        """Until the next beat, or until there is mail."""
        end = time.monotonic() + duration
        # Servers end a blocking read up to 100 ms late: a short interval is slept, it is soon over anyway.
        while duration >= _WORTH_BLOCKING and (left := end - time.monotonic()) > 0 and not self._stop.is_set():
            try:
                if connection.wait_for_mail(self._worker, left):
                    return
            except GroupMQError:
                # The next beat tells, and learns what came meanwhile: nobody may be deaf until a long interval ends.
                end = min(end, time.monotonic() + _SOON)
                break
        self._stop.wait(max(0.0, end - time.monotonic()))

    def _beat(self, connection: BlockingConnection) -> bool:
        with self._beating:
            return not self._stop.is_set() and self._say_all(connection)

    def _say_all(self, connection: BlockingConnection) -> bool:
        held = self._held()
        try:
            for at in range(0, max(len(held), 1), commands.CHUNK):
                part = held[at : at + commands.CHUNK]
                beat = connection.call(commands.beat(self._worker, self._info(), self._lease_ms, part), 0.0)
                if beat.lost:
                    self._lost([(job_id, token) for job_id, token in part if job_id in beat.lost])
                if beat.tick_ms >= 0:
                    self._tick(beat.tick_ms)
                if beat.cancelled:
                    self._cancelled(beat.cancelled)
        except GroupMQError as error:
            if self._stop.is_set():
                return False  # interrupted by our own closing
            # Leases run on for a while: try again soon, say so, and leave the rest to the fetcher's reconnecting.
            self._logger.warning("heartbeat of worker %s failed: %s", self._worker, error)
            return False
        self.last_beat = time.monotonic()
        return True
