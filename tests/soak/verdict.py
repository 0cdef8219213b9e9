"""Whether anything grew: compares the first quarter of a run with its last one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

Sample = dict[str, Any]
MB = 1024 * 1024
WARM_UP, MOST_WARM_UP = 0.1, 120.0
"""The share of a run, and at most the seconds, that are left out: everything bounded has to fill up first."""
FEWEST = 8
LOG_BYTES = 7 * MB
"""The most bytes that one event log may take in memory, which is more than the bytes written that bound it."""
NOT_ENTRIES = {
    "events": "bounded in bytes, see the logs",
    "segments": "one for each half a megabyte of log",
    "series": "a field for each minute of two weeks",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """How much the median of the last quarter may exceed that of the first: a share and an amount."""

    share: float
    amount: float

    def __str__(self) -> str:
        return f"+{self.share:.0%} and {self.amount:,.0f}"


BOUNDS: dict[str, Bound] = {
    "server memory without logs": Bound(0.05, 1 * MB),
    "server rss without logs": Bound(0.15, 6 * MB),
    "rss": Bound(0.10, 6 * MB),
    "descriptors": Bound(0.0, 8),
    "tasks": Bound(0.25, 20),
    "objects": Bound(0.05, 3000),
    "keys": Bound(0.10, 40),
    "entries": Bound(0.15, 100),
    "backlog": Bound(0.5, 200),
    "mean call": Bound(0.30, 50),
    "slowest call": Bound(1.0, 3000),
}
"""By kind of series. The load is random and the machine does other work, so smaller changes mean nothing."""


@dataclass(frozen=True, slots=True)
class Series:
    kind: str
    name: str
    points: list[tuple[float, float]]

    @property
    def title(self) -> str:
        return f"{self.kind} of {self.name}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Row:
    """The result for one series."""

    title: str
    first: float
    last: float
    bound: Bound

    @property
    def most(self) -> float:
        return self.first * (1 + self.bound.share) + self.bound.amount

    @property
    def grew(self) -> bool:
        return self.last > self.most

    def __str__(self) -> str:
        return f"{self.title}: {self.first:,.0f} -> {self.last:,.0f} (at most {self.most:,.0f}: {self.bound})"


@dataclass(frozen=True, slots=True)
class Verdict:
    rows: list[Row]
    other: list[str]
    """Problems other than growth."""

    @property
    def grew(self) -> list[Row]:
        return [row for row in self.rows if row.grew]

    @property
    def is_flat(self) -> bool:
        return not self.grew and not self.other


def judge(samples: Sequence[Sample], *, left: Sequence[str] = ()) -> Verdict:
    """`left`: descriptions of what was left unfinished after the run."""
    steady = _after_warm_up(samples)
    other = list(left)
    if len(steady) < FEWEST:
        return Verdict([], [*other, f"too short: {len(steady)} samples after the warm-up, {FEWEST} are needed"])
    rows = [
        Row(one.title, first, last, BOUNDS[one.kind])
        for one in all_series(steady)
        for first, last in _quarters(one.points)
    ]
    logs = max(sample["server"]["logs"] for sample in steady)
    most = LOG_BYTES * steady[-1]["keys"].get("events", 0)
    if logs > most:
        other.append(f"the event logs have {logs:,} bytes, at most {most:,} are expected")
    mended = steady[-1]["jobs"].get("mended", 0)
    if mended:
        other.append(f"repair mended {mended} defects")
    if steady[-1]["jobs"].get("completed", 0) <= steady[0]["jobs"].get("completed", 0):
        other.append("no job was completed")
    return Verdict(rows, other)


def _after_warm_up(samples: Sequence[Sample]) -> list[Sample]:
    if not samples:
        return []
    since = samples[0]["t"] + min(MOST_WARM_UP, WARM_UP * (samples[-1]["t"] - samples[0]["t"]))
    return [sample for sample in samples if sample["t"] >= since]


def _quarters(points: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The medians of the first and the last quarter; nothing if the series is too short."""
    n = len(points) // 4
    if n >= FEWEST // 4:
        yield median(value for _, value in points[:n]), median(value for _, value in points[-n:])


def all_series(samples: Sequence[Sample]) -> list[Series]:
    """Everything that must not grow, including figures of processes that ran from the first sample to the last."""
    found = [
        _series("server memory without logs", "", samples, lambda s: s["server"]["memory"] - s["server"]["logs"]),
        _series("server rss without logs", "", samples, lambda s: s["server"]["rss"] - s["server"]["logs"]),
        _series("mean call", "", samples, lambda s: s["calls"]["mean_us"]),
        _series("slowest call", "", samples, lambda s: s["calls"]["slowest_us"]),
        _series("backlog", "", [s for s in samples if "backlog" in s["jobs"]], lambda s: s["jobs"]["backlog"]),
    ]
    for kind in sorted({kind for sample in samples for kind in sample["keys"]}):
        found.append(_series("keys", kind, samples, lambda s, kind=kind: s["keys"].get(kind, 0)))
    for kind in sorted({kind for sample in samples for kind in sample["entries"]} - set(NOT_ENTRIES)):
        found.append(_series("entries", kind, samples, lambda s, kind=kind: s["entries"].get(kind, 0)))
    for name in sorted(set(samples[0]["processes"]) & set(samples[-1]["processes"])):
        for kind, what in (("rss", "rss"), ("descriptors", "fds"), ("tasks", "tasks"), ("objects", "objects")):
            there = [s for s in samples if what in s["processes"].get(name, {})]
            found.append(_series(kind, name, there, lambda s, name=name, what=what: s["processes"][name][what]))
    return found


def _series(kind: str, name: str, samples: Sequence[Sample], value: Any) -> Series:
    return Series(kind, name, [(sample["t"], float(value(sample))) for sample in samples])
