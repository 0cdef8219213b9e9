"""Process groups of a few jobs each, where a worker cannot stay with one group for long.

GroupMQ (Node) gives a worker the next job of the same group, so its rate depends on the length of groups. The table has
both extremes, since otherwise the choice of the job count would decide the comparison. The run is also shorter than the
main one, so the Node libraries are less warmed up in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    jobs = context.settings.groups * context.settings.jobs_per_short_group
    context.server.reset()
    context.enqueue(jobs)
    yield "process_short", context.process(jobs, concurrency=100).rate


SCENARIO = Scenario("short-groups", "process at concurrency 100, 10 jobs per group", run)
