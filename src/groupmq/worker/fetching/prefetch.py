"""How many jobs to take before there are slots for them: pure decisions, no I/O."""

from __future__ import annotations

from typing import Literal

SHORT = 0.001
"""Seconds. Handlers that take longer gain nothing from prefetched jobs."""
_INSTANT = 0.0002
"""Seconds. A task for each handler that takes less would take longer than the handler."""
_ROW_LASTS = 0.005
"""Seconds that a row may take: other groups, and other workers, may have to wait that long for it."""
_LONGEST_ROW, _GOOD_ROW = 64, 32
"""The most jobs in a row: where few slots are free, and where many are."""
_PER_CALL, _MOST_PER_CALL, _MOST = 240, 360, 1000
"""Jobs that one call brings, as expected and at most (it takes the server some milliseconds), and jobs that a worker
holds unstarted."""
_ENOUGH = 100
"""Unstarted jobs: with so many, a call can wait until there is more to report."""
_RESERVE, _OVERHEAD = 80, 6e-5
"""Jobs that a call brings if each is of another group, or of none, and the least seconds that one of them takes,
including the work around its handler."""
_UP, _DOWN = 0.15, 0.07
"""Weights of a new sample in the typical duration: one long run counts at once, short runs only when there are many."""
_LENGTH_SMOOTHING = 0.5
"""Weight of the newest sample in the moving average of jobs per row."""


class Prefetch:
    """Learns how long handlers take and how many jobs of a group come together, and plans the next call accordingly."""

    __slots__ = ("_length", "_most", "typical")

    def __init__(self, prefetch: Literal["auto"] | int) -> None:
        self._most = _MOST if prefetch == "auto" else prefetch
        self._length = 1.0
        """Moving average of jobs per row."""
        self.typical = 1.0
        """Typical seconds of a handler; assumed to be long until runs have been seen."""

    def saw(self, duration: float) -> None:
        """Record that a handler took this many seconds."""
        self.typical += (duration - self.typical) * (_UP if duration > self.typical else _DOWN)

    @property
    def shares_tasks(self) -> bool:
        """Whether handlers take so little time that they do not get a task each."""
        return self.typical <= _INSTANT and self._most > 0

    def took(self, jobs: int, rows: int) -> None:
        """Record that a call brought this many jobs, in this many rows."""
        self._length += (jobs / rows - self._length) * _LENGTH_SMOOTHING

    def plan(self, room: int, in_hand: int, prefetched: int, *, reports: bool) -> tuple[int, int]:
        """How many rows to ask for, at most `room`, and how many jobs each may hold.

        `in_hand`: rows that the same requester has taken and that have not ended. `prefetched`: jobs of all requesters
        that have not started, or are to come. `reports`: the call is made in any case.
        """
        if room < 1 or self.typical > SHORT or not self._most:
            return room, 1
        take = max(1, int(_PER_CALL / self._length))
        if in_hand and prefetched >= _ENOUGH:
            # One call brings enough. More jobs would only wait here, and the next call would have less to report.
            take = take - in_hand if reports and not self.end_together(in_hand, prefetched) else 0
        take = min(take, room)
        if take < 1:
            return 0, 1
        row = min(_LONGEST_ROW, int(_ROW_LASTS / max(self.typical, 1e-6)), max(_GOOD_ROW, _PER_CALL // room))
        free = min(self._most - prefetched, _MOST_PER_CALL - take)
        return take, max(1, min(row, 1 + free // take))

    def end_together(self, in_hand: int, prefetched: int) -> bool:
        """Whether the rows that a requester has brought end at almost the same time, and enough other jobs are here.

        Their handlers are instant, so the event loop runs all rows at once, unless it has other work in between. If the
        requester replaced only the rows that have ended by then, all its further calls would be as small as that.
        """
        return self.shares_tasks and in_hand > 0 and prefetched >= _ENOUGH

    def fill(self, take: int, slots: int, prefetched: int) -> int:
        """How many jobs a call for `take` rows is to bring in total, including the reserve; 0 = no reserve.

        The reserve is small enough for the slots to run all jobs that are prefetched within some milliseconds.
        """
        if take < 1 or self.typical > SHORT or not self._most:
            return 0
        work = slots * int(_ROW_LASTS / max(self.typical, _OVERHEAD))
        fill = min(_RESERVE, take + min(work, self._most) - prefetched)
        return fill if fill > take * self._length else 0
