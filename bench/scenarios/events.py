"""The cost of the event log when nobody reads it: the same jobs on a queue with events and on one without."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    yield from context.compare("events", ("silent", "events"), adding=True)


SCENARIO = Scenario("events", "add and process with and without events", run, peers=False)
