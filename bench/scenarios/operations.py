"""How long the slowest call of each operation on a large queue keeps the server busy, by its slow log."""

from __future__ import annotations

from collections.abc import Iterator

from bench.grids import OPERATIONS
from bench.scenarios.context import Context, Sample, Scenario

FIGURES = ("slowest", "slow")


def run(context: Context) -> Iterator[Sample]:
    settings = context.settings
    with context.server.undisturbed():
        for _ in range(settings.rounds):  # the quietest round of each operation counts
            yield from context.ask(
                "operations",
                "operations",
                [f"{operation}_{figure}" for operation in OPERATIONS for figure in FIGURES],
                jobs=settings.operations_jobs,
                groups=settings.operations_groups,
                take=settings.operations_deep,
            )


SCENARIO = Scenario("operations", "slow log of every operation", run, peers=False)
