"""The cost of a rate limit far above the load: of the queue, also with its list of starts full, and of each group."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    yield from context.compare("rate", ("none", "rate", "rate_full", "group_rate"))


SCENARIO = Scenario("rate", "process with and without rate limits", run, peers=False)
