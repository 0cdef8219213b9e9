"""Everything stored of one queue, decoded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from groupmq.core.record import Record


@dataclass
class StoredGroup:
    running: int
    delayed: int
    head: bytes
    holds: dict[str, int]
    rest: int = 0
    since: int = 0
    till: int = 0
    snoozed: frozenset[str] = frozenset()


@dataclass
class Keyspace:
    """Everything stored of one queue, decoded."""

    now: int
    meta: dict[str, str]
    jobs: dict[str, Record]
    places: dict[str, bytes]
    state: dict[str, list[Any]]
    history: dict[str, list[list[Any]]]
    """Runs that ended and did not complete, by job: the fields of `lua/lib/history.lua`."""
    results: dict[str, bytes]
    waiting: dict[str, list[bytes]]
    groups: dict[str, StoredGroup]
    conf: dict[str, dict[str, Any]]
    blocked: dict[str, float]
    """Groups that a failed job blocks, and since when."""
    blockers: dict[str, tuple[str, int]]
    """Jobs that block their group: the group, and since when."""
    blocking: list[tuple[str, str, int]]
    """The same as the index by group says: group, job, since when."""
    breakers: dict[str, tuple[int, int]]
    """Groups whose attempts fail: how often in a row, and until when an open breaker rests."""
    breaking: dict[str, float]
    """When that is forgotten."""
    opened_since: dict[str, float]
    """Those of them whose breaker is open, and since when."""
    ready: dict[str, float]
    parked: dict[str, float]
    delayed: dict[str, float]
    active: dict[str, float]
    leases: dict[str, tuple[int, str]]
    completed: dict[str, float]
    failed: dict[str, float]
    expiring: dict[str, float]
    rules: dict[str, Any]
    turn: list[Any] | None
    lease_workers: dict[str, str]
    holders: dict[str, float]
    """Workers that have taken a reserve, and when."""
    ahead: set[str]
    """Jobs that were taken behind another or in a reserve, and are not known to have started."""
    starts: list[int]
    group_starts: dict[str, list[int]]
    rated: dict[str, float]
    dedupe: dict[bytes, bytes]
    deduped: dict[bytes, float]
    unique: dict[str, tuple[int, int, int]]
    """Ids that stay taken: for how many ms, until when (0 = the job has not ended), when the job was made."""
    uniques: dict[str, float]
    repeats: dict[str, dict[str, Any]]
    ticks: dict[str, float]
    hails: list[str]
    mails: list[str]
    workers: list[str]
    progress: dict[str, bytes]
    logs: dict[str, list[Any]]
    cancels: dict[str, int]
    recalls: dict[str, int]
    """Prefetched jobs that their workers are asked for, and the fences of their leases."""
    stopping: dict[int, tuple[float, str, str]]
    """Runs whose job an operator has ended: the end of the lease, the group, the worker."""
    entries: dict[str, int]
    marks: list[str]
    minutes: dict[int, list[int]]
    spreads: dict[int, dict[int, int]]
    """Of each minute: place -> how many; waits from 0, runs from 25, dropped failures at 50."""
    wait: list[int]
    run: list[int]
    strangers: list[str] = field(default_factory=list)

    def limit(self, group_id: str) -> float:
        if group_id == "":
            return float("inf")
        return float(self.conf.get(group_id, {}).get("limit") or int(self.meta.get("limit", "1")))

    def rate(self, group_id: str) -> list[int] | None:
        """Starts and milliseconds, if the group has a rate limit."""
        own = self.conf.get(group_id, {}).get("rate") or self.rules.get("group_rate")
        return own if group_id else None

    def opened(self, group_id: str) -> int:
        """Until when an open breaker makes the group rest; 0 = it has none."""
        return self.breakers.get(group_id, (0, 0))[1] if "breaker" in self.rules else 0

    def waiting_ids(self, group_id: str) -> list[str]:
        return [member[16:].decode() for member in self.waiting.get(group_id, [])]
