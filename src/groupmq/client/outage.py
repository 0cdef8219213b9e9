"""What is logged while a server is away: a warning, rare summaries, a line at the end; for workers and listeners."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from groupmq.client.connection.faults import is_passing
from groupmq.core.checks import Logger
from groupmq.core.errors import message_of

_FIRST_SUMMARY, _LONGEST_SILENCE = 10.0, 600.0


class _Outage:
    """Since when calls fail, how often they were tried, and when the next line is due."""

    def __init__(self, task: str, since: float, error: str) -> None:
        self.task = task
        self.since = since
        """When the last answer came; when the caller began, if none has come."""
        self.error = error
        self.failed_at = since
        self.tries = 0
        self.logged = False
        self._tries_of = Counter[str]()
        self._silence = _FIRST_SUMMARY
        self._next_line = 0.0

    def failed(self, now: float, part: str, *, once_is_enough: bool) -> bool:
        """Count a failure, and return whether to log a line."""
        self.tries += 1
        self._tries_of[part] += 1
        self.failed_at = now
        is_one_connection = self._tries_of[part] == 1 and not (once_is_enough or self.logged)
        if now < self._next_line or is_one_connection:
            return False
        if self.logged:
            self._silence = min(2 * self._silence, _LONGEST_SILENCE)
        self._next_line = now + self._silence
        return True


class OutageLog:
    """Decides which failed calls are logged. Thread-safe: the heartbeat of a worker calls from its own thread.

    A server that cannot be reached, or is not ready, is one outage for the whole caller: it begins with the second
    failure in a row, since the first is often a single connection that was dropped, and ends with the first answer to
    any part of the caller. A server that answers but refuses one kind of call is an outage of that kind alone. Callers
    that share a log, such as the consumers of a worker with partitions on one server, pass as `part` the words that
    tell them apart: each has connections that may be dropped, and calls that may be refused.

    `who`, `next_step` and `meanwhile` are texts for the lines: who calls, that it tries again, and what continues while
    the server is away. The last one is logged only if the server has answered before.
    """

    def __init__(
        self,
        who: str,
        next_step: str,
        meanwhile: str,
        logger: Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._who = who
        self._next_step = next_step
        self._meanwhile = meanwhile
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._outages: dict[str, _Outage] = {}
        """By task; `""`: the server is away."""
        self._since = clock()
        self._answered: float | None = None
        self._wakes: list[Callable[[], None]] = []

    def on_return(self, wake: Callable[[], None]) -> None:
        """Call `wake` when the server is back, in the thread that notices it, so that a pausing part tries at once."""
        self._wakes.append(wake)

    def failed(self, task: str, error: BaseException, part: str = "") -> None:
        """Record that a call that was to do `task` has failed and will be made again."""
        text, away = message_of(error).rstrip("."), is_passing(error)
        with self._lock:
            now, answered = self._clock(), self._answered
            since = self._since if answered is None else answered
            key, task = ("", task) if away else (task + part, task + part)
            outage = self._outages.setdefault(key, _Outage(task, since, text))
            if not outage.failed(now, part, once_is_enough=not away):
                return
            first, outage.logged = not outage.logged, True
            length, tries = spent(now - outage.since), outage.tries
        if first:
            if answered is not None:
                state = f"The last answer of the server came {length} ago; {self._next_step}, and {self._meanwhile}"
            elif away:
                state = f"The server has not answered yet; {self._next_step}"
            else:
                state = f"The server has accepted no call yet; {self._next_step}"
            self._logger.warning("%s cannot %s: %s. %s", self._who, outage.task, text, state)
        else:
            self._logger.warning(
                "%s still cannot %s, after %s and %d tries: %s. It keeps trying",
                self._who,
                outage.task,
                length,
                tries,
                text,
            )

    def answered(self, task: str, began: float, part: str = "") -> None:
        """Record that a call that began at `began` and was to do `task` was answered."""
        if not self._outages:
            self._answered = self._clock()
            return
        with self._lock:
            now = self._answered = self._clock()
            over = [
                (key, self._outages.pop(key))
                for key in ("", task + part)
                # An answer to a call sent before the last failure does not mean that the server is back.
                if key in self._outages and began >= self._outages[key].failed_at
            ]
        for key, outage in over:
            if outage.logged:
                what, length = "reaches its server" if key == "" else f"can {key}", spent(now - outage.since)
                self._logger.warning("%s %s again, after %s and %d failed tries", self._who, what, length, outage.tries)
            else:
                self._logger.info("%s has replaced a connection that was lost: %s", self._who, outage.error)
            if key == "":
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
