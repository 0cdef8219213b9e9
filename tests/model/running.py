"""Runs the state machines; all their settings are here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import redis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from groupmq.core.errors import ScriptError
from groupmq.protocol import functions
from groupmq.protocol.functions import Script
from tests.model.backlog import BacklogMachine
from tests.model.batching import BatchMachine
from tests.model.machine import QueueMachine
from tests.model.mutant import Mutant, loader
from tests.model.offering import OfferMachine
from tests.model.rowing import RowMachine
from tests.model.strategies import KINDS

STEPS = 50
ROUND = 9
"""Stories of one search. Hypothesis keeps the first tenth of a search small and makes most of the others by varying
earlier ones, so many short independent searches find defects in a fifth of the time of a long one."""
MANY = 400
"""Stories within which every defect must be caught; most are caught after a handful."""
MACHINES: dict[str, type[QueueMachine]] = {
    "rows": RowMachine,
    "backlog": BacklogMachine,
    "batches": BatchMachine,
    "offers": OfferMachine,
}


BROKEN = ("attempt to call", "Error compiling", "variable '")
"""Signs in an error of a patch that names something that no longer exists: any story would catch it."""


def of_kind(name: str) -> type[QueueMachine]:
    """The machine with only one kind of queue. A prefix such as `rows: ` selects another machine of MACHINES."""
    special, _, kind_name = name.rpartition(": ")
    machine = MACHINES.get(special, QueueMachine)
    kinds = [kind for kind in KINDS if kind.name == kind_name]
    return type(machine.__name__, (machine,), {"kinds": kinds})


def scripts_of(machine: type[QueueMachine]) -> Callable[[str], Script]:
    """A loader of the scripts, patched so that one call promotes as few jobs as `joins` of the machine says."""
    if machine.joins == math.inf:
        return functions.load
    text = "local JOINS, MOVES, ENDS = {},"
    return loader(Mutant("few jobs join in one call", text.format(60), text.format(machine.joins)), functions.load)


def run(machine: type[QueueMachine], client: redis.Redis, examples: int, first: int | None = None) -> None:
    """Try `examples` stories: random ones, or, with `first`, the same each time.

    Raises the error of the first story that fails, after shrinking it.
    """
    with patch.object(functions, "load", scripts_of(machine)):
        for number, done in enumerate(range(0, examples, ROUND)):
            _search(machine, client, min(ROUND, examples - done), None if first is None else first + number)


def find_defect(machine: type[QueueMachine], client: redis.Redis, examples: int, likely: int = 0) -> int:
    """Try stories, the same each time, until one fails. Returns the number of the search that found it.

    Raises AssertionError if none fails. The search number `likely` comes first.
    """
    numbers = range(-(-examples // ROUND))
    with patch.object(functions, "load", scripts_of(machine)):
        for number in (likely, *(n for n in numbers if n != likely)):
            try:
                _search(machine, client, ROUND, number, shrink=False)
            # Flaky: a defect whose effect reaches into the next story makes the same story end differently.
            # ValueError: the answer of another call cannot be parsed.
            except (AssertionError, ScriptError, Flaky, ValueError) as error:
                if any(sign in str(error) for sign in BROKEN):
                    raise LookupError("the patch names something that does not exist") from error
                return number
    raise AssertionError(f"none of {examples} stories fails")


def _search(
    machine: type[QueueMachine], client: redis.Redis, examples: int, number: int | None, *, shrink: bool = True
) -> None:
    """Run one search; with a number, it is the same each time."""
    factory: Any = lambda: machine(client)  # noqa: E731
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(factory if number is None else seed(number)(factory), settings=chosen)
