"""The recurring tasks of a worker, as its log names them, and how long its parts pause while the server is away.

Fetcher, heartbeat and duties of a worker share one OutageLog (client/outage.py). Each of them has a connection and
notices that the server is gone: with a log of their own they would write the same outage many times a second.
"""

from __future__ import annotations

import math
import random

from groupmq.client.outage import OutageLog
from groupmq.core.checks import Logger

TAKE, RENEW, START = "take jobs", "renew its leases", "start"
LONGEST_PAUSE = 20.0
_FIRST_PAUSE, _JITTER = 1.0, 0.25


def outage_log(worker: str, queue: str, logger: Logger) -> OutageLog:
    next_step = "the worker tries again, with pauses of 1 to 20 s"
    return OutageLog(f"worker {worker} of queue {queue}", next_step, "running jobs go on", logger)


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
