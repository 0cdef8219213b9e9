"""Expired entries are deleted, however many there are: a call deletes some and reports whether there are more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.client.duties.due_work import DueWork
from groupmq.core.limits import Breaker, RateLimit, Throttle
from tests.lua.conftest import MakeEngine
from tests.lua.engine import HOUR, Engine
from tests.support.by_hand import asked

MANY = 250


def _start(engine: Engine) -> None:
    for n in range(MANY):
        engine.add(f"j{n}", group=f"g{n}")
    engine.run_all(50)


def _throttle(engine: Engine) -> None:
    for n in range(MANY):
        engine.add(f"j{n}", group=None, dedupe=Throttle(f"k{n}", ttl=5))


def _take_ids(engine: Engine) -> None:
    for n in range(MANY):
        engine.add(f"j{n}", group=None, unique_for=5)
    engine.run_all(50)


def _fail(engine: Engine) -> None:
    for n in range(MANY):
        engine.add(f"j{n}", group=f"g{n}")
    for taken in engine.take(MANY):
        engine.fail_run(taken)


Left = Callable[[Engine], Any]
KINDS: dict[str, tuple[dict[str, Any], Callable[[Engine], None], Left]] = {
    "starts of groups": ({"group_rate_limit": RateLimit(3, per=5)}, _start, lambda e: e.look().group_starts),
    "throttled adds": ({}, _throttle, lambda e: e.look().dedupe),
    "ids that stay taken": ({"kept": 0}, _take_ids, lambda e: e.look().unique),
    "failures": ({"breaker": Breaker(failures=5, cooldown=1)}, _fail, lambda e: e.look().breakers),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_has_expired_is_deleted_in_bounded_calls(make_engine: MakeEngine, kind: str) -> None:
    options, make, left = KINDS[kind]
    engine = make_engine(**options)
    make(engine)
    assert len(left(engine)) == MANY
    engine.pass_time(HOUR)
    assert engine.due().more_expired == 1
    assert len(left(engine)) == MANY - 100
    engine.run_now(DueWork(asked, lambda: engine.policy).run_once())
    assert not left(engine)
    assert engine.due().more_expired == 0


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_to_be_left_while_it_is_in_effect(make_engine: MakeEngine, kind: str) -> None:
    options, make, left = KINDS[kind]
    engine = make_engine(**options)
    make(engine)
    assert engine.due().more_expired == 0
    assert len(left(engine)) == MANY
