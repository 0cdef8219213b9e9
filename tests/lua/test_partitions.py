"""Functions of queues with partitions: entries that say where a job is, and numbers made of those of others."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.settings import StoredQueue
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import Engine
from tests.support.meta import decode


def test_an_entry_that_was_written_again_stays(engine: Engine) -> None:
    key = engine.keys.elsewhere
    engine.client.hset(key, mapping={"gone": "5 1", "back": "5 2", "other": "6 1"})
    assert engine.call(commands.strike(["gone", "back", "never"], ["5 1", "5 1", "5 1"])) == 1
    assert engine.client.hgetall(key) == {b"back": b"5 2", b"other": b"6 1"}


def numbers(engine: Engine) -> Any:
    return engine.client.hget(engine.keys.meta, "numbers")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_numbers_go_on_from_the_highest(make_engine: MakeEngine, order: tuple[int, int]) -> None:
    """Else an arrival or a fence would be given twice."""
    small, large, made = make_engine(), make_engine(), make_engine()
    small.add("a", "b", "c")
    small.call(commands.switch(paused=True))
    large.add(*(f"job {i}" for i in range(9)))
    large.advance(take=1)
    both = [numbers((small, large)[i]) for i in order]
    made.call(commands.absorb(both, "made", StoredQueue(commands.PARTITIONED)))
    found, highest = decode({"numbers": numbers(made)}), decode({"numbers": numbers(large)})
    for name in ("seq", "stamp", "order"):
        assert found[name] == highest[name]
    assert found["paused"] == "1"
