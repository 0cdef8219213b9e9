"""The words of the model: a job, its lease, what a worker reports and asks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

from groupmq.core.drafts import Draft
from groupmq.core.record import Record
from groupmq.protocol.commands import Stalled, StoredState

State = Literal["waiting", "delayed", "active", "completed", "failed"]
Finished = Literal["completed", "failed"]
Taken = tuple[str, int, StoredState, Record]
UNGROUPED = ""
STORED = "stored"
"""Told instead of a result that has no room in an entry."""


@dataclass(frozen=True)
class Lease:
    fence: int
    deadline: int
    started: int
    worker: str
    cancelled: bool = False
    """The run is to be stopped: its worker is told, and it is not tried again."""
    recalled: bool = False
    """Its worker is asked to give it back, or to say that it has begun."""
    ahead: bool = False
    """Taken behind another job of its group or in a reserve, and not known to have started."""
    reserved: bool = False
    """Taken in a reserve, as the head of its group."""


@dataclass(frozen=True)
class Stop:
    """A run whose job an operator has ended: it keeps its slot until its handler has ended, or its lease."""

    job_id: str
    group: str
    worker: str
    deadline: int


@dataclass
class Job:
    id: str
    record: Record
    state: State = "waiting"
    due: int = 0
    hold: int = 0
    """The end of its back-off while it waits in its place; 0 = none."""
    expires: int = 0
    """When its ttl ends, as long as it has never started; 0 = it has none."""
    lease: Lease | None = None
    stored: StoredState | None = None
    result: bytes | None = None
    snoozed: bool = False
    """Its handler asked for that hold."""
    blocks: int = 0
    """Since when it blocks its group, which it does as a failed job; 0 = it does not."""
    stamp: int = 0
    """When it finished, in microseconds of a clock that only grows."""
    progress: str | None = None
    log: list[list[Any]] = field(default_factory=list)
    """The newest lines, each with its time."""
    history: list[list[Any]] = field(default_factory=list)
    """Runs that ended and did not complete, but for the one that ended the job: `lua/lib/history.lua`."""

    @property
    def group(self) -> str:
        return self.record.group_id or UNGROUPED


@dataclass(frozen=True)
class Report:
    """What a worker says of one run."""

    kind: Literal["complete", "retry", "fail", "release", "limited", "snooze", "begin", "abandon", "ended"]
    id: str
    fence: int
    result: bytes | None = None
    delay: int = 0
    yields: bool = False
    reason: str = ""
    stack: str = ""
    error: str = ""


@dataclass(frozen=True)
class Note:
    """What a handler says of its run."""

    id: str
    fence: int
    progress: str | None
    line: str | None


@dataclass(frozen=True)
class Request:
    """One advance of a worker."""

    worker: str
    lane: str
    number: int
    reports: tuple[Report, ...]
    take: int
    lease_ms: int
    batch: int = 1
    epoch: int = 0
    """Of the turn this worker believes to have, in an exclusive queue."""
    chosen: tuple[str, ...] | None = None
    """The jobs to take if they may start, when the order across groups is not promised."""
    row: int = 1
    rows: tuple[int, ...] = ()
    """How many jobs were taken together, row by row: up to `row`, if they may be; empty = each by itself."""
    fill: int = 0
    """Where the others are fewer, a reserve may make them so many."""
    got: int = 0
    """How many jobs came in all."""


@dataclass(frozen=True)
class Answer:
    wait_ms: int
    statuses: list[int]
    stalled: list[Stalled]
    jobs: list[Taken]
    tick_ms: int
    epoch: int
    rows: tuple[int, ...]
    wanted: int = 0
    """Somebody is idle: the fence up to which reserves are to be given back."""
    exact_ms: int = -1
    """The same, if it is known what this call itself has ended."""
    sooner: bool = False
    """A wait that began with this call is the next thing due: workers that sleep must hear of it."""
    taken_at: int | None = None
    """Of a request that was sent again: when its jobs were taken; None if none of them is held any more."""


@dataclass
class Conf:
    """An operator's settings of one group."""

    paused: bool = False
    limit: int = 0
    rate: tuple[int, ...] = ()


@dataclass(frozen=True)
class Window:
    """A group waits for late arrivals."""

    since: int
    till: int


@dataclass(frozen=True)
class Starts:
    """The last starts of a group that has a rate limit, newest first, and until when they may matter."""

    times: tuple[int, ...]
    until: int


@dataclass(frozen=True)
class Unique:
    """An id that stays taken: for how long, until when (0 = its job has not ended), and when the job was made."""

    ms: int
    ends: int
    made: int


@dataclass(frozen=True)
class Failing:
    """Attempts of a group that failed in a row, until when it rests because of that, when they are forgotten, and since
    when the breaker is open: 0 while it is closed."""

    failures: int
    opened: int
    forgotten: int
    since: int


@dataclass(frozen=True)
class StandIn:
    """The job that stands for all adds of a kind, group and key, and until when."""

    id: str
    arrival: int
    """Tells the job from a later one that got its id."""
    ends: int


@dataclass
class Repeat:
    """A repeating job: what is stored of it, and the draft that its jobs are made from."""

    fields: dict[str, Any]
    draft: Draft


@dataclass(frozen=True)
class Turn:
    """Of one worker, in an exclusive queue."""

    worker: str
    epoch: int
    deadline: int
    taken: int


@dataclass
class Entry:
    """What one call tells those who listen: rows by kind, each with the job, its group and what the kind knows."""

    at: int
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
