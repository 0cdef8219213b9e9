"""How many jobs to take ahead: pure decisions, no I/O."""

from __future__ import annotations

from typing import Literal

SHORT = 0.001
"""Seconds. Handlers that take longer gain nothing from jobs that are there already."""
_ROW_LASTS = 0.005
"""Seconds that a row of jobs may take: so long other groups, and other workers, may have to wait for it."""
_LONGEST_ROW, _MOST_PER_CALL, _MOST = 64, 400, 800
"""Jobs: behind each other, of a call (it takes the server some milliseconds), and ahead in a worker."""
_UP, _DOWN = 0.5, 0.05
"""A single long run is believed at once, short ones only when there are many."""


class Pace:
    """Knows how long handlers take, and how many jobs of a group are worth taking together."""

    __slots__ = ("_most", "typical")

    def __init__(self, prefetch: Literal["auto"] | int) -> None:
        self._most = _MOST if prefetch == "auto" else prefetch
        self.typical = 1.0
        """Seconds; before anything is known, long."""

    def saw(self, duration: float) -> None:
        """A handler took that long."""
        self.typical += (duration - self.typical) * (_UP if duration > self.typical else _DOWN)

    def row(self, take: int, ahead: int) -> int:
        """For each of the `take` jobs asked for: how many may come together. `ahead` are here and have not started."""
        if take < 1 or self.typical > SHORT:
            return 1
        room = min(self._most - ahead, _MOST_PER_CALL - take)
        return max(1, min(_LONGEST_ROW, int(_ROW_LASTS / max(self.typical, 1e-6)), 1 + room // take))
