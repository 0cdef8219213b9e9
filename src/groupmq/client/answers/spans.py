"""Sums of minutes: spans of any length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from groupmq.core.views import Histogram, MinuteStats
from groupmq.protocol.commands import BUCKETS, DROPPED, LARGEST_BUCKET, Minute

BOUNDS = (*(2**i / 1000 for i in range(LARGEST_BUCKET)), math.inf)
"""Upper bounds of the histograms, seconds."""


def minutes_needed(last: int, minutes: int, step: int) -> int:
    """How many minutes up to `last` make up the spans of `step` minutes that `minutes` reach back.

    Spans begin at multiples of `step` since 1970, at full hours for 60: the last one is under way, and the others stay
    the same from one call to the next.
    """
    count = -(-minutes // step)
    return last - (last // step - count + 1) * step + 1 if count else 0


def spans(last: int, minutes: Sequence[Minute], step: int) -> list[MinuteStats]:
    """Sum up the minutes up to `last`, as many as `minutes_needed` returns, to spans of `step` each, oldest first."""
    first = last - len(minutes) + 1
    return [
        span(first + i, minutes[i : i + step], step if i + step <= len(minutes) else len(minutes) - i)
        for i in range(0, len(minutes), step)
    ]


def span(first: int, minutes: Sequence[Minute], length: int) -> MinuteStats:
    """Sum up minutes to one span, which begins at the minute `first`."""
    sums = [sum(column) for column in zip(*(minute[:8] for minute in minutes), strict=True)]
    completed, failed, retried, stalled, rate_limited, started, waited_ms, ran_ms = sums
    buckets = [0] * (DROPPED + 1)
    for minute in minutes:
        for bucket, n in minute.spread.items():
            if 0 <= bucket <= DROPPED:
                buckets[bucket] += n
    runs = completed + failed + retried
    return MinuteStats(
        datetime.fromtimestamp(first * 60, UTC),
        completed,
        failed,
        retried,
        stalled,
        rate_limited,
        started,
        mean_wait=waited_ms / 1000 / started if started else 0.0,
        mean_run=ran_ms / 1000 / runs if runs else 0.0,
        wait=Histogram(BOUNDS, tuple(buckets[:BUCKETS]), waited_ms / 1000),
        run=Histogram(BOUNDS, tuple(buckets[BUCKETS:DROPPED]), ran_ms / 1000),
        retention_dropped=buckets[DROPPED],
        minutes=length,
    )
