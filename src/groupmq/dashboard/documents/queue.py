"""The page `queue`: throughput, waits, runs and failures over time, with deploy marks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from groupmq.dashboard.documents.choice import Choice, choices
from groupmq.dashboard.documents.page import Page
from groupmq.dashboard.documents.queue_row import QueueRow
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.documents.settings import Setting, setting_rows
from groupmq.dashboard.documents.view import View

if TYPE_CHECKING:
    from groupmq import Histogram, MinuteStats

RANGES = {"hour": (60, 1), "day": (24 * 60, 5), "weeks": (14 * 24 * 60, 60)}
"""Minutes in all, and per point."""
LIMITS = (
    "rate_limit group_rate_limit group_concurrency exclusive max_attempts backoff on_retry on_failed keep_failed"
).split()
LABELS = {"hour": "Last hour", "day": "Last day", "weeks": "Two weeks"}


@record
class OverviewQuery:
    queue: str
    range: Literal["hour", "day", "weeks"] = "hour"


@record
class Series:
    """Columns of one length, oldest first; the last point is under way."""

    at: list[int]
    """Epoch seconds."""
    completed: list[int]
    failed: list[int]
    retried: list[int]
    stalled: list[int]
    wait_p50: list[float | None]
    wait_p95: list[float | None]
    run_p50: list[float | None]
    run_p95: list[float | None]


@record
class MarkRow:
    at: datetime
    label: str


@record
class Totals:
    completed: int
    failed: int
    retried: int
    stalled: int
    rate_limited: int


@record
class Quantiles:
    """Seconds; None if nothing was measured."""

    p50: float | None
    p95: float | None
    mean: float | None
    count: int


@record
class QueuePage:
    queue: QueueRow
    range: str
    ranges: list[Choice]
    step: int
    """Minutes per point."""
    series: Series
    marks: list[MarkRow]
    totals: Totals
    wait: Quantiles
    run: Quantiles
    limits: list[Setting]
    """The settings that limit the whole queue, and how its jobs are retried and kept."""


async def build(view: View, query: OverviewQuery) -> QueuePage:
    minutes, step = RANGES[query.range]
    row, settings, metrics, marks = await asyncio.gather(
        view.row(),
        view.queue.get_settings(),
        view.queue.get_metrics(minutes, step=step, look=1),
        view.queue.get_marks(since=view.now - timedelta(minutes=minutes)),
    )
    spans = metrics.series
    return QueuePage(
        queue=row,
        range=query.range,
        ranges=choices(LABELS, query.range),
        step=step,
        series=series(spans),
        marks=[MarkRow(at=mark.at, label=mark.label) for mark in marks],
        totals=totals(spans),
        wait=quantiles([span.wait for span in spans]),
        run=quantiles([span.run for span in spans]),
        limits=setting_rows(settings, LIMITS),
    )


def series(spans: Sequence[MinuteStats]) -> Series:
    return Series(
        at=[round(span.at.timestamp()) for span in spans],
        completed=[span.completed for span in spans],
        failed=[span.failed for span in spans],
        retried=[span.retried for span in spans],
        stalled=[span.stalled for span in spans],
        wait_p50=[quantile(span.wait, 0.5) for span in spans],
        wait_p95=[quantile(span.wait, 0.95) for span in spans],
        run_p50=[quantile(span.run, 0.5) for span in spans],
        run_p95=[quantile(span.run, 0.95) for span in spans],
    )


def totals(spans: Sequence[MinuteStats]) -> Totals:
    return Totals(
        completed=sum(span.completed for span in spans),
        failed=sum(span.failed for span in spans),
        retried=sum(span.retried for span in spans),
        stalled=sum(span.stalled for span in spans),
        rate_limited=sum(span.rate_limited for span in spans),
    )


def quantile(histogram: Histogram, q: float) -> float | None:
    """An upper bound in seconds. The last bucket has none: then its lower bound, which the quantile exceeds."""
    if not histogram.count:
        return None
    found: float = histogram.quantile(q)
    return found if math.isfinite(found) else max(bound for bound in histogram.bounds if math.isfinite(bound))


def quantiles(histograms: Sequence[Histogram]) -> Quantiles:
    """The quantiles over all spans together."""
    measured = [one for one in histograms if one.count]
    if not measured:
        return Quantiles(p50=None, p95=None, mean=None, count=0)
    first = measured[0]
    buckets = tuple(sum(column) for column in zip(*(one.buckets for one in measured), strict=True))
    whole = type(first)(first.bounds, buckets, sum(one.sum for one in measured))
    return Quantiles(p50=quantile(whole, 0.5), p95=quantile(whole, 0.95), mean=whole.mean, count=whole.count)


PAGE = Page("queue", "Overview", OverviewQuery, QueuePage, build, "Throughput, waits, runs and failures over time.")
