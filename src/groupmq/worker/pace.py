"""How many jobs to take at a time: pure decisions, no I/O."""

from __future__ import annotations

from typing import Literal

SHORT = 0.001
"""Seconds. Handlers that take longer gain nothing from jobs that are there already."""
_ROW_LASTS = 0.005
"""Seconds that a row of jobs may take: so long other groups, and other workers, may have to wait for it."""
_LONGEST_ROW, _GOOD_ROW = 64, 16
"""Jobs behind each other: for few slots, and for many."""
_PER_CALL, _MOST_PER_CALL, _MOST = 250, 500, 1000
"""Jobs of a call, as expected and at the very most (it takes the server some milliseconds), and ahead in a worker."""
_ENOUGH = 100
"""Jobs that have not started: as long as there are so many, nobody is in a hurry."""
_UP, _DOWN = 0.15, 0.07
"""A single run of some milliseconds is believed at once, short ones only when there are many."""
_NEWS = 0.5
"""How much the last rows say about the next ones."""


class Pace:
    """Knows how long handlers take, and how many jobs of a group come together."""

    __slots__ = ("_length", "_most", "typical")

    def __init__(self, prefetch: Literal["auto"] | int) -> None:
        self._most = _MOST if prefetch == "auto" else prefetch
        self._length = 1.0
        """Of a row, as they come."""
        self.typical = 1.0
        """Seconds of a handler; before anything is known, long."""

    def saw(self, duration: float) -> None:
        """A handler took that long."""
        self.typical += (duration - self.typical) * (_UP if duration > self.typical else _DOWN)

    def took(self, jobs: int, rows: int) -> None:
        """So many came, in so many rows."""
        self._length += (jobs / rows - self._length) * _NEWS

    def plan(self, room: int, in_hand: int, ahead: int, *, reports: bool) -> tuple[int, int]:
        """How many jobs to ask for, where there is room for some, and how many may come together for each.

        `in_hand`: rows that the same lane has brought and that have not ended. `ahead`: jobs of all lanes that have not
        started, or are to come. `reports`: the call is made anyway.
        """
        if room < 1 or self.typical > SHORT or not self._most:
            return room, 1
        take = max(1, int(_PER_CALL / self._length))
        if in_hand and ahead >= _ENOUGH:
            # One call's worth is enough. More would wait here, and the next call would have nothing to report.
            take = take - in_hand if reports else 0
        take = min(take, room)
        if take < 1:
            return 0, 1
        row = min(_LONGEST_ROW, int(_ROW_LASTS / max(self.typical, 1e-6)), max(_GOOD_ROW, _PER_CALL // room))
        free = min(self._most - ahead, _MOST_PER_CALL - take)
        return take, max(1, min(row, 1 + free // take))
