"""The cost of an ordering window that delays nothing: jobs have an order in the past, and their windows are over."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    yield from context.compare("windows", ("none", "arrival", "event_time"), ordered=1)


SCENARIO = Scenario("windows", "process with and without ordering windows", run, peers=False)
