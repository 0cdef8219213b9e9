"""Surveys and states of the monitor with fixed data."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from groupmq import GroupActivity, GroupInfo, JobCounts, JobTotals, LiveWorker, QueueSurvey, RecentFailure, RunningJob
from groupmq.cli.monitor.state import State, seen

AT = datetime(2026, 3, 4, 14, 3, 22, tzinfo=UTC)
HOSTILE = [
    "\x1b[31mred\x1b[2J\x07",
    "漢字の長い名前" * 20,
    "a\nb\tc\r",
    "\u202eright to left\u2066",
    "é" + "\u0301" * 40,
    "👩\u200d👩\u200d👧 family",
    "[bold]markup[/bold] [/] [red",
    "\ud800 half",
    "",
    " ",
    "x" * 5000,
]
"""Names that could break the layout of a screen."""


def run(job_id: str = "job-1", group_id: str | None = "user:42", **more: Any) -> RunningJob:
    given: dict[str, Any] = {"attempt": 1, "running_for": 2.5, "worker": "shop-1"}
    return RunningJob(job_id, group_id, **(given | more))


def failure(job_id: str = "bad-1", state: str | None = "failed", **more: Any) -> RecentFailure:
    given: dict[str, Any] = {"attempt": 3, "error": "no such customer", "ago": 65.0, "final": True, "worker": "shop-1"}
    return RecentFailure(job_id, state=state, **(given | more))


def group(group_id: str | None = "user:42", state: str = "busy", waiting: int = 10, **more: Any) -> GroupActivity:
    given: dict[str, Any] = {"active": 1, "delayed": 0, "waited": 61.0, "held_for": None}
    return GroupActivity(group_id, state, waiting, **(given | more))


def blocked(group_id: str = "user:42", by: str = "bad-1", minutes: float = 5, waiting: int = 3) -> GroupInfo:
    since = AT - timedelta(minutes=minutes)
    return GroupInfo(group_id, "blocked", waiting, 0, 0, 1, False, None, blocked_by=by, blocked_since=since, blockers=1)


def opened(group_id: str = "shop:7", failures: int = 5, minutes: float = 5, waiting: int = 3) -> GroupInfo:
    since, until = AT - timedelta(minutes=minutes), AT + timedelta(minutes=1)
    info = GroupInfo(group_id, "parked", waiting, 0, 0, 1, False, 60.0)
    return replace(info, failures=failures, breaker_since=since, breaker_until=until)


def worker(name: str = "shop-1", busy: int = 3, **more: Any) -> LiveWorker:
    return LiveWorker(name, "host", 4321, busy, **({"concurrency": 8, "seen": 0.4} | more))


def look(second: int = 0, **more: Any) -> QueueSurvey:
    """The survey of a busy queue, `second` seconds after the first one."""
    given: dict[str, Any] = {
        "at": AT + timedelta(seconds=second),
        "paused": False,
        "counts": JobCounts(3, 12_345, 7, 100, 2, 12_355, 812),
        "totals": JobTotals(1000 + 12 * second, 900 + 10 * second, 40 + second // 3, 70 + second // 2),
        "last_hour": JobTotals(0, 41_230, 12, 3),
        "oldest_wait": 63.0,
        "busiest": tuple(group(f"user:{n}", waiting=2000 // n) for n in range(1, 13)),
        "longest_waiting": tuple(
            group(f"shop:{n}", state, waited=4000.0 / n)
            for n, state in enumerate(("busy", "parked", "paused", "ready"), start=1)
        ),
        "runs": (run(running_for=3725.0), run("job-2", None, attempt=2), run("job-3", "user:7", running_for=0.04)),
        "failures": (failure(), failure("bad-2", "waiting", attempt=1, ago=0.2), failure("bad-3", None, ago=90_000.0)),
        "workers": tuple(worker(f"shop-{n}", n) for n in range(1, 4)),
    }
    return QueueSurvey(**(given | more))


EMPTY = QueueSurvey(AT, False, JobCounts(0, 0, 0, 0, 0, 0, 0), JobTotals(), JobTotals(), None)


def state(looks: int = 30, **more: Any) -> State:
    """The state of the monitor after this many surveys, one per second."""
    found = State("orders", "redis://shop.example:6379")
    for second in range(looks):
        found = seen(found, look(second))
    return replace(found, **more)


def hostile_look() -> QueueSurvey:
    """A survey in which every name and text could break the layout of a screen, and every number is huge."""
    huge = 2**63 - 1
    return look(
        counts=JobCounts(huge, huge, huge, huge, huge, huge, huge),
        totals=JobTotals(huge, huge, huge, huge),
        last_hour=JobTotals(huge, huge, huge, huge),
        oldest_wait=1e15,
        busiest=tuple(group(name, waiting=huge, active=huge) for name in HOSTILE),
        longest_waiting=tuple(group(name, name[:10], waited=1e12) for name in HOSTILE),
        groups_blocked=huge,
        blocked=tuple(blocked(name, name, 1e6, huge) for name in HOSTILE),
        breakers_open=huge,
        breakers=tuple(opened(name, huge, 1e6, huge) for name in HOSTILE),
        runs=tuple(run(name, name, attempt=huge, running_for=1e12, worker=name) for name in HOSTILE),
        failures=tuple(failure(name, name[:10], attempt=huge, error=name, ago=1e12) for name in HOSTILE),
        workers=tuple(worker(name, huge, concurrency=huge, seen=1e9) for name in HOSTILE),
    )
