"""Process at lower concurrency, where the round trip is the limit."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    for concurrency in (1, 10):
        jobs = context.settings.process_jobs(concurrency)
        context.server.reset()
        context.enqueue(jobs)
        yield f"process_{concurrency}", context.process(jobs, concurrency).rate


SCENARIO = Scenario("concurrency", "process at concurrency 1 and 10", run)
