"""Why a run was lost: which fault struck its process, its wire or the server in the time in question."""

from __future__ import annotations

import math
from collections import defaultdict

from tests.chaos.checker.parts import Fault, Run
from tests.chaos.checker.story import Story

LEASE = 3.0
"""Seconds, for all queues of a run. Repeated here, since the checker shares nothing with the code it checks."""
ENOUGH = 1.0
"""Seconds without CPU time after which a heartbeat may be too late: a third of the lease."""
AFTER = 2.0
"""Seconds that a process may pause after a fault before it tries again."""
_RANK = (
    "kill",
    "poison",
    "freeze",
    "hang",
    "cut",
    "drop",
    "truncate",
    "delay",
    "restart",
    "failover",
    "move",
    "stop",
    "memory",
    "clients",
    "functions",
    "leave",
)
_OF_SERVER = ("restart", "failover", "move", "stop", "memory", "clients", "functions", "scripts")


def find(story: Story, pid: int | None, since: float, until: float) -> Fault | None:
    """The fault that best explains why a process could not do its work between two moments."""
    struck = list(story.faults_of.get(pid, ())) if pid is not None else []
    struck += story.faults_of.get("server", ())
    overlapping = [f for f in struck if f.t0 <= until and f.t1 >= since and f.kind in _RANK]
    if not overlapping and _starved(story, pid, since, until) >= ENOUGH:
        return Fault("starved", "", pid, since, until)
    return min(overlapping, key=lambda fault: _RANK.index(fault.kind), default=None)


def _starved(story: Story, pid: int | None, since: float, until: float) -> float:
    """Seconds of that time for which the process, the network or the server got no CPU time.

    Each of them measures itself: it wakes up every 0.1 s and records when it woke up late.
    """
    gaps: list[Fault] = [*story.faults_of.get(pid, ()), *story.starved_for_all]
    return sum(max(0.0, min(f.t1, until) - max(f.t0, since)) for f in gaps if f.kind == "starved")


def of_loss(story: Story, run: Run, until: float) -> str | None:
    """The kind of fault that kept a run from reporting its outcome; None if no fault explains it."""
    fault = find(story, run.pid, story.mono(run.at) - LEASE, until)
    return None if fault is None else fault.kind


def outage(story: Story, since: float, until: float) -> float:
    """Seconds of that time in which the server was unreachable or refused work."""
    faults = (
        f for f in story.faults_of.get("server", ()) if f.kind in ("restart", "failover", "move", "stop", "memory")
    )
    return sum(max(0.0, min(f.t1, until) - max(f.t0, since)) for f in faults)


class Care:
    """When some process could take back expired leases of a queue: one that was ready and not struck by a fault."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._ready: dict[str | None, list[tuple[int, float]]] = defaultdict(list)
        for line in story.of_kind("ready"):
            if line["q"] is not None or line["actor"] == "recovery":
                self._ready[line["q"]].append((line["pid"], line["t"]))

    def seconds(self, q: str, since: float, until: float) -> float:
        """Seconds of that time in which at least one process could take back expired leases of the queue."""
        step, total, t = 0.1, 0.0, since
        while t < until:
            total += step * any(self._able(pid, ready, t) for pid, ready in (*self._ready[q], *self._ready[None]))
            t += step
        return total

    def _able(self, pid: int, ready: float, t: float) -> bool:
        story = self._story
        if t < ready or t > story.killed.get(pid, math.inf) or t > story.gone.get(pid, math.inf):
            return False
        struck = (*story.faults_of.get(pid, ()), *story.faults_of.get("server", ()))
        return not any(fault.t0 <= t <= fault.t1 + AFTER for fault in struck if fault.t1 > fault.t0)
