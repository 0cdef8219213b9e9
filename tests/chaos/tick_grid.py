"""The ticks that repeating jobs must have, computed without the library and compared with those that ran. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Line = dict[str, Any]
INTERVALS = (100_000, 200_000, 350_000, 1_000_000, 333_333)
"""Microseconds between two ticks."""
PATTERNS = {
    "* * * * * *": range(60),
    "*/2 * * * * *": range(0, 60, 2),
    "0,7,30 * * * * *": (0, 7, 30),
}
"""Cron pattern -> the seconds of a minute that it matches."""
ZONES = ("UTC", "Asia/Kathmandu", "America/New_York")


@dataclass(frozen=True, slots=True)
class Plan:
    """One repeating job, with every tick that it must have."""

    key: str
    ticks: tuple[int, ...]
    every: int = 0
    """Microseconds; 0 = it follows a pattern."""
    pattern: str = ""
    tz: str = "UTC"


def plans(wanted: int, start: int, end: int) -> list[Plan]:
    """Repeating jobs with at least `wanted` ticks together, from `start` to `end`, both included (milliseconds)."""
    found: list[Plan] = []
    total = 0
    for n in count():
        if total >= wanted:
            break
        one = _plan(n, start, end)
        if one.ticks:  # a pattern may have no tick in a short time
            found.append(one)
            total += len(one.ticks)
    return found


def _plan(n: int, start: int, end: int) -> Plan:
    kinds = len(INTERVALS) + len(PATTERNS)
    at, again = n % kinds, n // kinds
    if at < len(INTERVALS):
        every = INTERVALS[at]
        times = range((end - start) * 1000 // every + 1)
        return Plan(f"every-{n}", tuple(start + k * every // 1000 for k in times), every=every)
    pattern = list(PATTERNS)[at - len(INTERVALS)]
    seconds = range(-(-start // 1000), end // 1000 + 1)
    ticks = (1000 * second for second in seconds if second % 60 in PATTERNS[pattern])
    return Plan(f"cron-{n}", tuple(ticks), pattern=pattern, tz=ZONES[again % len(ZONES)])


@dataclass
class Verdict:
    """The violations found; none = each tick made one job, in order and not before its time."""

    findings: list[str] = field(default_factory=list)
    jobs: int = 0
    late: list[int] = field(default_factory=list)
    """Milliseconds after its tick that each job was added."""


def judge(expected: Iterable[Plan], ran: Sequence[Line]) -> Verdict:
    """`ran`: each start of a handler as {key, tick, attempt, fence, created, at}, in any order.

    Completed jobs are not kept here, so their ids are free again: a tick that was added twice shows up as two first
    attempts. A second attempt is another run of the same job.
    """
    verdict = Verdict()
    by_key: dict[str, list[Line]] = defaultdict(list)
    for line in ran:
        if line["attempt"] == 1:
            by_key[line["key"]].append(line)
    plans_of: Mapping[str, Plan] = {plan.key: plan for plan in expected}
    for key in sorted(by_key.keys() - plans_of.keys()):
        verdict.findings.append(f"{key} ran, but was never defined")
    for key, plan in plans_of.items():
        _compare(key, plan.ticks, sorted(by_key[key], key=lambda line: line["fence"]), verdict)
    return verdict


def _compare(key: str, ticks: Sequence[int], lines: Sequence[Line], verdict: Verdict) -> None:
    seen = [line["tick"] for line in lines]
    verdict.jobs += len(seen)
    times, wanted = Counter(seen), set(ticks)
    findings = verdict.findings
    findings += [f"{key} missed its tick {tick}" for tick in ticks if tick not in times]
    findings += [f"{key} made its tick {tick} {n} times" for tick, n in times.items() if n > 1]
    findings += [f"{key} ran at {tick}, which is none of its ticks" for tick in times if tick not in wanted]
    if seen != sorted(seen):
        findings.append(f"{key} ran its ticks out of order")
    for line in lines:
        verdict.late.append(line["created"] - line["tick"])
        if line["created"] < line["tick"]:
            findings.append(f"{key} made its tick {line['tick']} at {line['created']}, before its time")
