"""The figures of the benchmark."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.grids import GRIDS

OURS = "groupmq"


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure per library. `more_is_better` is the direction of the comparison.

    A `remark` is not compared: it is a part of another figure, or shows how that was measured.
    """

    key: str
    title: str
    unit: str
    more_is_better: bool
    remark: bool = False
    lowest: bool = False
    """The lowest of the rounds is reported: each round does the same work, and other processes only add to its time."""


CONCURRENCIES = (1, 10, 100)
RATES = (200, 1_000, 5_000, 10_000)
"""Jobs per second that arrive one by one."""


def _trickle(rate: int) -> tuple[Metric, ...]:
    case, at = f"trickle_{rate}", f"at {rate:,} jobs/s"
    return (
        Metric(f"{case}_server", f"server time per job, {at}", "us", False),
        Metric(f"{case}_start_p50", f"add to start, {at}, p50", "ms", False),
        Metric(f"{case}_start_p99", f"add to start, {at}, p99", "ms", False),
        Metric(f"{case}_result_p50", f"add to result, {at}, p50", "ms", False),
        Metric(f"{case}_result_p99", f"add to result, {at}, p99", "ms", False),
        Metric(f"{case}_reached", f"- reached {at}", "jobs/s", True, remark=True),
    )


COMPARED = (
    Metric("enqueue", "add in bulk", "jobs/s", True),
    Metric("process_1", "process, concurrency 1", "jobs/s", True),
    Metric("process_10", "process, concurrency 10", "jobs/s", True),
    Metric("process_100", "process, concurrency 100", "jobs/s", True),
    Metric("process_short", "process, concurrency 100, short groups", "jobs/s", True),
    *(Metric(f"each_{n}", f"process, a group per job, concurrency {n}", "jobs/s", True) for n in CONCURRENCIES),
    *(Metric(f"ungrouped_{n}", f"process, no groups, concurrency {n}", "jobs/s", True) for n in CONCURRENCIES),
    Metric("handlers_1ms", "process, handlers of 1 ms, concurrency 10", "jobs/s", True),
    Metric("handlers_10ms", "process, handlers of 10 ms, concurrency 100", "jobs/s", True),
    Metric("bulk_500", "add in bulk, 500 a call, one call at a time", "jobs/s", True),
    Metric("add_p50", "awaited add, p50", "us", False),
    Metric("add_p99", "awaited add, p99", "us", False),
    *(metric for rate in RATES for metric in _trickle(rate)),
    Metric("memory", "memory per waiting job", "bytes", False),
    Metric("server_time", "server time per job, add + process", "us", False),
    Metric("server_add", "- of it, add", "us", False, remark=True),
    Metric("server_process", "- of it, process", "us", False, remark=True),
    Metric("server_rows", "- with nested calls counted twice", "us", False, remark=True),
    Metric("server_cpu", "server CPU per job, add + process", "us", False),
    Metric("roundtrip_idle_p50", "add to result, idle, p50", "ms", False),
    Metric("roundtrip_idle_p99", "add to result, idle, p99", "ms", False),
    Metric("roundtrip_idle_count", "- round trips measured, idle", "jobs", True, remark=True),
    Metric("roundtrip_load_p50", "add to result, half load, p50", "ms", False),
    Metric("roundtrip_load_p99", "add to result, half load, p99", "ms", False),
    Metric("roundtrip_load_count", "- round trips measured, half load", "jobs", True, remark=True),
    Metric("roundtrip_rate", "- added by others meanwhile", "jobs/s", True, remark=True),
    Metric("roundtrip_left", "jobs left over after half load", "jobs", False, remark=True),
)
"""Figures of every library that supports them."""

PYTHON = (
    *(Metric(f"python_process_{n}", f"process, concurrency {n}", "jobs/s", True) for n in CONCURRENCIES),
    Metric("python_add", "add in bulk", "jobs/s", True),
    Metric("python_start_p50", "add to start, idle, p50", "ms", False),
    Metric("python_start_p99", "add to start, idle, p99", "ms", False),
)
"""Figures of groupmq and the Python libraries."""

OWN = tuple(
    Metric(key, f"{grid.title}: {row.label}, {column}", row.unit, row.more_is_better, lowest=row.lowest)
    for grid in GRIDS
    for row in grid.rows
    for column, key in zip(grid.columns, row.keys, strict=True)
)
"""Figures of groupmq alone; titles are templates over the settings."""

METRICS = {metric.key: metric for metric in (*COMPARED, *PYTHON, *OWN)}


@dataclass(slots=True)
class Samples:
    """Every measured value. Other processes use the machine too, so the median is reported, or the lowest (`Metric`).

    `raw` has the values behind a figure, e.g. the latency of each job, a list per round. `left_out` has the reasons why
    libraries could not be measured, or only in part. `seconds` is the duration of each scenario.
    """

    values: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    raw: dict[tuple[str, str], list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, metric: str, library: str, value: float) -> None:
        if metric not in METRICS:
            raise KeyError(f"unknown metric {metric!r}")
        self.values[metric, library].append(value)

    def get(self, metric: str, library: str) -> list[float]:
        return self.values.get((metric, library), [])

    def reported(self, metric: str, library: str) -> float | None:
        found = self.get(metric, library)
        if not found:
            return None
        return min(found) if METRICS[metric].lowest else statistics.median(found)

    def metrics(self, among: Iterable[Metric] = METRICS.values()) -> list[Metric]:
        """The metrics that have at least one sample, in the order of the table."""
        seen = {key for key, _ in self.values}
        return [metric for metric in among if metric.key in seen]


@dataclass(frozen=True, slots=True)
class Lead:
    """A figure in which a peer is better, by the factor `times`."""

    metric: Metric
    library: str
    times: float


def leads(samples: Samples, libraries: Iterable[str]) -> list[Lead]:
    """Every figure in which a peer is ahead of us, in the order of the table, the largest lead of a figure first."""
    found: list[Lead] = []
    for metric in samples.metrics((*COMPARED, *PYTHON)):
        ours = samples.reported(metric.key, OURS)
        better = []
        for library in libraries:
            peer = samples.reported(metric.key, library)
            if metric.remark or library == OURS or not ours or not peer:
                continue
            times = peer / ours if metric.more_is_better else ours / peer
            if times > 1:
                better.append(Lead(metric, library, times))
        found += sorted(better, key=lambda lead: -lead.times)
    return found
