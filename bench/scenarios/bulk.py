"""Add in bulk the way a single producer does: 500 jobs a call, and the next call when the last was answered."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    context.server.reset()
    yield "bulk_500", context.enqueue(settings.bulk_jobs, chunk=settings.bulk_chunk, inflight=1).rate


SCENARIO = Scenario("bulk", "add in bulk, 500 a call", run)
