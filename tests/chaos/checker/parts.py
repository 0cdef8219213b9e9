"""The parts of a history: what was added, each run, event, action and fault, and the life of a job."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]
ENDS = ("completed", "failed", "removed")


@dataclass(slots=True)
class Spec:
    """One job that a producer wanted to add."""

    q: str
    uid: str
    told: dict[str, Any]
    t0: float
    t1: float = math.inf
    answer: str = ""
    """ok, or the name of the error; empty if the producer died before the answer came."""
    ack: dict[str, Any] | None = None

    @property
    def acked(self) -> bool:
        return self.ack is not None and not self.ack["dup"]


@dataclass(slots=True)
class Run:
    """One run of a handler."""

    q: str
    job: str
    uid: str
    digest: str
    group: str | None
    fence: int
    attempt: int
    max: int
    priority: int
    order: int
    created: int
    at: int
    """When the lease was granted, by the server's clock."""
    worker: str | None
    pid: int
    actor: str
    start: float
    end: float = math.inf
    how: str = ""
    """returned, raised, retry, gave up, limited, snoozed, cancelled; empty if the process died before the end."""
    lost: float | None = None
    """When its worker learned that it had lost the lease."""

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.job!r} under fence {self.fence} in {self.actor} ({self.pid})"


@dataclass(slots=True)
class Event:
    """One event of a queue's log."""

    q: str
    n: int
    kind: str
    at: int
    job: str | None = None
    group: str | None = None
    attempt: int | None = None
    worker: str | None = None
    delay: float | None = None
    reason: str | None = None
    final: bool | None = None
    fence: int | None = None


@dataclass(slots=True)
class Action:
    """Something that an operator did."""

    q: str
    what: str
    told: Line
    t0: float
    t1: float = math.inf
    answer: Any = None
    error: str | None = None

    @property
    def known(self) -> bool:
        """Whether it certainly took effect."""
        return self.t1 < math.inf and self.error is None


@dataclass(slots=True)
class Fault:
    kind: str
    target: str
    pid: int | None
    t0: float
    t1: float


@dataclass(slots=True)
class Life:
    """A job, from its add until it is gone. Another job may have the same id later."""

    q: str
    id: str
    created: int
    group: str | None
    arrival: int
    """Number of its `added` event in the log."""
    events: list[Event] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    spec: Spec | None = None
    moved: float = math.inf
    """When an operator first changed its due time or its sort key."""

    @property
    def last_end(self) -> Event | None:
        """The event that ended it; None while it is live, and after it was redriven."""
        end = None
        for event in self.events:
            if event.kind in ENDS and not (end is not None and event.kind == "removed"):
                end = event
            elif event.kind == "redriven":
                end = None
        return end

    @property
    def state(self) -> str:
        for event in reversed(self.events):
            if event.kind in (*ENDS, "redriven"):
                return event.kind
        return "live"

    def __str__(self) -> str:
        return f"{self.q}: job {self.id!r}" + (f" of group {self.group!r}" if self.group else "")
