"""The distribution of values."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence


def spread(values: Collection[float]) -> dict[str, float]:
    """The figures of `bench.grids.DISTRIBUTION`."""
    if not values:
        raise ValueError("nothing was measured")
    ranked = sorted(values)
    return {
        "p50": percentile(ranked, 50),
        "p99": percentile(ranked, 99),
        "max": ranked[-1],
        "mean": statistics.fmean(ranked),
    }


def percentile(ranked: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` of the values do not exceed."""
    return ranked[-(-len(ranked) * percent // 100) - 1]
