"""Which runs belong to one batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.chaos.checker.parts import Run

BATCHED = ("bulk",)
"""Queues whose handlers get several jobs of a group at once."""


class Beginnings:
    """When the handler of each run was called. That of a batch is called once and goes from job to job."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._first: dict[tuple[str | None, str | None, int], float] = {}
        for run in runs:
            if run.q in BATCHED:
                key = run.worker, run.group, run.at
                self._first[key] = min(run.start, self._first.get(key, math.inf))

    def of(self, run: Run) -> float:
        if run.q not in BATCHED:
            return run.start
        return min(self._first.get((run.worker, run.group, run.at + ms), math.inf) for ms in (-1, 0, 1))


def same_batch(one: Run, other: Run) -> bool:
    """Whether two runs may belong to one batch: one call granted both, so at most one millisecond apart."""
    return one.q in BATCHED and one.q == other.q and one.worker == other.worker and abs(one.at - other.at) <= 1
