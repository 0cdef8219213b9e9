"""The gain of batches where ordering costs most: one hot group, 1 ms for each call of the handler."""

from __future__ import annotations

from collections.abc import Iterator

from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    yield from context.ask(
        "batches",
        "hot_group",
        ("single", "batch"),
        jobs=settings.hot_group_jobs,
        batch=settings.hot_group_batch,
        sleep_ms=1,
    )


SCENARIO = Scenario("batches", "one hot group, 1 ms a call, one by one and in batches", run, peers=False)
