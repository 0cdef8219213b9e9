"""The heartbeat: one thread with its own connection renews all leases of a worker.

It is a thread so that a handler that blocks the event loop does not lose its lease. Between two beats it blocks on the
worker's mailbox on the server, so that a cancellation reaches a busy worker at once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from groupmq.core.errors import GroupMQError
from groupmq.protocol import commands
from groupmq.protocol.commands import Beat
from groupmq.sync.connection.mail import MailConnection
from groupmq.worker.fetching.unseen import UnseenCall
from groupmq.worker.live_settings import LiveSettings
from groupmq.worker.outage import RENEW, Pauses
from groupmq.worker.reachability import Reachability
from groupmq.worker.running.outcome import RunReport

_SOON = 0.1
_LATE, _LEAST = 0.1, 0.02
"""Seconds by which a server may end a blocking read late, and the shortest such read that is worth its round trip."""
_LONG = 1.0
"""With at least this many seconds between beats, it does not matter if a beat is that late."""
_MOST_ROUNDS = 10
"""At most this many beats follow each other at once; outcomes that are left then wait for the next interval."""


class HeartbeatListener(Protocol):
    """The listener of the heartbeat. Every method is called from the heartbeat's thread."""

    def leases(self) -> list[tuple[str, int]]:
        """Every lease to renew, (id, fence)."""

    def outcomes(self) -> list[RunReport]:
        """The outcomes that the next beat reports, at most as many as one call may hold."""

    def delivered(self, reports: Sequence[RunReport], accepted: Sequence[int]) -> None:
        """The server has answered these reports."""

    def received(self, beat: Beat, leases: Sequence[tuple[str, int]], unseen: UnseenCall | None) -> bool:
        """The server has answered a beat that renewed these leases and named this call; True if another beat must
        follow at once."""

    def refuses(self) -> int | None:
        """If the event loop is blocked: the fence of the last granted job that it has received."""

    def unseen(self) -> UnseenCall | None:
        """If the event loop is blocked: a call whose answer it has not seen."""

    def presence(self) -> str:
        """What `get_workers` shows of this worker. Asks the event loop for a sign of life."""


class HeartbeatSetup(NamedTuple):
    """The worker that the beats belong to, and its settings, among them the interval between beats."""

    worker: str
    live: LiveSettings


class Heartbeat:
    """Renews leases, several times within their length, until stopped."""

    def __init__(
        self,
        connect: Callable[[], MailConnection],
        setup: HeartbeatSetup,
        listener: HeartbeatListener,
        reachability: Reachability,
    ) -> None:
        self._connect = connect
        self._setup = setup
        self._listener = listener
        self._reachability = reachability
        self.last_beat = time.monotonic()
        self._connection: MailConnection | None = None
        self._pauses = Pauses()
        self._stop = threading.Event()
        self._hurried = threading.Event()
        """Ends the wait for mail, and the pause after a beat that failed."""
        self._beating = threading.Lock()
        self._beginning = threading.Lock()
        self._thread = threading.Thread(target=self._loop, name=f"{setup.worker}-heartbeat", daemon=True)

    @property
    def begun(self) -> bool:
        return self._thread.ident is not None

    @property
    def _interval(self) -> float:
        return self._setup.live.now().heartbeat

    def start(self) -> None:
        with self._beginning:
            if not self.begun:
                self._thread.start()

    def hurry(self) -> None:
        """Beat now instead of when the next beat is due. Called from another thread."""
        self._hurried.set()
        self._wake()

    def stop(self) -> None:
        """End the thread: at once if it waits for mail, after its beat if one is under way.

        An interrupted beat could still reach the server after the worker has deregistered, and register it again.
        """
        self._stop.set()
        self._hurried.set()
        self._wake()

    def _wake(self) -> None:
        """End the wait for mail; a beat that is under way goes on."""
        if self._beating.acquire(blocking=False):
            if self._connection is not None:
                self._connection.interrupt()
            self._beating.release()

    def abandon(self) -> None:
        """End the thread even during a beat: the server does not answer."""
        self._stop.set()
        self._hurried.set()
        if self._connection is not None:
            self._connection.interrupt()

    def join(self, timeout: float) -> None:
        if self.begun:
            self._thread.join(timeout)

    def _loop(self) -> None:
        connection = self._connection = self._connect()
        while not self._stop.is_set():
            self._hurried.clear()
            if self._beat(connection):
                self._pauses.reset()
                self._wait(connection, self._interval)
            elif not self._stop.is_set():
                self._wait_to_retry(self._pause())
        connection.close()

    def retry_now(self) -> None:
        """The server is back: renew the leases before they expire."""
        self._hurried.set()

    def _wait_to_retry(self, pause: float) -> None:
        """Pause until the next try, and meanwhile check the event loop as often as with a server."""
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0 and not self._hurried.wait(min(left, self._interval)):
            self._listener.presence()

    def _pause(self) -> float:
        """Seconds until the next try. Several tries must fit in while the leases can still be saved."""
        left = self.last_beat + self._setup.live.now().lease_ms / 1000 - time.monotonic()
        return self._pauses.next(max(self._interval, left / 3) if left > 0 else math.inf)

    def _wait(self, connection: MailConnection, duration: float) -> None:
        """Wait until the next beat is due, or until there is mail."""
        end = time.monotonic() + duration
        # The last part of a short interval is slept, because the read may end that late.
        early = 0.0 if duration >= _LONG else _LATE
        while (left := end - early - time.monotonic()) > _LEAST and not self._hurried.is_set():
            try:
                if connection.wait_for_mail(self._setup.worker, left):
                    return
            except GroupMQError:
                # The next beat reports the error and fetches the mail, so it must not wait for a long interval to end.
                end = min(end, time.monotonic() + _SOON)
                break
        self._hurried.wait(max(0.0, end - time.monotonic()))

    def _beat(self, connection: MailConnection) -> bool:
        with self._beating:
            for _ in range(_MOST_ROUNDS):
                if self._stop.is_set():
                    return False
                began = time.monotonic()
                try:
                    again = self._renew(connection)
                except GroupMQError as error:
                    if not self._stop.is_set():  # otherwise closing has interrupted it
                        self._reachability.failed(RENEW, error)
                    return False
                self.last_beat = time.monotonic()
                self._reachability.answered(RENEW, began)
                if not again:
                    break
            return True

    def _renew(self, connection: MailConnection) -> bool:
        """Renew every lease and report the outcomes that wait for it; True if another beat must follow at once."""
        setup, listener = self._setup, self._listener
        reports, leases = listener.outcomes(), listener.leases()
        again = False
        for at in range(0, max(len(leases), 1), commands.CHUNK):
            part = leases[at : at + commands.CHUNK]
            outcomes = [report.outcome for report in reports] if at == 0 else []
            now = setup.live.now()
            presence, keep, unseen = listener.presence(), now.policy.keep, listener.unseen()
            call = commands.beat(
                setup.worker,
                presence,
                now.lease_ms,
                part,
                outcomes=outcomes,
                keep=keep,
                refuses=listener.refuses(),
                unseen=unseen,
            )
            beat = connection.call(call, 0.0)
            if outcomes:
                listener.delivered(reports, beat.accepted)
            again = listener.received(beat, part, unseen) or again
        return again
