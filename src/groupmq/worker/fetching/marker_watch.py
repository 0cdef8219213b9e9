"""When a worker watches the marker, and what the end of each wait means: one state machine, no I/O.

A worker watches it while it has a free slot and nothing is ready. The fetcher blocks on the marker while `is_on`, says
how each wait has ended, and carries out the decision. To ask for work means a call that does not wait for outcomes to
send along; `Demand` decides what it asks for.
"""

from __future__ import annotations

from typing import Literal

from groupmq.worker.fetching.demand import Demand, FreeSlots
from groupmq.worker.outage import Pauses

_FIRST_PAUSE = 0.1
"""Seconds of the pause after the first of several failures: usually a single connection was dropped."""


class MarkerWatch:
    """Whether one worker watches the marker, and what it does when a wait is over."""

    def __init__(self, demand: Demand, waits_until_asked: int = 1) -> None:
        """`waits_until_asked`: after so many waits in a row without a marker, ask for work all the same."""
        self._demand = demand
        self._waits_until_asked = waits_until_asked
        self._is_wanted = False
        self._silent = 0
        """Waits in a row that timed out."""
        self._pauses = Pauses()
        self._failing = False

    @property
    def is_on(self) -> bool:
        """Whether to block on the marker now."""
        return self._is_wanted and self._demand.takes_jobs

    def begin(self) -> None:
        """An answer said that nothing is ready, and there are free slots."""
        self._is_wanted = True

    def popped(self, slots: FreeSlots) -> Literal["ask", "pass on"]:
        """A marker came. If this worker is busy or closing by now, or its turn may be over, another one gets it.

        Then a slot may still become free soon, of those that are shared: so this worker asks with its next call.
        """
        is_used = self._demand.uses_hint(slots)
        self._ask()
        if not is_used:
            return "pass on"
        self._recovered()
        self._silent = 0
        return "ask"

    def timed_out(self) -> Literal["ask", "go on"]:
        """No marker came. It may have been popped by a worker that died, so that nobody will act on it."""
        self._recovered()
        self._silent += 1
        if self._silent % self._waits_until_asked:
            return "go on"
        self._ask()
        return "ask"

    def failed(self) -> float:
        """The connection was lost, with a marker or a granted job perhaps: ask, over another one.

        Returns the pause in seconds before the next wait.
        """
        self._ask()
        pause = self._pauses.next() if self._failing else _FIRST_PAUSE
        self._failing = True
        return pause

    def granted(self, slots: FreeSlots) -> None:
        """A job that an add has granted to this worker came. It needs no call; watch on if a slot is left."""
        self._recovered()
        if not self._demand.uses_hint(slots):
            self._is_wanted = False

    def damaged(self) -> None:
        """A granted job came that cannot be read: ask, since the server sends a job again that did not arrive."""
        self._recovered()
        self._ask()

    def _ask(self) -> None:
        """Watch again only when an answer has said that nothing is ready."""
        self._is_wanted = False
        self._demand.hint()

    def _recovered(self) -> None:
        self._failing = False
        self._pauses.reset()
