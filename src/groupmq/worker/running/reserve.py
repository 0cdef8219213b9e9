"""The reserve of a worker: rows that were taken while no slot was free for them, and that start when one
becomes free.

Each row holds the next job of another group, with those of its group that may follow, or one job without a group. Rows
start in the order in which they came. The event loop takes rows off the left end. The heartbeat thread empties rows and
leaves them where they are, so that the two need no lock (rows.py).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from groupmq.client.job import Job
from groupmq.worker.running.reporter import Reporter
from groupmq.worker.running.rows import take_last
from groupmq.worker.running.runs import JobRun, RunRow


class Reserve:
    """Rows that wait for a slot. `claim` takes the next job of a row to run it; `ended` is called if none is to run."""

    __slots__ = ("_claim", "_ended", "_lasts", "_rows", "_wanted")

    def __init__(
        self, claim: Callable[[RunRow, float], JobRun | None], ended: Callable[[RunRow], None], lasts: float
    ) -> None:
        """`lasts`: seconds after which nothing of a row is started any more."""
        self._claim = claim
        self._ended = ended
        self._lasts = lasts
        self._rows: deque[RunRow] = deque()
        self._wanted = 0

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add(self, row: RunRow) -> None:
        self._rows.append(row)

    def is_wanted(self, row: RunRow) -> bool:
        """Whether another worker asked for this row before it came here: it must not start here."""
        return row.fence <= self._wanted

    def next(self) -> JobRun | None:
        """The next run to start; None if there is none, or none that may start any more."""
        now = time.monotonic()
        while self._rows:
            row = self._rows.popleft()
            run = self._claim(row, now) if now - row.came_at < self._lasts else None
            if run is not None:
                return run
            self._ended(row)
        return None

    def end(self, before: float) -> None:
        """Give back rows that came before this time, and forget rows that were withdrawn completely."""
        for row in [row for row in self._rows if row.came_at <= before or not row.unstarted]:
            self._rows.remove(row)
            self._ended(row)

    # From the heartbeat thread

    def withdraw(self, fence: int) -> list[tuple[Job, Reporter]]:
        """Take back what was taken under fences up to this one, with the reporters. For later rows: `is_wanted`."""
        self._wanted = max(self._wanted, fence)
        rows = [row for row in tuple(self._rows) if row.fence <= fence]
        return [(job, row.reporter) for row in rows for job in take_last(row, len(row.unstarted))]
