"""Add in bulk like a single producer: 500 jobs per call, one call at a time."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    context.server.reset()
    yield "bulk_500", context.enqueue(settings.bulk_jobs, chunk=settings.bulk_chunk, inflight=1).rate


SCENARIO = Scenario("bulk", "add in bulk, 500 a call", run)
