"""The shares of groups when many large ones were added before a small one: oldest first, and round-robin."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario

FIRST_SHARE = 0.4
"""Shares are counted when this share of the jobs has started."""


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    for case, variant in (("oldest", "none"), ("rounds", "round_robin")):
        yield from context.ask(
            "shares",
            f"fairness_{case}",
            ("before", "min", "median", "max"),
            variant=variant,
            jobs=settings.jobs,
            groups=settings.groups,
            starts=int(settings.jobs * FIRST_SHARE),
            concurrency=100,
        )


SCENARIO = Scenario("fairness", "shares of large groups and of a small one", run, peers=False)
