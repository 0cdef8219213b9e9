"""The state of the model, and queries on it that need no rule."""

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
    Grant,
    Job,
    LastReply,
    Offer,
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
    """How many due jobs one call promotes, those with the earliest due time first."""
    jobs: dict[str, Job] = field(default_factory=dict)
    paused: bool = False
    conf: dict[str, Conf] = field(default_factory=dict)
    arrivals: int = 0
    stamp: int = 0
    order: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    waits: list[int] = field(default_factory=list)
    """How long each job waited before its first start."""
    runs: list[int] = field(default_factory=list)
    """How long each run with an outcome took."""
    has_large: bool = False
    """Whether the queue ever had a large job, according to the server."""
    dropped: int = 0
    """Failed jobs that were deleted because more than `keep_failed` were kept."""
    failures: list[list[Any]] = field(default_factory=list)
    requesters: dict[str, LastReply] = field(default_factory=dict)
    batches: dict[str, list[set[str]]] = field(default_factory=dict)
    """By requester: the batches of the last answer, if batches were asked for."""
    awaited: set[str] = field(default_factory=set)
    """Groups that wait for a full batch; only the last worker that asked knows of them."""
    workers: dict[str, str] = field(default_factory=dict)
    mail: set[str] = field(default_factory=set)
    """Workers that have mail: their heartbeat comes at once."""
    holders: dict[str, int] = field(default_factory=dict)
    """Workers that have taken a reserve, and when."""
    held: bool = False
    """Whether there may be such workers."""
    asked: int | None = None
    """When a worker that found nothing to start last asked them to give back their reserves."""
    idle: tuple[int, str] | None = None
    """The time until which it counts, and the last worker that found nothing to start."""
    offer: Offer | None = None
    grant: Grant | None = None
    had_live: bool = False
    """Whether there was a live job after the last change."""
    had_ttl: bool = False
    had_progress: bool = False
    entries: list[Entry] = field(default_factory=list)
    """The expected entries of the event log, one for each call since the last comparison."""
    blocked: dict[str, int] = field(default_factory=dict)
    """Groups that are blocked by failed jobs, and since when."""
    breakers: dict[str, Failing] = field(default_factory=dict)
    uniques: dict[str, Unique] = field(default_factory=dict)
    rests: dict[str, int] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    """The last starts of the whole queue, newest first, as many as its rate limit counts."""
    group_starts: dict[str, Starts] = field(default_factory=dict)
    throttled: int = 0
    """Until when the queue's rate limit lets nothing start, according to the last reply to a worker."""
    told: bool = False
    """Whether the worker that got this reply calls again at that time, so that no marker is needed until then."""
    stand_ins: dict[tuple[int, str, str], StandIn] = field(default_factory=dict)
    repeats: dict[str, Repeat] = field(default_factory=dict)
    stopping: dict[int, Stop] = field(default_factory=dict)
    """Runs that are being stopped, by fence."""
    turn: Turn | None = None
    turns_begun: int = 0
    line: dict[str, int] = field(default_factory=dict)
    """With round-robin: the ticket of each ready group."""
    served: list[str] = field(default_factory=list)
    """With round-robin: the groups that this call has taken from, in that order; they go to the end of the line."""
    _released: list[Job] = field(default_factory=list)
    """Failed jobs that this call has resolved, so that they no longer block their group."""
    _ended: dict[str, list[Job]] = field(default_factory=lambda: {"completed": [], "failed": []})

    def publish(self, kind: str, job_id: str, group: str, *more: Any) -> None:
        if self.options.events:
            self.entries[-1].rows[kind].append((job_id, group, *more))

    def send_mail(self, workers: Iterable[str]) -> None:
        """Send mail to workers that are registered."""
        self.mail |= set(workers) & set(self.workers)

    def next_stamp(self, now: int) -> int:
        self.stamp = max(self.stamp + 1, now * 1000)
        return self.stamp

    def in_state(self, state: State, group: str | None = None) -> list[Job]:
        return [j for j in self.jobs.values() if j.state == state and group in (None, j.group)]

    def waiting(self, group: str) -> list[Job]:
        """The waiting jobs of a group in start order."""
        return sorted(self.in_state("waiting", group), key=self.sort_key)

    def sort_key(self, job: Job) -> tuple[int, int, int]:
        """The sort key of a job in its group. With ageing, each level of priority makes the order later."""
        r, ageing = job.record, self.options.priority_ageing_ms
        if ageing is None:
            return r.priority, r.order_ms, r.arrival
        return 0, min(r.order_ms + r.priority * ageing, ORDER_MAX), r.arrival

    def finished(self, kind: Finished) -> list[Job]:
        """The kept jobs of a state, oldest first."""
        return sorted((j for j in self.in_state(kind) if j.stamp), key=lambda job: job.stamp)

    def blockers(self, group: str) -> list[Job]:
        """The jobs that block a group, the one that has blocked it longest first."""
        return sorted((j for j in self.in_state("failed", group) if j.blocks), key=lambda j: (j.blocks, j.id.encode()))

    def opened(self, group: str) -> int:
        """Until when a group rests because its breaker is open; after that a probe may run. 0 = it is closed."""
        return self.breakers[group].opened if group in self.breakers else 0

    def opened_since(self) -> dict[str, int]:
        """Groups whose breaker is open, and since when. A breaker stays open while its group rests again."""
        return {group: failing.since for group, failing in self.breakers.items() if failing.opened}

    def live(self, group: str) -> list[Job]:
        return [j for j in self.jobs.values() if j.group == group and j.state in ("waiting", "delayed", "active")]

    def live_groups(self) -> set[str]:
        """Groups with a live job, or with a run that is being stopped."""
        live = {j.group for j in self.jobs.values() if j.state in ("waiting", "delayed", "active")}
        return live | {stop.group for stop in self.stopping.values()}

    def running(self, group: str) -> int:
        """The slots of a group that are taken."""
        return len(self.in_state("active", group)) + sum(stop.group == group for stop in self.stopping.values())

    def size(self, group: str) -> int:
        """The size that counts for `max_group_size`: live jobs, and runs that are being stopped."""
        return len(self.live(group)) + sum(stop.group == group for stop in self.stopping.values())

    def leased(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.lease]

    def limit_of(self, group: str) -> float:
        if group == UNGROUPED:
            return float("inf")
        return self.conf.get(group, Conf()).limit or self.options.group_concurrency

    def rate_of(self, group: str) -> tuple[int, ...]:
        """The number of starts and the milliseconds; () if the group has no rate limit."""
        if group == UNGROUPED:
            return ()
        every = self.options.group_rate_limit
        return self.conf.get(group, Conf()).rate or (tuple(every.packed()) if every else ())

    def tidy(self) -> None:
        """After every change: remove state of groups and workers that no longer exist."""
        waiting, live = {j.group for j in self.in_state("waiting")}, self.live_groups()
        self.windows = {group: w for group, w in self.windows.items() if group in waiting}
        self.rests = {group: time for group, time in self.rests.items() if group in live}
        if self.had_live and not live:
            self.publish("drained", "", "")
        self.had_live = bool(live)
        self.had_ttl = self.had_ttl or any(job.expires for job in self.jobs.values())
        if not self.leased() and not self.stopping:
            self.turn = None
