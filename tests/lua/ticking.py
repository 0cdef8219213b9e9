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
    """The ticks of the occurrences that start now, from T0."""
    return [int(job_id.rpartition(":")[2]) - T0 for job_id in engine.run_all(10)]


def watch(engine: Engine, ms: int, step: int = SECOND) -> list[int]:
    """A scheduler looks each `step` for a while; the ticks it ran."""
    found: list[int] = []
    for _ in range(0, ms, step):
        engine.pass_time(step)
        engine.tick(watched_since=engine.now)
        found += ticks_run(engine)
    return found
