"""Process with handlers that take 1 ms and 10 ms, and, for groupmq alone, with `def` handlers beside `async def`."""

from __future__ import annotations

from collections.abc import Iterator

from bench.grids import HANDLERS
from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    for name, jobs, sleep_ms, concurrency in (
        ("handlers_1ms", settings.handlers_1ms, 1, 10),
        ("handlers_10ms", settings.handlers_10ms, 10, 100),
    ):
        context.server.reset()
        context.enqueue(jobs)
        yield name, context.process(jobs, concurrency, sleep_ms=sleep_ms).rate


def run_kinds(context: Context) -> Iterator[Sample]:
    for case in HANDLERS:
        work, _, slots = case.rpartition("_")
        concurrency = int(slots)
        sleep_ms = 0 if work == "none" else int(work.removesuffix("ms"))
        jobs = min(context.settings.kinds_jobs, context.settings.process_jobs(concurrency))
        for kind in ("async", "def"):
            context.server.reset()
            context.enqueue(jobs)
            done = context.process(jobs, concurrency, sleep_ms=sleep_ms, blocking=int(kind == "def"))
            yield f"kinds_{case}_{kind}", done.rate


SCENARIO = Scenario("handlers", "process with handlers of 1 ms and 10 ms", run)
KINDS = Scenario("def-handlers", "process with def and async def handlers", run_kinds, peers=False)
