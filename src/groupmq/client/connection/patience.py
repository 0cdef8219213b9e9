"""How long a call is tried again while its server is away, and how fast. No I/O."""

from __future__ import annotations

import random
import time

from groupmq.client.connection.faults import is_passing

PATIENCE = 3.0
"""Seconds for which a producer's call is tried again while the server restarts or fails over; then it raises."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Patience:
    """How long a call is tried again while the server cannot be reached, with growing pauses."""

    __slots__ = ("_end", "_pause")

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._pause = _FIRST_PAUSE

    def pause_after(self, error: BaseException) -> float | None:
        """Seconds before the next try; None if the time is up, or if waiting does not help against this error."""
        left = self._end - time.monotonic()
        if left <= 0 or not is_passing(error):
            return None
        pause = min(left, self._pause * (0.5 + random.random()))  # noqa: S311
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return pause
