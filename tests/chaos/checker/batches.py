"""Which runs belong to one batch."""

from __future__ import annotations

from tests.chaos.checker.parts import Run

BATCHED = ("bulk",)
"""Queues whose handlers get several jobs of a group at once."""


def same_batch(one: Run, other: Run) -> bool:
    """Whether two runs may belong to one batch: one call granted both, so at most one millisecond apart."""
    return one.q in BATCHED and one.q == other.q and one.worker == other.worker and abs(one.at - other.at) <= 1
