"""The history of worker processes, read from the lines they wrote, and checks for broken promises.

Each line is one JSON object: kind (start, end, kill, or the name of a worker's event), t (the machine's monotonic
clock, the same in all processes) and pid. Lines about a run also have its job, group, attempt, fence and order, `at`
(its start by the server's clock, in milliseconds) and, at its end, how it ended.
The checks compare fences where order matters: the server grants leases with growing fences, so their order is the order
of the grants, whatever a frozen process does later with a job that it holds.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

Line = dict[str, Any]


@dataclass
class Run:
    """One run of a handler."""

    job: str
    group: str | None
    attempt: int
    fence: int
    pid: int
    start: float
    end: float = math.inf
    how: str = ""
    """returned, raised or cancelled; empty if no end was recorded."""
    accepted: str = ""
    """completed, retrying or failed, once the server accepted the outcome and the worker emitted the event."""
    lost: bool = False
    """The worker has learned that it lost the lease."""
    killed: bool = False

    def __str__(self) -> str:
        told = self.accepted or ("lease lost" if self.lost else "killed" if self.killed else "nothing recorded")
        return f"{self.job} attempt {self.attempt} fence {self.fence} pid {self.pid} ({self.how or 'no end'}, {told})"


@dataclass
class History:
    """The runs of all processes in order of their fences, and all lines in order of time."""

    runs: list[Run]
    lines: list[Line]
    kills: dict[int, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> History:
        return cls.of(json.loads(line) for line in path.read_text().splitlines())

    @classmethod
    def of(cls, lines: Iterable[Line]) -> History:
        runs: dict[int, Run] = {}
        kept, kills = [], {}
        for line in sorted(lines, key=lambda line: float(line["t"])):
            kept.append(line)
            kind, run = line["kind"], runs.get(line.get("fence", 0))
            if kind == "start":
                known = {name: line[name] for name in ("job", "group", "attempt", "fence", "pid")}
                runs[line["fence"]] = Run(**known, start=line["t"])
            elif kind == "kill":
                kills[line["pid"]] = line["t"]
            elif run is None:
                continue
            elif kind == "end":
                run.end, run.how = line["t"], line["how"]
            elif kind in ("completed", "retrying", "failed"):
                run.accepted = kind
            elif kind == "lease-lost":
                run.lost = True
        for run in runs.values():
            if run.pid in kills:
                run.killed = not run.accepted
                run.end = min(run.end, kills[run.pid])
        return cls([runs[fence] for fence in sorted(runs)], kept, kills)

    def of_kind(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line["kind"] == kind]

    def by_job(self) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            found[run.job].append(run)
        return found

    def by_group(self) -> dict[str, list[Run]]:
        found: dict[str, list[Run]] = defaultdict(list)
        for run in self.runs:
            if run.group is not None:
                found[run.group].append(run)
        return found

    # Checks: each returns a list of violations

    def lost(self, expected: Iterable[str]) -> list[str]:
        """Jobs that were added and whose handler never returned."""
        done = {run.job for run in self.runs if run.how == "returned"}
        return [f"{job} was added and never ran to its end" for job in expected if job not in done]

    def unexpected(self, known: Collection[str]) -> list[str]:
        """Jobs that ran but were never added."""
        return [f"{run} was never added" for run in self.runs if run.job not in known]

    def duplicates(self) -> list[str]:
        """Second runs without an explanation: the previous run completed its job, or nothing shows that it ended."""
        found = []
        for runs in self.by_job().values():
            for before, after in pairwise(runs):
                explained = before.accepted == "retrying" or before.lost or before.killed
                if not explained or before.accepted == "completed":
                    found.append(f"{after} runs again after {before}")
        return found

    def inversions(self, order: Iterable[str]) -> list[str]:
        """Jobs that were granted after a later job of their group."""
        place = {job: number for number, job in enumerate(order)}
        found = []
        for runs in self.by_group().values():
            for before, after in pairwise(runs):
                if place.get(after.job, math.inf) < place.get(before.job, -1):
                    found.append(f"{after} was granted after {before}")
        return found

    def overlaps(self, limit: int = 1) -> list[str]:
        """Runs of a group that overlapped beyond its limit. Runs that lost their lease do not count."""
        found = []
        for runs in self.by_group().values():
            alive: list[Run] = []
            for run in sorted((run for run in runs if not run.lost), key=lambda run: run.start):
                alive = [other for other in alive if other.end > run.start]
                if len(alive) >= limit:
                    found.append(f"{run} started while {', '.join(map(str, alive))} went on")
                alive.append(run)
        return found

    def intrusions(self) -> list[str]:
        """Runs that started while another process ran a job. Runs that lost their lease do not count."""
        found = []
        alive: list[Run] = []
        for run in sorted((run for run in self.runs if not run.lost), key=lambda run: run.start):
            alive = [other for other in alive if other.end > run.start]
            others = [other for other in alive if other.pid != run.pid]
            if others:
                found.append(f"{run} started while {', '.join(map(str, others))} went on elsewhere")
            alive.append(run)
        return found

    def gaps(self) -> list[str]:
        """Attempts that do not count 1, 2, 3 ...; a job that was given back repeats its number.

        A killed process may have taken a job without starting it, so each kill explains one missing attempt.
        """
        found = []
        for runs in self.by_job().values():
            last = 0
            for run in runs:
                unbegun = sum(killed < run.start for killed in self.kills.values())
                if not last <= run.attempt <= last + 1 + unbegun:
                    found.append(f"{run} follows attempt {last}")
                last = run.attempt
        return found

    def check(
        self,
        added: Sequence[str],
        *,
        maybe: Collection[str] = (),
        unfinished: Collection[str] = (),
        limit: int = 1,
    ) -> None:
        """Fail with a list of all violations.

        `added`: acknowledged jobs in their order. `maybe`: jobs whose add was not acknowledged; they may have run.
        `unfinished`: jobs that are not expected to end.
        """
        found = [
            *self.lost(job for job in added if job not in unfinished),
            *self.unexpected({*added, *maybe}),
            *self.duplicates(),
            *self.inversions(added),
            *self.overlaps(limit),
        ]
        assert not found, f"{len(found)} broken promises:\n  " + "\n  ".join(found[:40])
