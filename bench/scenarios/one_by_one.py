"""Process jobs that each have their own group, and jobs without groups.

BullMQ and bee-queue have no groups, so the same run is shown in both lines. GroupMQ (Node) has no jobs without groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.metrics import CONCURRENCIES, OURS
from bench.scenarios.context import Context, Sample, Scenario

GROUPED = "groupmq_node"
FEWER = 4
"""GroupMQ (Node) gets fewer jobs: at concurrency 1 with a group per job it was ten times slower than the others."""


def run(context: Context) -> Iterator[Sample]:
    for concurrency in CONCURRENCIES:
        jobs = context.settings.one_by_one_jobs(concurrency)
        if context.library.key == GROUPED:
            jobs //= FEWER
        rate = _drained(context, jobs, concurrency, groups=jobs)
        yield f"each_{concurrency}", rate
        if context.library.key == OURS:
            rate = _drained(context, jobs, concurrency, groups=0)
        if context.library.key != GROUPED:
            yield f"ungrouped_{concurrency}", rate


def _drained(context: Context, jobs: int, concurrency: int, *, groups: int) -> float:
    context.server.reset()
    context.enqueue(jobs, groups=groups)
    return context.process(jobs, concurrency).rate


SCENARIO = Scenario("one-by-one", "process with a group per job, and without groups", run)
