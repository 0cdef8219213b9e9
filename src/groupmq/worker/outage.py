"""What a worker logs while its server is away, and how long it pauses: a warning, rare summaries, a line at the end.

Fetcher, heartbeat and duties of a worker share one OutageLog. Each of them has a connection and notices that the server
is gone: with a log of their own they would write the same outage many times a second.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable

from groupmq.client.connection.faults import is_passing
from groupmq.core.checks import Logger
from groupmq.core.errors import message_of

TAKE, RENEW, START = "take jobs", "renew its leases", "start"
CLEAN_UP, FORGET = "clean up", "clean up after dead workers"
RECOVER, REPEAT, PROMOTE = "look for stalled jobs", "add repeating jobs", "start delayed jobs"
LONGEST_PAUSE = 20.0
_FIRST_PAUSE, _JITTER = 1.0, 0.25
_FIRST_SUMMARY, _LONGEST_SILENCE = 10.0, 600.0


class Pauses:
    """Seconds between two tries: they grow from 1 to 20, with jitter, so that workers do not come back all at once."""

    def __init__(self) -> None:
        self._least = _FIRST_PAUSE
        self.tries = 0

    def next(self, most: float = math.inf) -> float:
        """The next pause, `most` if that is shorter."""
        self.tries += 1
        if most < self._least:
            return most
        least, longest = self._least, LONGEST_PAUSE / (1 + _JITTER)
        self._least = min(2 * least, longest)
        return min(most, least * (1 + _JITTER * random.random()))  # noqa: S311

    def reset(self) -> None:
        self._least, self.tries = _FIRST_PAUSE, 0


class _Outage:
    """Since when calls fail, how often they were tried, and when the next line is due."""

    def __init__(self, task: str, since: float, error: str) -> None:
        self.task = task
        self.since = since
        self.error = error
        self.failed_at = since
        self.tries = 0
        self.logged = False
        self._silence = _FIRST_SUMMARY
        self._next_line = 0.0

    def failed(self, now: float, *, once_is_enough: bool) -> bool:
        """Whether to log something."""
        self.tries += 1
        self.failed_at = now
        if now < self._next_line or (self.tries == 1 and not once_is_enough):
            return False
        if self.logged:
            self._silence = min(2 * self._silence, _LONGEST_SILENCE)
        self._next_line = now + self._silence
        return True


class OutageLog:
    """Decides which failed calls of a worker are logged. Thread-safe: the heartbeat calls from its own thread.

    A server that cannot be reached, or is not ready, is one outage for the whole worker: it begins with the second
    failure in a row, since the first is often a single connection that was dropped, and ends with the first answer to
    any part of the worker. A server that answers but refuses one kind of call is an outage of that part alone.
    """

    def __init__(self, worker: str, queue: str, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._who = f"worker {worker} of queue {queue}"
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._outages: dict[str, _Outage] = {}
        """By task; `""`: the server is away."""
        self._answered = clock()
        self._wakes: list[Callable[[], None]] = []

    def on_return(self, wake: Callable[[], None]) -> None:
        """Call `wake`, in the thread that notices it, when the server is back: a part that pauses may try at once."""
        self._wakes.append(wake)

    def failed(self, task: str, error: BaseException) -> None:
        """A call that was to do `task` has failed and is going to be made again."""
        text, away = message_of(error).rstrip("."), is_passing(error)
        with self._lock:
            now = self._clock()
            outage = self._outages.setdefault("" if away else task, _Outage(task, self._answered, text))
            if not outage.failed(now, once_is_enough=not away):
                return
            first, outage.logged = not outage.logged, True
            length, tries = spent(now - outage.since), outage.tries
        if first:
            self._logger.warning(
                "%s cannot %s: %s. The last answer of the server came %s ago; the worker tries again, with pauses of 1 "
                "to 20 s, and running jobs go on",
                self._who,
                outage.task,
                text,
                length,
            )
        else:
            self._logger.warning(
                "%s still cannot %s, after %s and %d tries: %s. It goes on trying",
                self._who,
                outage.task,
                length,
                tries,
                text,
            )

    def answered(self, task: str, began: float) -> None:
        """A call that began at `began` and was to do `task` was answered."""
        if not self._outages:
            self._answered = self._clock()
            return
        with self._lock:
            now = self._answered = self._clock()
            over = [
                (part, self._outages.pop(part))
                for part in ("", task)
                # An answer to a call sent before the last failure does not mean that the server is back.
                if part in self._outages and began >= self._outages[part].failed_at
            ]
        for part, outage in over:
            if outage.logged:
                what, length = "reaches its server" if part == "" else f"can {task}", spent(now - outage.since)
                self._logger.warning("%s %s again, after %s and %d failed tries", self._who, what, length, outage.tries)
            else:
                self._logger.info("%s has replaced a connection that was lost: %s", self._who, outage.error)
            if part == "":
                for wake in self._wakes:
                    wake()


def spent(seconds: float) -> str:
    """A length of time for people to read."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
