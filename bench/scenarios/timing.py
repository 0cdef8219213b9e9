"""How late do delayed jobs start?"""

from __future__ import annotations

from collections.abc import Iterator

from bench.grids import DISTRIBUTION
from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    yield from context.ask(
        "delays",
        "timing",
        DISTRIBUTION,
        jobs=settings.delays,
        groups=settings.groups,
        seconds=settings.delays_seconds,
        concurrency=100,
    )


SCENARIO = Scenario("timing", "lateness of delayed jobs", run, peers=False)
