"""The decoded contents of all keys of one queue."""

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
    alone: bool = False
    """The head is stored in this value and in no sorted set."""


@dataclass
class Keyspace:
    """All keys of one queue, decoded."""

    now: int
    meta: dict[str, str]
    jobs: dict[str, Record]
    places: dict[str, bytes]
    bodies: dict[str, bytes]
    """Large data, which is stored beside the record of its job."""
    beside: set[str]
    """Jobs whose records say that their data is stored beside them."""
    repeat_bodies: set[str]
    """Repeating jobs whose data is stored beside their definition."""
    state: dict[str, list[Any]]
    history: dict[str, list[list[Any]]]
    """Runs that ended and did not complete, by job: the fields of `lua/lib/history.lua`."""
    results: dict[str, bytes]
    waiting: dict[str, list[bytes]]
    groups: dict[str, StoredGroup]
    conf: dict[str, dict[str, Any]]
    blocked: dict[str, float]
    """Groups that are blocked by a failed job, and since when."""
    blockers: dict[str, tuple[str, int]]
    """Jobs that block their group: the group, and since when."""
    blocking: list[tuple[str, str, int]]
    """The same, from the index by group: group, job, since when."""
    breakers: dict[str, tuple[int, int]]
    """Groups whose attempts fail: how often in a row, and until when the group rests if its breaker is open."""
    breaking: dict[str, float]
    """When the failures of each of these groups are forgotten."""
    opened_since: dict[str, float]
    """Groups whose breaker is open, and since when."""
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
    granted: set[str]
    """Jobs that were granted for a free slot and are not known to have begun."""
    ahead: set[str]
    """Jobs that were prefetched, in a row or in a reserve, and are not known to have started."""
    starts: list[int]
    group_starts: dict[str, list[int]]
    rated: dict[str, float]
    dedupe: dict[bytes, bytes]
    deduped: dict[bytes, float]
    unique: dict[str, tuple[int, int, int]]
    """Ids that stay taken: for how many ms, until when (0 = the job has not ended), when the job was created."""
    uniques: dict[str, float]
    repeats: dict[str, dict[str, Any]]
    ticks: dict[str, float]
    turn_markers: list[str]
    mails: list[str]
    offer: tuple[str, int] | None
    """The worker that offers a slot, and the length of its lease."""
    grant: tuple[str, str, int] | None
    """A job that an add has granted: worker, job id, fence; until the worker is known to have received it."""
    grants: dict[str, list[int]]
    """Fences of granted jobs that no worker has received, by worker."""
    workers: list[str]
    progress: dict[str, bytes]
    logs: dict[str, list[Any]]
    cancels: dict[str, int]
    recalls: dict[str, int]
    """Prefetched jobs that their workers are asked to give back, and the fences of their leases."""
    stopping: dict[int, tuple[float, str, str]]
    """Runs whose job an operator has ended, by fence: the end of the lease, the group, the worker."""
    entries: dict[str, int]
    marks: list[str]
    minutes: dict[int, list[int]]
    spreads: dict[int, dict[int, int]]
    """For each minute: bucket -> count. Buckets 0 to 24 are waits, 25 to 49 runs, 50 dropped failures."""
    wait: list[int]
    run: list[int]
    strangers: list[str] = field(default_factory=list)

    def limit(self, group_id: str) -> float:
        if group_id == "":
            return float("inf")
        return float(self.conf.get(group_id, {}).get("limit") or int(self.meta.get("limit", "1")))

    def rate(self, group_id: str) -> list[int] | None:
        """The number of starts and the milliseconds, if the group has a rate limit."""
        own = self.conf.get(group_id, {}).get("rate") or self.rules.get("group_rate")
        return own if group_id else None

    def opened(self, group_id: str) -> int:
        """Until when the group rests because its breaker is open; 0 = it is not open."""
        return self.breakers.get(group_id, (0, 0))[1] if "breaker" in self.rules else 0

    def waiting_ids(self, group_id: str) -> list[str]:
        return [member[16:].decode() for member in self.waiting.get(group_id, [])]
