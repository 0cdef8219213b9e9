"""The proof: what the workers' diaries say about order, exclusion and loss. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DiaryEntry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """What happened. `lost`, `unexpected`, `inversions` and `overlaps` must be 0; `again` is explained by kills."""

    jobs: int
    runs: int
    retries: int
    again: int
    lost: int
    unexpected: int
    inversions: int
    overlaps: int
    beside: bool = True
    """Priorities, turns and a tick did what they promise (more.py)."""

    @property
    def holds(self) -> bool:
        return self.beside and not (self.lost or self.unexpected or self.inversions or self.overlaps)


def read(diaries: Iterable[Path]) -> list[DiaryEntry]:
    """All entries in time order. A line that a kill cut short is no entry."""
    entries: list[DiaryEntry] = []
    for diary in diaries:
        for line in diary.read_text().splitlines():
            if line.endswith("}"):
                entries.append(json.loads(line))
    return sorted(entries, key=lambda entry: float(entry["at"]))


def prove(entries: list[DiaryEntry], jobs: int) -> Proof:
    starts = [e for e in entries if e["kind"] == "start"]
    done = {e["n"] for e in entries if e["kind"] == "end"}
    failures = sum(e["kind"] == "fail" for e in entries)
    by_group: dict[str, list[DiaryEntry]] = defaultdict(list)
    for entry in entries:
        by_group[entry["group"]].append(entry)
    return Proof(
        jobs=jobs,
        runs=len(starts),
        retries=failures,
        again=len(starts) - failures - len(done),
        lost=jobs - len(done & set(range(jobs))),
        unexpected=len(done - set(range(jobs))),
        inversions=sum(map(_inversions, by_group.values())),
        overlaps=sum(map(_overlaps, by_group.values())),
    )


def _inversions(entries: list[DiaryEntry]) -> int:
    """Starts after a later job of the group has started. Delayed jobs take their position when they are due."""
    furthest, found = -1, 0
    for entry in entries:
        if entry["kind"] == "start" and not entry["delayed"]:
            found += entry["n"] < furthest
            furthest = max(furthest, entry["n"])
    return found


def _overlaps(entries: list[DiaryEntry]) -> int:
    """Starts while another job of the group still runs. A run that a kill cut short has no end and is not counted."""
    ends = {(e["n"], e["attempt"]): e["at"] for e in entries if e["kind"] != "start"}
    found, busy_until = 0, 0.0
    for entry in entries:
        if entry["kind"] == "start":
            found += entry["at"] < busy_until
            busy_until = max(busy_until, ends.get((entry["n"], entry["attempt"]), 0.0))
    return found
