"""What an ordering window costs when it holds nothing back: jobs carry an order of the past, windows have run out."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    yield from context.compare("windows", ("none", "arrival", "event_time"), ordered=1)


SCENARIO = Scenario("windows", "process with and without ordering windows", run, peers=False)
