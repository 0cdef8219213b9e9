"""The figures of the benchmark and what is expected of them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.grids import GRIDS

OURS = "groupmq"


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure per library. `more_is_better` says which way the comparison goes."""

    key: str
    title: str
    unit: str
    more_is_better: bool


COMPARED = (
    Metric("enqueue", "add in bulk", "jobs/s", True),
    Metric("process_1", "process, concurrency 1", "jobs/s", True),
    Metric("process_10", "process, concurrency 10", "jobs/s", True),
    Metric("process_100", "process, concurrency 100", "jobs/s", True),
    Metric("process_short", "process, concurrency 100, short groups", "jobs/s", True),
    Metric("memory", "memory per waiting job", "bytes", False),
    Metric("server_time", "server time per job, add + process", "us", False),
    Metric("server_add", "- of it, add", "us", False),
    Metric("server_process", "- of it, process", "us", False),
    Metric("server_rows", "- with nested calls counted twice", "us", False),
    Metric("server_cpu", "server CPU per job, add + process", "us", False),
    Metric("roundtrip_idle_p50", "add to result, idle, p50", "ms", False),
    Metric("roundtrip_idle_p99", "add to result, idle, p99", "ms", False),
    Metric("roundtrip_idle_count", "- round trips measured, idle", "jobs", True),
    Metric("roundtrip_load_p50", "add to result, half load, p50", "ms", False),
    Metric("roundtrip_load_p99", "add to result, half load, p99", "ms", False),
    Metric("roundtrip_load_count", "- round trips measured, half load", "jobs", True),
    Metric("roundtrip_rate", "- added by others meanwhile", "jobs/s", True),
    Metric("roundtrip_left", "jobs left over after half load", "jobs", False),
)
"""What every library is measured for that can do it."""

OWN = tuple(
    Metric(key, f"{grid.title}: {row.label}, {column}", row.unit, row.more_is_better)
    for grid in GRIDS
    for row in grid.rows
    for column, key in zip(grid.columns, row.keys, strict=True)
)
"""What only groupmq is measured for; titles are templates over the settings."""

METRICS = {metric.key: metric for metric in (*COMPARED, *OWN)}


@dataclass(slots=True)
class Samples:
    """Every measured value; the median is what is reported, because others use the machine too."""

    values: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, metric: str, library: str, value: float) -> None:
        if metric not in METRICS:
            raise KeyError(f"unknown metric {metric!r}")
        self.values[metric, library].append(value)

    def get(self, metric: str, library: str) -> list[float]:
        return self.values.get((metric, library), [])

    def median(self, metric: str, library: str) -> float | None:
        found = self.get(metric, library)
        return statistics.median(found) if found else None

    def metrics(self, among: Iterable[Metric] = METRICS.values()) -> list[Metric]:
        """The metrics that have at least one sample, in the order of the table."""
        seen = {key for key, _ in self.values}
        return [metric for metric in among if metric.key in seen]


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on the ratio of two medians of the same run; absolute times are never judged."""

    title: str
    numerator: tuple[str, str]
    denominator: tuple[str, str]
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}x"
        if self.at_most is not None:
            return f"<= {self.at_most:g}x"
        return f"< {self.below:g}x"

    def holds(self, ratio: float) -> bool:
        return (
            (self.at_least is None or ratio >= self.at_least)
            and (self.at_most is None or ratio <= self.at_most)
            and (self.below is None or ratio < self.below)
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    target: Target
    ratio: float
    passed: bool


def _against(title: str, metric: str, peer: str, **bound: float) -> Target:
    return Target(title, (metric, OURS), (metric, peer), **bound)


def _own(top: str, bottom: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (top, OURS), (bottom, OURS)


TARGETS = (
    _against("process at 100 vs BullMQ", "process_100", "bullmq", at_least=2.5),
    _against("process at 100 vs GroupMQ (Node)", "process_100", "groupmq_node", at_least=4.0),
    _against("add_many vs BullMQ addBulk", "enqueue", "bullmq", at_least=2.0),
    _against("bytes per waiting job vs BullMQ", "memory", "bullmq", below=1.0),
    _against("server time per job vs BullMQ", "server_time", "bullmq", at_most=0.35),
    Target(
        "server time per job, long vs short backlog", *_own("depth_server_deep", "depth_server_shallow"), at_most=1.3
    ),
    Target("elapsed time per job, long vs short backlog", *_own("depth_wall_deep", "depth_wall_shallow"), at_most=1.3),
    Target("20 ticks/s of one repeat, run vs expected", *_own("repeats_one_run", "repeats_one_expected"), at_least=1.0),
    Target("process with a rate limit of the queue vs without", *_own("rate_rate", "rate_none"), at_least=0.9),
    Target("add with events vs without", *_own("events_add_events", "events_add_silent"), at_least=0.9),
    Target("process with events vs without", *_own("events_events", "events_silent"), at_least=0.9),
)


def ratio(samples: Samples, top: tuple[str, str], bottom: tuple[str, str]) -> float | None:
    upper, lower = samples.median(*top), samples.median(*bottom)
    return upper / lower if upper is not None and lower else None


def judge(samples: Samples, targets: Iterable[Target] = TARGETS) -> list[Verdict]:
    """Verdicts on the targets both sides of which were measured in this run."""
    verdicts = []
    for target in targets:
        value = ratio(samples, target.numerator, target.denominator)
        if value is not None:
            verdicts.append(Verdict(target, value, target.holds(value)))
    return verdicts
