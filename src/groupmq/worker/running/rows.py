"""The rows of an executor, and how the heartbeat thread takes jobs out of them that have not started.

The event loop takes jobs off the left end of a row and the thread off the right end. Each of these steps is atomic, so
every job goes to exactly one of the two, without a lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from groupmq.client.job import Job
from groupmq.worker.running.reporter import Reporter
from groupmq.worker.running.runs import RunRow


def take_last(row: RunRow, n: int) -> list[Job]:
    """The last `n` of a row that have not started, in their order; fewer if some start meanwhile."""
    taken: list[Job] = []
    with contextlib.suppress(IndexError):
        while len(taken) < n:
            taken.append(row.unstarted.pop())
    return taken[::-1]


class Rows:
    """Rows that have not ended. Their jobs can be withdrawn until they start."""

    __slots__ = ("_rows", "recalled")

    def __init__(self) -> None:
        self._rows: set[RunRow] = set()
        self.recalled: set[int] = set()
        """Fences of jobs to give back. Some are not here yet: the reply that brings them may be on its way."""

    def __bool__(self) -> bool:
        return bool(self._rows)

    def __iter__(self) -> Iterator[RunRow]:
        """A copy, so that rows may end meanwhile."""
        return iter(tuple(self._rows))

    @property
    def unstarted(self) -> int:
        return sum(len(row.unstarted) for row in self._rows)

    def add(self, row: RunRow) -> list[Job]:
        """From now on the jobs of this row can be withdrawn; returns those that were asked for before they came."""
        # Add first, then compare. `withdraw` does it the other way round, so one of the two finds the job.
        self._rows.add(row)
        return self._cut(row, self.recalled) if self.recalled else []

    def discard(self, row: RunRow) -> None:
        self._rows.discard(row)

    # From the heartbeat thread

    def withdraw(self, fences: Sequence[int]) -> list[tuple[Job, Reporter]]:
        """Take back these jobs, and those behind them in their rows, unless they have started.

        Those behind must not start before them. Jobs that are not here yet are given back when they come.
        """
        wanted = self.recalled = set(fences)
        if not wanted:
            return []
        return [(job, row.reporter) for row in self for job in self._cut(row, wanted)]

    def withdraw_all(self) -> list[tuple[Job, Reporter]]:
        """Take back every job that has not started."""
        return [(job, row.reporter) for row in self for job in take_last(row, len(row.unstarted))]

    @staticmethod
    def _cut(row: RunRow, fences: set[int]) -> list[Job]:
        """Take the jobs of a row from the first of these on."""
        waiting = tuple(row.unstarted)
        at = next((at for at, job in enumerate(waiting) if job.fence in fences), len(waiting))
        return take_last(row, len(waiting) - at)
