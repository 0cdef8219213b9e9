"""How many repeating jobs can one worker sustain, and how late do their occurrences start?

One fast repeating job wakes the scheduler often; many slow ones make it read and write many definitions.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.grids import DISTRIBUTION
from bench.scenarios.context import Context, Sample, Scenario

FAST_MS = 50


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    cases = {
        "one": (1, FAST_MS),
        "many": (settings.repeats_many, settings.repeats_ms),
        "most": (settings.repeats_most, settings.repeats_ms),
    }
    for case, (definitions, interval_ms) in cases.items():
        yield from context.ask(
            "repeats",
            f"repeats_{case}",
            ("expected", "run", *DISTRIBUTION),
            jobs=definitions,
            interval_ms=interval_ms,
            seconds=settings.repeats_seconds,
            concurrency=100,
        )


SCENARIO = Scenario("repeats", "repeats that one worker sustains", run, peers=False)
