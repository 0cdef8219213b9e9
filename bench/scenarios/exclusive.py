"""The cost of passing the turn of an exclusive queue from one worker to another."""

from __future__ import annotations

from collections.abc import Iterator

from bench.grids import DISTRIBUTION
from bench.scenarios.context import Context, Sample, Scenario


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    for case, batch in (("single", 1), ("batch", settings.turn_batch)):
        yield from context.ask(
            "turns",
            f"exclusive_{case}",
            ("rate", "hand_overs", *DISTRIBUTION),
            variant="exclusive",
            jobs=settings.turns * batch,
            groups=settings.groups,
            batch=batch,
        )


SCENARIO = Scenario("exclusive", "hand-over between two workers of an exclusive queue", run, peers=False)
