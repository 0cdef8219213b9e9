"""The words of the model: a job, its lease, what a worker reports and asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from groupmq.commands import Stalled, StoredState
from groupmq.record import Record

State = Literal["waiting", "delayed", "active", "completed", "failed"]
Finished = Literal["completed", "failed"]
Taken = tuple[str, int, StoredState, Record]
UNGROUPED = ""


@dataclass(frozen=True)
class Lease:
    token: int
    deadline: int
    started: int
    worker: str


@dataclass
class Job:
    id: str
    record: Record
    state: State = "waiting"
    due: int = 0
    hold: int = 0
    """The end of its back-off while it waits in its place; 0 = none."""
    lease: Lease | None = None
    stored: StoredState | None = None
    result: bytes | None = None
    stamp: int = 0
    """When it finished, in microseconds of a clock that only grows."""

    @property
    def group(self) -> str:
        return self.record.group_id or UNGROUPED

    @property
    def place(self) -> tuple[int, int, int]:
        return self.record.priority, self.record.order_ms, self.record.arrival


@dataclass(frozen=True)
class Report:
    """What a worker says of one run."""

    kind: Literal["complete", "retry", "fail", "release"]
    id: str
    token: int
    result: bytes | None = None
    delay: int = 0
    yields: bool = False
    reason: str = ""
    stack: str = ""


@dataclass(frozen=True)
class Request:
    """One advance of a worker."""

    worker: str
    lane: str
    number: int
    reports: tuple[Report, ...]
    take: int
    lease_ms: int
    chosen: tuple[str, ...] | None = None
    """The jobs to take if they may start, when the order across groups is not promised."""


@dataclass(frozen=True)
class Answer:
    wait_ms: int
    statuses: list[int]
    stalled: list[Stalled]
    jobs: list[Taken]
    sooner: bool = False
    """A back-off that began with this call is the next thing due: workers that sleep must hear of it."""


@dataclass
class Conf:
    """An operator's settings of one group."""

    paused: bool = False
    limit: int = 0
