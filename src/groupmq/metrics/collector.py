"""Queues as Prometheus sees them: read when it asks, never labelled by group (there may be millions)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from groupmq import HELD_REASONS, GroupMQError, Histogram, JobCounts, Metrics, QueueNotFound, WorkerInfo
from groupmq.sync import Queue

_logger = logging.getLogger("groupmq.metrics")
_AT_ONCE = 8

GAUGES = {
    "groupmq_up": "1 if the queue's server answered; otherwise 0, and no other series is exported",
    "groupmq_jobs": "Jobs by state; completed and failed are those still kept",
    "groupmq_groups": "Groups that have a live job",
    "groupmq_groups_ready": "Groups that may start a job now",
    "groupmq_groups_parked": "Groups whose next job has to wait: for a back-off, a window or a rate limit",
    "groupmq_groups_due": "The same as groupmq_groups_parked, which replaces it",
    "groupmq_groups_paused": "Groups that an operator has paused",
    "groupmq_groups_blocked": "Groups blocked by a failed job until it is retried, skipped or removed (on_failed=hold)",
    "groupmq_longest_blocked_seconds": "How long the group that was blocked first has been blocked; 0 if none is",
    "groupmq_breakers_open": "Groups whose breaker is open: their attempts fail in a row, and they rest",
    "groupmq_longest_breaker_open_seconds": "How long the breaker that opened first has been open; 0 if none is",
    "groupmq_oldest_wait_seconds": "Longest wait of a job that could start now; 0 if nothing can start",
    "groupmq_longest_held_seconds": "Longest wait of the first job of a group that is held; 0 if no group is held",
    "groupmq_longest_held_reason": "1 for the reason why that group is held, 0 for all others",
    "groupmq_longest_held_unpaused_seconds": "Longest wait in a held group that no operator has paused; 0 if none is",
    "groupmq_longest_held_unpaused_reason": "1 for the reason why that group is held, 0 for all others",
    "groupmq_paused": "1 while the queue is paused",
    "groupmq_workers": "Workers that sent a heartbeat within the last two intervals",
    "groupmq_worker_slots": "Jobs all those workers can run at once",
}
LABELS = {
    "groupmq_jobs": ["state"],
    "groupmq_longest_held_reason": ["reason"],
    "groupmq_longest_held_unpaused_reason": ["reason"],
}
"""Labels that a gauge has besides the queue. The held group is not one of them: each group would be a series of its
own."""
COUNTERS = {
    "groupmq_jobs_completed": "Jobs that were completed",
    "groupmq_jobs_processed": "The same as groupmq_jobs_completed, which replaces it",
    "groupmq_jobs_failed": "Jobs that failed for good",
    "groupmq_jobs_retried": "Attempts that failed and were followed by another",
    "groupmq_jobs_stalled": "Leases that expired",
    "groupmq_jobs_lost": "Jobs whose record was deleted by something other than groupmq",
    "groupmq_jobs_rate_limited": "Runs that ended with RateLimited",
    "groupmq_jobs_lease_lost": "Outcomes that were refused because the worker no longer held the lease",
}
HISTOGRAMS = {
    "groupmq_job_wait_seconds": "Seconds that jobs waited before their first start",
    "groupmq_job_run_seconds": "Seconds that runs took",
}


class Families(NamedTuple):
    """The metrics, before and while their values are added."""

    plain: dict[str, GaugeMetricFamily | CounterMetricFamily]
    histograms: dict[str, HistogramMetricFamily]

    def all(self) -> Iterator[Metric]:
        yield from self.plain.values()
        yield from self.histograms.values()


class QueueReading(NamedTuple):
    """The data of one queue for one scrape."""

    counts: JobCounts
    metrics: Metrics
    workers: list[WorkerInfo]
    paused: bool


class QueueCollector(Collector):
    """Collects the metrics of queues, each time it is asked.

    >>> prometheus_client.REGISTRY.register(QueueCollector(groupmq.sync.Queue("orders")))
    """

    def __init__(self, *queues: Queue) -> None:
        self._queues = queues

    def describe(self) -> Iterable[Metric]:
        """The metrics without values: registering must not need the server."""
        return _families().all()

    def collect(self) -> Iterator[Metric]:
        families = _families()
        up = families.plain["groupmq_up"]
        with ThreadPoolExecutor(min(_AT_ONCE, max(1, len(self._queues)))) as threads:
            for queue, (is_up, look) in zip(self._queues, threads.map(self._look, self._queues), strict=True):
                up.add_metric([queue.name], is_up)
                if look is not None:
                    _add(families, queue.name, look)
        yield from families.all()

    def _look(self, queue: Queue) -> tuple[int, QueueReading | None]:
        try:
            return 1, QueueReading(
                queue.get_job_counts(), queue.get_metrics(minutes=0), queue.get_workers(), queue.is_paused()
            )
        except QueueNotFound:
            return 1, None
        except GroupMQError as error:
            _logger.warning("cannot read queue %s, its groupmq_up is 0: %s", queue.name, error)
            return 0, None


def _families() -> Families:
    plain: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for name, text in GAUGES.items():
        labels = ["queue", *LABELS.get(name, ())]
        plain[name] = GaugeMetricFamily(name, text, labels=labels)
    for name, text in COUNTERS.items():
        plain[name] = CounterMetricFamily(name, text, labels=["queue"])
    return Families(
        plain, {name: HistogramMetricFamily(name, text, labels=["queue"]) for name, text in HISTOGRAMS.items()}
    )


def _add(families: Families, queue: str, look: QueueReading) -> None:
    counts, metrics = look.counts, look.metrics
    for state in ("active", "waiting", "delayed", "completed", "failed"):
        families.plain["groupmq_jobs"].add_metric([queue, state], getattr(counts, state))
    for name, held in (("held", metrics.longest_held), ("held_unpaused", metrics.longest_held_unpaused)):
        families.plain[f"groupmq_longest_{name}_seconds"].add_metric([queue], held.wait if held is not None else 0.0)
        for reason in HELD_REASONS:
            is_it = held is not None and held.reason == reason
            families.plain[f"groupmq_longest_{name}_reason"].add_metric([queue, reason], int(is_it))
    plain: dict[str, float] = {
        "groupmq_groups": counts.unique_groups,
        "groupmq_groups_ready": metrics.groups_ready,
        "groupmq_groups_parked": metrics.groups_parked,
        "groupmq_groups_due": metrics.groups_parked,
        "groupmq_groups_paused": metrics.groups_paused,
        "groupmq_groups_blocked": metrics.groups_blocked,
        "groupmq_longest_blocked_seconds": metrics.longest_blocked or 0.0,
        "groupmq_breakers_open": metrics.breakers_open,
        "groupmq_longest_breaker_open_seconds": metrics.longest_breaker_open or 0.0,
        "groupmq_oldest_wait_seconds": metrics.oldest_startable_wait or 0.0,
        "groupmq_paused": int(look.paused),
        "groupmq_workers": len(look.workers),
        "groupmq_worker_slots": sum(worker.concurrency for worker in look.workers),
    }
    for name in COUNTERS:
        plain[name] = getattr(metrics, name.removeprefix("groupmq_jobs_"))
    for name, value in plain.items():
        families.plain[name].add_metric([queue], value)
    for name, histogram in (("groupmq_job_wait_seconds", metrics.wait), ("groupmq_job_run_seconds", metrics.run)):
        families.histograms[name].add_metric([queue], _cumulative(histogram), histogram.sum)


def _cumulative(histogram: Histogram) -> list[tuple[str, int]]:
    """Buckets as Prometheus has them: each counts all values below its bound."""
    found, below = [], 0
    for bound, n in zip(histogram.bounds, histogram.buckets, strict=True):
        below += n
        found.append(("+Inf" if math.isinf(bound) else f"{bound:g}", below))
    return found
