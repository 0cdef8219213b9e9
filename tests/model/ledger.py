"""All that the model knows, and the questions about jobs that need no rule to answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from groupmq.core.queue_options import QueueOptions
from groupmq.protocol.commands import Policy
from tests.model.parts import (
    UNGROUPED,
    Conf,
    Entry,
    Failing,
    Finished,
    Job,
    Repeat,
    StandIn,
    Starts,
    State,
    Stop,
    Turn,
    Unique,
    Window,
)

ORDER_MAX = 2**63 - 1


@dataclass
class Ledger:
    options: QueueOptions
    policy: Policy
    joins: float = math.inf
    """How many delayed jobs that are due join their groups in one call, those with the earliest due time first."""
    jobs: dict[str, Job] = field(default_factory=dict)
    paused: bool = False
    conf: dict[str, Conf] = field(default_factory=dict)
    arrivals: int = 0
    stamp: int = 0
    order: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    waits: list[int] = field(default_factory=list)
    """How long each job waited that started for the first time."""
    runs: list[int] = field(default_factory=list)
    """How long each run took that ended with an outcome."""
    failures: list[list[Any]] = field(default_factory=list)
    lanes: dict[str, tuple[int, list[int], list[tuple[str, int]]]] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    mail: set[str] = field(default_factory=set)
    """The workers whose heartbeat is to come at once."""
    holders: dict[str, int] = field(default_factory=dict)
    """The workers that have taken a reserve, and when."""
    held: bool = False
    """There may be some."""
    asked: int | None = None
    """When a worker that found nothing to start last asked them."""
    resting: tuple[int, str] | None = None
    """The last worker that found nothing, after the time until which that counts."""
    had_live: bool = False
    """Whether there was a live job after the last change."""
    had_ttl: bool = False
    had_notes: bool = False
    entries: list[Entry] = field(default_factory=list)
    """One for each call since somebody listened."""
    blocked: dict[str, int] = field(default_factory=dict)
    """Groups that failed jobs block, and since when."""
    breakers: dict[str, Failing] = field(default_factory=dict)
    uniques: dict[str, Unique] = field(default_factory=dict)
    rests: dict[str, int] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    """Of the whole queue, newest first, as many as its rate limit counts."""
    group_starts: dict[str, Starts] = field(default_factory=dict)
    throttled: int = 0
    """Until when the queue's rate lets nothing start, as last told to a worker."""
    told: bool = False
    """The worker that was told comes back by itself: nobody needs a marker meanwhile."""
    stand_ins: dict[tuple[int, str, str], StandIn] = field(default_factory=dict)
    repeats: dict[str, Repeat] = field(default_factory=dict)
    stopping: dict[int, Stop] = field(default_factory=dict)
    """By fence."""
    turn: Turn | None = None
    turns_begun: int = 0
    line: dict[str, int] = field(default_factory=dict)
    """With round-robin: the number in the line that each ready group drew when it joined it."""
    served: list[str] = field(default_factory=list)
    """With round-robin: the groups this call has taken from, in that order; they join the line anew."""
    _released: list[Job] = field(default_factory=list)
    """Failed jobs that block nothing any more since this call."""
    _ended: dict[str, list[Job]] = field(default_factory=lambda: {"completed": [], "failed": []})

    def tell(self, kind: str, job_id: str, group: str, *more: Any) -> None:
        if self.options.events:
            self.entries[-1].rows[kind].append((job_id, group, *more))

    def send_mail(self, workers: Iterable[str]) -> None:
        """Only to those who have said that they live."""
        self.mail |= set(workers) & set(self.workers)

    def in_state(self, state: State, group: str | None = None) -> list[Job]:
        return [j for j in self.jobs.values() if j.state == state and group in (None, j.group)]

    def waiting(self, group: str) -> list[Job]:
        """In start order."""
        return sorted(self.in_state("waiting", group), key=self.place)

    def place(self, job: Job) -> tuple[int, int, int]:
        """Where a job stands in its group. With ageing, a level of priority is so much later an order."""
        r, ageing = job.record, self.options.priority_ageing_ms
        if ageing is None:
            return r.priority, r.order_ms, r.arrival
        return 0, min(r.order_ms + r.priority * ageing, ORDER_MAX), r.arrival

    def finished(self, kind: Finished) -> list[Job]:
        """The oldest first."""
        return sorted((j for j in self.in_state(kind) if j.stamp), key=lambda job: job.stamp)

    def blockers(self, group: str) -> list[Job]:
        """The one that has blocked it longest first."""
        return sorted((j for j in self.in_state("failed", group) if j.blocks), key=lambda j: (j.blocks, j.id.encode()))

    def opened(self, group: str) -> int:
        """Until when its breaker makes a group rest; then one job at a time is tried. 0 = the breaker is closed."""
        return self.breakers[group].opened if group in self.breakers else 0

    def opened_since(self) -> dict[str, int]:
        """Groups whose breaker is open, and since when: a group that rests again has been open all the time."""
        return {group: failing.since for group, failing in self.breakers.items() if failing.opened}

    def live(self, group: str) -> list[Job]:
        return [j for j in self.jobs.values() if j.group == group and j.state in ("waiting", "delayed", "active")]

    def live_groups(self) -> set[str]:
        """Those with a live job, or with a run that is being stopped."""
        live = {j.group for j in self.jobs.values() if j.state in ("waiting", "delayed", "active")}
        return live | {stop.group for stop in self.stopping.values()}

    def running(self, group: str) -> int:
        """The slots of a group that are taken."""
        return len(self.in_state("active", group)) + sum(stop.group == group for stop in self.stopping.values())

    def size(self, group: str) -> int:
        """What counts against the most a group may have: its live jobs, and runs that are being stopped."""
        return len(self.live(group)) + sum(stop.group == group for stop in self.stopping.values())

    def leased(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.lease]

    def limit_of(self, group: str) -> float:
        if group == UNGROUPED:
            return float("inf")
        return self.conf.get(group, Conf()).limit or self.options.group_concurrency

    def rate_of(self, group: str) -> tuple[int, ...]:
        """Starts and milliseconds, () if the group may start as often as it likes."""
        if group == UNGROUPED:
            return ()
        every = self.options.group_rate_limit
        return self.conf.get(group, Conf()).rate or (tuple(every.packed()) if every else ())

    def settle(self) -> None:
        """What belongs to a group or a worker ends with it: after every change."""
        waiting, live = {j.group for j in self.in_state("waiting")}, self.live_groups()
        self.windows = {group: w for group, w in self.windows.items() if group in waiting}
        self.rests = {group: time for group, time in self.rests.items() if group in live}
        if self.had_live and not live:
            self.tell("drained", "", "")
        self.had_live = bool(live)
        self.had_ttl = self.had_ttl or any(job.expires for job in self.jobs.values())
        if not self.leased() and not self.stopping:
            self.turn = None
