"""Looking at repeats through an engine."""

from __future__ import annotations

from typing import Any

from groupmq.core.views import RepeatingJob
from tests.lua.engine import SECOND, T0, Engine


def repeating(engine: Engine) -> list[RepeatingJob]:
    return engine.run_now(engine.operations.get_repeating_jobs())


def remove(engine: Engine, group: str | None, what: Any) -> bool:
    return engine.run_now(engine.operations.remove_repeating_job(group, what))


def ticks_run(engine: Engine) -> list[int]:
    """Run the occurrences that may start now. Returns their ticks, counted from T0."""
    return [int(job_id.rpartition(":")[2]) - T0 for job_id in engine.run_all(10)]


def watch(engine: Engine, ms: int, step: int = SECOND) -> list[int]:
    """Let `ms` pass, and run a scheduler and its jobs after each `step`. Returns the ticks that ran."""
    found: list[int] = []
    for _ in range(0, ms, step):
        engine.pass_time(step)
        engine.tick(watched_since=engine.now)
        found += ticks_run(engine)
    return found
