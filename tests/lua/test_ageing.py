"""Priorities that age: waiting for `priority_ageing` counts as much as one level of priority."""

from __future__ import annotations

import random

import pytest

from tests.lua.conftest import MakeEngine
from tests.lua.engine import HOUR, LEASE, SECOND, T0, Engine

YEAR_2100 = 4_102_444_800_000


@pytest.fixture
def ageing(make_engine: MakeEngine) -> Engine:
    """An engine in which ten seconds of waiting are worth one level of priority."""
    return make_engine(priority_ageing_ms=10 * SECOND)


@pytest.mark.parametrize("group", ["g", None])
def test_what_arrives_together_starts_by_priority(ageing: Engine, group: str | None) -> None:
    for priority in (3, 0, 2, 1023, 1):
        ageing.add(f"p{priority}", group=group, priority=priority)
    assert ageing.run_all() == ["p0", "p1", "p2", "p3", "p1023"]


@pytest.mark.parametrize("same_group", [True, False])
def test_who_has_waited_a_level_longer_goes_first_to_the_millisecond(ageing: Engine, same_group: bool) -> None:
    def add(name: str, priority: int) -> None:
        ageing.add(name, group="g" if same_group else name, priority=priority)

    add("lazy", 2)
    ageing.pass_time(20 * SECOND - 1)
    add("in time", 0)
    ageing.pass_time(2)
    add("too late", 0)
    assert ageing.run_all() == ["in time", "lazy", "too late"]


@pytest.mark.parametrize("same_group", [True, False])
def test_a_stream_of_urgent_jobs_starves_nobody(ageing: Engine, same_group: bool) -> None:
    ageing.add("lazy", group="g" if same_group else "lazy", priority=5)
    started: list[str] = []
    for i in range(100):
        ageing.add(f"u{i}", group="g" if same_group else f"u{i}", priority=0)
        taken = ageing.take_one()
        started.append(taken.id)
        ageing.complete(taken)
        ageing.pass_time(SECOND)
    assert started.index("lazy") in (50, 51)


def test_without_ageing_the_same_stream_does_starve(engine: Engine) -> None:
    """This starvation is what ageing prevents."""
    engine.add("lazy", group="lazy", priority=5)
    for i in range(100):
        engine.add(f"u{i}", group=f"u{i}")
        engine.complete(engine.take_one())
        engine.pass_time(SECOND)
    assert engine.state("lazy") == "waiting"


def test_equal_claims_start_by_arrival(ageing: Engine) -> None:
    ageing.add("first", group="a", priority=1)
    ageing.pass_time(10 * SECOND)
    ageing.add("second", group="b", priority=0)
    assert ageing.run_all() == ["first", "second"]


def test_a_job_with_an_order_of_its_own_ages_across_groups_from_its_arrival(ageing: Engine) -> None:
    """An order need not be a time: an order of 5 must not count as a wait since 1970."""
    ageing.add("a", group="a", order_ms=5, priority=1)
    ageing.add("b", group="b", order_ms=2**62, priority=0)
    ageing.add("c", group="c", priority=0)
    assert ageing.run_all() == ["b", "c", "a"]


@pytest.mark.parametrize("order", [-(2**63), 2**63 - 1])
def test_orders_at_the_edge_of_64_bits_stay_orders(ageing: Engine, order: int) -> None:
    ageing.add("edge", order_ms=order, priority=1023)
    ageing.add("zero", order_ms=0, priority=0)
    assert ageing.run_all() == (["edge", "zero"] if order < 0 else ["zero", "edge"])


def test_a_delayed_job_ages_from_its_due_time(ageing: Engine) -> None:
    ageing.add("later", group="a", priority=1, delay=60)
    ageing.pass_time(60 * SECOND)
    ageing.add("now", group="b", priority=0)
    ageing.due()
    assert ageing.run_all() == ["now", "later"]


@pytest.mark.parametrize("how", ["retry", "stall", "release"])
def test_a_job_that_comes_back_keeps_its_age(ageing: Engine, how: str) -> None:
    ageing.add("old", group="a", priority=1)
    ageing.pass_time(20 * SECOND)
    taken = ageing.take_one()
    if how == "retry":
        ageing.retry_run(taken, 0)
    elif how == "stall":
        ageing.pass_time(LEASE)
        ageing.due()
    else:
        ageing.release(taken)
    ageing.add("new", group="b", priority=0)
    assert ageing.run_all() == ["old", "new"]


@pytest.mark.parametrize("start", [0, T0, YEAR_2100])
def test_ageing_works_for_any_clock(make_engine: MakeEngine, start: int) -> None:
    engine = make_engine(priority_ageing_ms=10 * SECOND)
    engine.now = start
    engine.add("lazy", group="a", priority=1)
    engine.pass_time(10 * SECOND - 1)
    engine.add("urgent", group="b", priority=0)
    engine.pass_time(2)
    engine.add("late", group="c", priority=0)
    assert engine.run_all() == ["urgent", "lazy", "late"]


def test_any_mixture_starts_by_its_age_and_priority(ageing: Engine) -> None:
    source = random.Random(7)
    jobs = []
    for i in range(200):
        priority = source.randrange(6)
        jobs.append((ageing.now or 0) + priority * 10 * SECOND)
        ageing.add(f"j{i}", group=f"g{i % 20}" if i % 3 else None, priority=priority)
        ageing.pass_time(source.choice([1, 7, 500, 3 * SECOND]))
    ageing.pass_time(HOUR)
    for group in range(20):
        ageing.limit(f"g{group}", 50)
    assert ageing.run_all(7) == [f"j{i}" for i in sorted(range(200), key=lambda i: (jobs[i], i))]


def test_moving_a_job_in_time_moves_its_age(ageing: Engine) -> None:
    ageing.add("a", group="g", priority=0, delay=60)
    ageing.add("b", group="g", priority=1)
    ageing.promote("a")
    assert ageing.run_all() == ["a", "b"]


def test_ageing_is_no_damage_to_repair(ageing: Engine) -> None:
    for i in range(10):
        ageing.add(f"j{i}", group=f"g{i % 3}", priority=i % 4)
        ageing.pass_time(SECOND)
    assert ageing.run_now(ageing.operations.repair()).clean
