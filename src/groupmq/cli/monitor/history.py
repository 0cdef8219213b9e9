"""How the totals moved: rates, from the difference between looks. Bounded, however long the monitor runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from groupmq import JobTotals, QueueSurvey

KEPT = 240
WINDOW = 10.0
"""Seconds over which a rate is averaged: long enough to read it, short enough to show a change."""
RATES = ("added", "completed", "failed", "retried")


class Sample(NamedTuple):
    at: float
    totals: JobTotals


@dataclass(frozen=True, slots=True)
class History:
    """The last looks, oldest first."""

    samples: tuple[Sample, ...] = ()

    def and_then(self, look: QueueSurvey) -> History:
        """The history with one more look."""
        sample = Sample(look.at.timestamp(), look.totals)
        if self.samples:
            last = self.samples[-1]
            if sample.totals.completed < last.totals.completed or sample.at < last.at:
                return History((sample,))  # another queue of that name, or a clock that was set back
            if sample.at == last.at:
                return self
        return History((*self.samples[1 - KEPT :], sample))

    def rate(self, name: str) -> float | None:
        """Per second, over the last seconds; None until there have been two looks."""
        if len(self.samples) < 2:
            return None
        last, first = self.samples[-1], self.samples[-2]
        for sample in reversed(self.samples[:-2]):
            if last.at - sample.at > WINDOW:
                break
            first = sample
        return _per_second(first, last, name)

    def rates(self) -> dict[str, float | None]:
        found = {name: self.rate(name) for name in RATES}
        return {name: None if rate is None else round(rate, 3) for name, rate in found.items()}

    def steps(self, name: str) -> list[float]:
        """The rate from each look to the next, oldest first."""
        pairs = zip(self.samples, self.samples[1:], strict=False)
        return [_per_second(before, after, name) for before, after in pairs]


def _per_second(before: Sample, after: Sample, name: str) -> float:
    change: int = getattr(after.totals, name) - getattr(before.totals, name)
    return max(0, change) / (after.at - before.at)
