"""groupmq compared with the Python libraries: add in bulk, process, and how soon a job starts in an idle worker."""

from __future__ import annotations

from collections.abc import Iterator

from bench.metrics import CONCURRENCIES
from bench.scenarios.context import Context, Sample, Scenario
from bench.scenarios.trickle import trickled
from bench.spread import spread

RATE = 200
SLOTS = 10
"""Concurrency of the worker that waits for single jobs."""


TRIAL = 200
"""Jobs of a first run, which shows how many a library can process in a few seconds."""
SECONDS = 3


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    able = [concurrency for concurrency in CONCURRENCIES if concurrency <= context.library.most]
    soon = _tried(context) * SECONDS
    for concurrency in able:
        jobs = max(TRIAL, min(settings.python_process_jobs(concurrency), int(soon)))
        context.server.reset()
        added = context.enqueue(jobs)
        if concurrency == able[-1]:
            yield "python_add", added.rate
        yield f"python_process_{concurrency}", context.process(jobs, concurrency).rate
    slots = min(SLOTS, context.library.most)
    _, waits, _ = trickled(context, RATE, seconds=settings.trickle_slow_seconds, concurrency=slots)
    context.keep("python_start_ms", waits)
    found = spread(waits)
    yield "python_start_p50", found["p50"]
    yield "python_start_p99", found["p99"]


def _tried(context: Context) -> float:
    """Jobs per second at concurrency 10, measured once: libraries differ by a factor of a hundred."""
    if "trial" not in context.rates:
        context.server.reset()
        context.enqueue(TRIAL)
        context.rates["trial"] = context.process(TRIAL, SLOTS).rate
    return context.rates["trial"]


SCENARIO = Scenario("python", "compared with the Python libraries", run, kinds=frozenset({"python"}))
