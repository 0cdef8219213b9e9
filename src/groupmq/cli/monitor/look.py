"""What one look at a queue has seen: plain, frozen, all times relative to the server's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from groupmq.views import JobCounts

RATES = ("added", "processed", "failed", "retried")


@dataclass(frozen=True, slots=True)
class Totals:
    """Jobs so far. `added` are those that live or have ended, so it falls when somebody removes jobs."""

    added: int = 0
    processed: int = 0
    failed: int = 0
    retried: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A group; the id of the jobs without one is None."""

    id: str | None
    state: str
    waiting: int
    active: int
    delayed: int
    waited: float | None
    """Seconds its first job has waited."""
    held_for: float | None
    """Seconds until that may start, where it has to wait."""


@dataclass(frozen=True, slots=True)
class Run:
    """A job that runs."""

    id: str
    group_id: str | None
    attempt: int
    running_for: float
    worker: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The newest failed attempt of a job."""

    id: str
    attempt: int
    error: str
    ago: float
    final: bool
    worker: str
    state: str | None
    """In which the job is now; None if it is gone."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that lives."""

    name: str
    host: str
    pid: int
    busy: int
    concurrency: int
    seen: float
    """Seconds since it said so."""


@dataclass(frozen=True, slots=True)
class Look:
    """A queue at one moment."""

    at: datetime
    paused: bool
    counts: JobCounts
    totals: Totals
    last_hour: Totals
    oldest_wait: float | None
    busiest: tuple[Group, ...] = ()
    most_delayed: tuple[Group, ...] = ()
    runs: tuple[Run, ...] = ()
    failures: tuple[Failure, ...] = ()
    workers: tuple[Worker, ...] = ()
    cursor: str = "0"
    """Where among the groups the next look goes on."""

    def facts(self) -> dict[str, Any]:
        """For `--json`, in the order in which it is told; `added` is known as a rate only."""
        return {
            "at": self.at,
            "paused": self.paused,
            "counts": self.counts,
            "oldest_wait": self.oldest_wait,
            "last_hour": {name: getattr(self.last_hour, name) for name in RATES if name != "added"},
            "groups": {"busiest": self.busiest, "most_delayed": self.most_delayed},
            "active": self.runs,
            "workers": self.workers,
            "failures": self.failures,
        }
