"""repair under the rules of a queue: repeats, times to start, windows, rounds, rates, turns and ageing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core.limits import RateLimit
from groupmq.core.ordering import Ordering
from groupmq.core.schedule import Cron, Every
from groupmq.core.views import RepairReport
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, Engine
from tests.support import meta

Damage = Callable[[Engine], Any]


def repair(engine: Engine) -> RepairReport:
    return engine.run_now(engine.operations.repair())


def repeat_ids(engine: Engine) -> list[str]:
    return sorted(engine.look().repeats)


def build(engine: Engine) -> None:
    engine.repeat(Every(600), group="r")
    engine.repeat(Cron("0 9 * * *"), group=None)
    engine.add("a", ttl=600)
    engine.add("b", delay=60, ttl=600)


DAMAGE: dict[str, Damage] = {
    "a tick": lambda e: e.client.zrem(e.key("ticks"), repeat_ids(e)[0]),
    "all ticks": lambda e: e.client.delete(e.key("ticks")),
    "a tick at a wrong time": lambda e: e.client.zadd(e.key("ticks"), {repeat_ids(e)[0]: 5}),
    "a tick of no repeat": lambda e: e.client.zadd(e.key("ticks"), {"ghost": 5}),
    "a definition": lambda e: e.client.hdel(e.key("repeats"), repeat_ids(e)[0]),
    "all definitions": lambda e: e.client.delete(e.key("repeats")),
    "the time of the next tick": lambda e: meta.zero(e.client, e.keys.meta, "repeat_at"),
    "a ttl of a job that does not exist": lambda e: e.client.zadd(e.key("expiring"), {"ghost": 9e15}),
    "the record of a job with a ttl": lambda e: e.client.hdel(e.key("jobs"), "a"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_to_repeats_and_times_is_found_named_and_mended_at_once(engine: Engine, kind: str) -> None:
    build(engine)
    assert repair(engine).clean
    DAMAGE[kind](engine)
    assert engine.violations() != []
    assert repair(engine).total > 0
    assert engine.violations() == []
    assert repair(engine).mended == {}


@pytest.mark.parametrize("kind", ["a tick", "all ticks", "a tick at a wrong time", "the time of the next tick"])
def test_after_a_repair_repeats_tick_when_they_would_have(engine: Engine, kind: str) -> None:
    build(engine)
    DAMAGE[kind](engine)
    repair(engine)
    assert engine.advance().tick_ms == 600 * SECOND
    engine.pass_time(600 * SECOND)
    assert engine.tick(watched_since=engine.now).added == 1


@pytest.mark.parametrize("raw", [b"", b"x", b"\0\0\0\x09\x80", b"\xff\xff\xff\xff", b"\0\0\0\x01\xc1"])
def test_a_definition_that_is_none_stops_neither_the_others_nor_a_repair(engine: Engine, raw: bytes) -> None:
    build(engine)
    bad = repeat_ids(engine)[0]
    good = repeat_ids(engine)[1]
    engine.client.hset(engine.key("repeats"), bad, raw)
    engine.pass_time(48 * 3600 * SECOND)
    assert engine.tick().added == 1
    assert repair(engine).total > 0
    assert set(engine.look().repeats) == {good}


RULES: dict[str, dict[str, Any]] = {
    "event time": {"ordering": Ordering.event_time(600)},
    "arrival": {"ordering": Ordering.arrival(600)},
    "round-robin": {"fairness": "round-robin"},
    "rate": {"rate_limit": RateLimit(2, 60)},
    "group rate": {"group_rate_limit": RateLimit(1, 60)},
    "exclusive": {"exclusive": True},
    "ageing": {"priority_ageing_ms": SECOND},
}
PLACES: dict[str, Damage] = {
    "ready": lambda e: e.client.delete(e.key("ready")),
    "parked": lambda e: e.client.delete(e.key("parked")),
    "both": lambda e: e.client.delete(e.key("ready"), e.key("parked")),
    "groups": lambda e: e.client.delete(e.key("groups")),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rules", RULES)
def test_places_are_mended_under_every_rule(make_engine: MakeEngine, rules: str, place: str) -> None:
    """A lost window or rest cannot be restored, but each group is put where its contents say that it belongs."""
    engine = make_engine(**RULES[rules])
    for i in range(4):
        engine.add(f"g{i}", f"h{i}", group=f"group{i}", priority=i % 2)
        engine.pass_time(7)
    if rules not in ("event time", "arrival"):
        engine.complete(*engine.take(1))
    engine.add("alone", group=None)
    assert repair(engine).clean
    PLACES[place](engine)
    repair(engine)
    assert engine.violations() == []
    assert repair(engine).clean
    engine.pass_time(3600 * SECOND)
    started = []
    for _ in range(20):
        started += engine.run_all(2)
        engine.pass_time(61 * SECOND)
    assert len(started) == (9 if rules in ("event time", "arrival") else 8)
