"""Worker processes as Prometheus sees them: labelled by queue and number, never by a name that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_LABELS = ["queue", "process"]

GAUGES = {
    "running": "Jobs that run now",
    "concurrency": "Jobs that can run at once",
    "ready": "1 while the worker takes jobs and its server answers",
    "loop_blocked_seconds": "Seconds for which the event loop has not advanced; 0 while it does",
    "uptime_seconds": "Seconds since the worker started",
}
COUNTERS = {
    "completed": "Runs that completed their job",
    "retried": "Runs after which the job is tried again",
    "failed": "Runs after which the job failed for good",
    "released": "Jobs given back unfinished, no attempt used",
    "rate_limited": "Runs that ended with RateLimited",
    "snoozed": "Runs that ended with Snooze",
    "limited": "The same as rate_limited, which replaces it",
    "lease_lost": "Runs whose outcome was refused because the worker no longer held the lease",
    "connection_errors": "Calls that failed and were tried again",
    "loop_blocks": "Times a handler blocked the event loop for half a second or more",
    "restarts": "Times the process was started again after it died",
}


@dataclass(frozen=True)
class WorkerSample:
    """The numbers of one worker process, by the names above."""

    queue: str
    process: int = 0
    values: Mapping[str, float] = field(default_factory=dict)


class WorkerCollector(Collector):
    """Collects what `samples` returns, each time it is asked."""

    def __init__(self, samples: Callable[[], Iterable[WorkerSample]]) -> None:
        self._samples = samples

    def describe(self) -> Iterable[Metric]:
        return _families().values()

    def collect(self) -> Iterator[Metric]:
        families = _families()
        for sample in self._samples():
            for name, family in families.items():
                if name in sample.values:
                    family.add_metric([sample.queue, str(sample.process)], sample.values[name])
        yield from families.values()


def _families() -> dict[str, GaugeMetricFamily | CounterMetricFamily]:
    found: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for name, text in GAUGES.items():
        found[name] = GaugeMetricFamily(f"groupmq_worker_{name}", text, labels=_LABELS)
    for name, text in COUNTERS.items():
        found[name] = CounterMetricFamily(f"groupmq_worker_{name}", text, labels=_LABELS)
    return found
