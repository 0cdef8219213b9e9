"""Does a job cost more when a million others wait?

Two queues are on the same server, one with a short and one with a long backlog. Alternately, the same number of jobs
is added to each and processed, so that the backlog stays the same and noise of the machine affects both.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    context.server.reset()
    for name, waiting in (("shallow", settings.shallow), ("deep", settings.deep)):
        context.enqueue(waiting, queue=name)
    for _ in range(settings.depth_takes):
        for name in ("shallow", "deep"):
            yield from _step(context, name)


def _step(context: Context, name: str) -> Iterator[Sample]:
    jobs = context.settings.depth_step
    with context.meter.measure() as adding:
        added = context.enqueue(jobs, queue=name)
    with context.meter.measure() as processing:
        taken = context.take(jobs, 100, queue=name)
    yield (
        f"depth_server_{name}",
        adding[0].command_us / added.handled + processing[0].command_us / taken.handled,
    )
    yield f"depth_wall_{name}", 1e6 * (1 / added.rate + 1 / taken.rate)


SCENARIO = Scenario("depth", "cost per job with a short and a long backlog", run, peers=False)
