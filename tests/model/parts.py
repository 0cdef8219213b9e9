"""The types of the model: a job, its lease, reports and requests of workers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from groupmq.core.drafts import Draft
from groupmq.core.record import Record
from groupmq.protocol.commands import Expired, Stalled, StoredState

State = Literal["waiting", "delayed", "active", "completed", "failed"]
Finished = Literal["completed", "failed"]
Taken = tuple[str, int, StoredState, Record]
UNGROUPED = ""
STORED = "stored"
"""Stands for a result that does not fit into an entry."""


@dataclass(frozen=True)
class Lease:
    fence: int
    deadline: int
    started: int
    worker: str
    cancelled: bool = False
    """A stop of the run was requested: its worker is notified, and the job does not run again."""
    recalled: bool = False
    """Its worker is asked to give it back, or to report that it has started."""
    begun: bool = True
    """Its handler is known to have been called."""
    ahead: bool = False
    """Prefetched, in a row or in a reserve, and not known to have begun."""
    reserved: bool = False
    """Taken in a reserve, as the head of its group."""


@dataclass(frozen=True)
class Stop:
    """A run whose job an operator has ended: it keeps its slot until its handler ends or its lease expires."""

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
    """The end of its back-off while it waits in its group; 0 = none."""
    expires: int = 0
    """When its ttl ends, as long as it has never started; 0 = it has none."""
    lease: Lease | None = None
    stored: StoredState | None = None
    result: bytes | None = None
    snoozed: bool = False
    """Whether its handler asked for that hold by snoozing."""
    blocks: int = 0
    """Since when it blocks its group as a failed job; 0 = it does not."""
    stamp: int = 0
    """When it finished, in microseconds of a clock that only grows."""
    progress: str | None = None
    log: list[list[Any]] = field(default_factory=list)
    """The newest lines, each with its time."""
    history: list[list[Any]] = field(default_factory=list)
    """Runs that ended without completing the job, except for the one that ended the job: `lua/lib/history.lua`."""

    @property
    def group(self) -> str:
        return self.record.group_id or UNGROUPED


@dataclass(frozen=True)
class Report:
    """A worker's report of one run."""

    kind: Literal["complete", "retry", "fail", "release", "limited", "snooze", "begin", "abandon", "ended"]
    id: str
    fence: int
    result: bytes | None = None
    delay: int = 0
    yields: bool = False
    reason: str = ""
    stack: str = ""
    error: str = ""
    begun: bool = False
    """Of a release: whether the handler was called."""


@dataclass(frozen=True)
class Progress:
    """Progress that a handler reports, a line that it appends to its log, or both."""

    id: str
    fence: int
    progress: str | None
    line: str | None


@dataclass(frozen=True)
class Request:
    """One advance of a worker."""

    worker: str
    requester: str
    number: int
    reports: tuple[Report, ...]
    take: int
    lease_ms: int
    turn_size: int = 1
    epoch: int = 0
    """The epoch of the turn that this worker believes it has, in an exclusive queue."""
    chosen: tuple[str, ...] | None = None
    """The jobs to take if they may start, when the order across groups is not promised."""
    row: int = 1
    rows: tuple[int, ...] = ()
    """The length of each row that was taken, up to `row`; empty = all rows have one job."""
    fill: int = 0
    """The number of jobs up to which a reserve may be added."""
    together: int | None = None
    """If the jobs of a row start at once, as a batch: the ms for which a group waits for a full one. Otherwise None."""
    confirms: bool = False
    """Whether the worker confirms when it begins a job; otherwise a job has begun once it was taken."""
    got: int = 0
    """The total number of jobs in the answer."""
    offers: bool | None = None
    """Whether the worker offers a slot if it finds nothing; None: an earlier offer stands."""
    received: int = 0
    """The fence of the last granted job that it has received."""


@dataclass(frozen=True)
class Answer:
    wait_ms: int
    statuses: list[int]
    stalled: list[Stalled]
    expired: list[Expired]
    jobs: list[Taken]
    tick_ms: int
    epoch: int
    rows: tuple[int, ...]
    wanted: int = 0
    """The fence up to which reserves must be given back because another worker is idle; 0 = none."""
    exact_ms: int = -1
    """`wait_ms` without the due times that this call itself has ended."""
    sooner: bool = False
    """Whether a wait that began with this call ends before everything else, so that sleeping workers must be woken."""
    taken_at: int | None = None
    """For a request that was resent, or a job that is granted again: when its jobs were taken; None if the worker
    holds none of them any more."""
    again: bool = False
    """Whether the worker may have received these jobs before."""


class LastReply(NamedTuple):
    """The last reply to the requests of a requester."""

    number: int
    statuses: list[int]
    leases: list[tuple[str, int]]
    stalled: list[Stalled]
    expired: list[Expired]


class Offer(NamedTuple):
    """The slot that an idle worker offers, and the length of the lease that it wants."""

    worker: str
    lease_ms: int


@dataclass(frozen=True)
class Grant:
    """A job that an add has granted, until its worker is known to have received it."""

    worker: str
    job_id: str
    fence: int
    read: bool = False
    """Whether the server has handed it out to the worker, which may not have received it all the same."""


@dataclass
class Conf:
    """An operator's settings of one group."""

    paused: bool = False
    limit: int = 0
    rate: tuple[int, ...] = ()


@dataclass(frozen=True)
class Window:
    """The time for which a group waits for late arrivals."""

    since: int
    till: int


@dataclass(frozen=True)
class Starts:
    """The last starts of a group that has a rate limit, newest first, and until when they may matter."""

    times: tuple[int, ...]
    until: int


@dataclass(frozen=True)
class Unique:
    """An id that stays taken: for how long, until when (0 = its job has not ended), and when the job was created."""

    ms: int
    ends: int
    made: int


@dataclass(frozen=True)
class Failing:
    """The breaker of a group: attempts that failed in a row, until when the group rests, when the failures are
    forgotten, and since when the breaker is open (0 while it is closed)."""

    failures: int
    opened: int
    forgotten: int
    since: int


@dataclass(frozen=True)
class StandIn:
    """The job that stands for all adds of a kind, group and key, and until when."""

    id: str
    arrival: int
    """Distinguishes the job from a later one with the same id."""
    ends: int


@dataclass
class Repeat:
    """A repeating job: its stored fields, and the draft of its occurrences."""

    fields: dict[str, Any]
    draft: Draft


@dataclass(frozen=True)
class Turn:
    """The turn of a worker in an exclusive queue."""

    worker: str
    epoch: int
    deadline: int
    taken: int


@dataclass
class Entry:
    """The events of one call: rows by kind, each with the job, its group and the fields of that kind."""

    at: int
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
