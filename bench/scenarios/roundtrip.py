"""How long does it take from adding a job to having its result in another process?

A backlog is added and processed first, to measure the speed of the library on this machine: there adding and processing
follow each other, and later they share the cores, so both count. Then the process that waits for results runs alone,
and once more while a third process adds jobs at half that rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario
from bench.spread import spread

LOAD = 0.5
"""The load of the third process, as a share of the rate that was measured."""
LEAD_S = 0.5
"""Seconds between the start of the load and the first job that is waited for."""


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    context.server.reset()
    added = context.enqueue(settings.roundtrip_backlog)
    with context.start(
        "serve", jobs=settings.roundtrip_backlog, concurrency=100, keep=settings.roundtrip_kept
    ) as worker:
        reached = worker.said("jobs", "seconds")
        rate = reached["jobs"][0] / (reached["seconds"][0] + added.seconds)
        yield from _waits(context, "idle")
        with context.start("load", groups=settings.groups, chunk=settings.chunk, rate=int(rate * LOAD)) as others:
            others.said("rate")
            time.sleep(LEAD_S)
            yield from _waits(context, "load")
            load = others.end("jobs", "seconds", "left")
        yield "roundtrip_rate", load["jobs"][0] / load["seconds"][0]
        yield "roundtrip_left", load["left"][0]
        worker.end("jobs")


def _waits(context: Context, case: str) -> Iterator[Sample]:
    took_ms = context.probe()
    context.keep(f"roundtrip_{case}_ms", took_ms)
    found = spread(took_ms)
    yield f"roundtrip_{case}_count", len(took_ms)
    for figure in ("p50", "p99"):
        yield f"roundtrip_{case}_{figure}", found[figure]


SCENARIO = Scenario(
    "roundtrip",
    "from adding a job to its result, idle and at half load",
    run,
    # Its results are not available outside the worker's process.
    unable=frozenset({"groupmq_node"}),
)
