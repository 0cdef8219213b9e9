"""How the state machines are run: one place for their settings."""

from __future__ import annotations

from typing import Any

import redis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import QueueMachine
from tests.model.rowing import RowMachine
from tests.model.strategies import KINDS

STEPS = 50
ROUND = 9
"""Stories of one search. Hypothesis keeps the first tenth of a search small and makes most of the others by varying
earlier ones: many short searches, which have nothing in common, find defects in a fifth of the time of a long one."""
MANY = 400
"""Stories in which any defect is caught; most take a handful."""
ROWS = "rows: "


def of_kind(name: str) -> type[QueueMachine]:
    """The machine with one kind of queue only; `rows: ` and the kind: the one whose jobs are taken in rows."""
    machine = RowMachine if name.startswith(ROWS) else QueueMachine
    kinds = [kind for kind in KINDS if kind.name == name.removeprefix(ROWS)]
    return type(machine.__name__, (machine,), {"kinds": kinds})


def run(
    machine: type[QueueMachine], client: redis.Redis, examples: int, *, shrink: bool = True, first: int | None = None
) -> None:
    """Try `examples` stories, random ones, or with `first`, the same each time.

    Raises the AssertionError of the first that goes wrong, as short as it can be.
    """
    for number, done in enumerate(range(0, examples, ROUND)):
        factory: Any = lambda: machine(client)  # noqa: E731
        if first is not None:
            factory = seed(first + number)(factory)
        chosen = settings(
            max_examples=min(ROUND, examples - done),
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(factory, settings=chosen)
