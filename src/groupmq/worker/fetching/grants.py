"""Jobs that an `add` has granted to this worker while it was idle (`lua/lib/offer.lua`): which of them may start.

Such a job comes over the connection that waits for work. If that reply is lost or late, the answer to the next call
brings the job again, so the two have to be told apart. If the event loop is blocked, the heartbeat thread refuses what
the loop has not received, and the job goes back: it must not start when the loop goes on and finds it.
"""

from __future__ import annotations

import threading
from collections import deque

from groupmq.protocol.commands import Advanced, Granted, Taken

_REMEMBERED = 512
"""Fences that are remembered: more than one answer can bring."""
_RESOLUTION = 0.001
"""Seconds by which a time of the server may be off: the server gives whole milliseconds."""


class Grants:
    """Decides for each granted job, once, whether it may start here."""

    __slots__ = ("_clock", "_lock", "_refusing", "_seen", "_void", "received")

    def __init__(self) -> None:
        self.received = 0
        """Fence of the last granted job that has come over the connection that waits for work; 0 = none."""
        self._seen: deque[int] = deque(maxlen=_REMEMBERED)
        self._refusing = False
        self._void = 0
        self._lock = threading.Lock()
        self._clock = 0.0, 0

    # In the event loop

    def set_clock(self, sent: float, now: int) -> None:
        """A call that was sent at `sent`, by this process's clock, was carried out at `now`, by the server's."""
        self._clock = sent, now

    def lease_end(self, granted: Granted) -> float:
        """When the lease of a granted job ends at the earliest, by this process's clock."""
        sent, now = self._clock
        return sent + (granted.now - now + granted.lease_ms) / 1000 - _RESOLUTION

    def takes(self, fence: int) -> bool:
        """Whether a granted job that has come may start."""
        with self._lock:
            if self._refusing or fence <= self._void or fence in self._seen:
                return False
            self.received = max(self.received, fence)
            self._seen.append(fence)
        return True

    def new_rows(self, answer: Advanced) -> tuple[list[Taken], list[int]]:
        """The jobs of an answer that have not come before, and the lengths of their rows."""
        jobs: list[Taken] = []
        rows: list[int] = []
        at = 0
        for length in answer.rows or [1] * len(answer.jobs):
            new = [job for job in answer.jobs[at : at + length] if job.fence not in self._seen]
            self._seen.extend(job.fence for job in new)
            jobs += new
            if new:
                rows.append(len(new))
            at += length
        return jobs, rows

    # From the heartbeat thread

    def refuse(self, *, blocked: bool) -> int | None:
        """The argument `refuses` of the next beat; None = the loop may take grants. `blocked`: whether the loop is."""
        with self._lock:
            self._refusing = self._refusing or blocked  # until a beat that refuses has been answered
            return self.received if self._refusing else None

    def refused(self, void: int) -> None:
        """The server has taken back the refused grants: none up to this fence may start."""
        with self._lock:
            self._void, self._refusing = max(self._void, void), False
