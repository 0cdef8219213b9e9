"""Start order inside a group is (priority, order_ms, arrival), exactly."""

from __future__ import annotations

import random

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.engine import SECOND, T0, Engine


def test_a_group_starts_its_jobs_in_the_order_they_arrived(engine: Engine) -> None:
    ids = [f"j{i}" for i in range(50)]
    for job_id in ids:
        engine.add(job_id)
    assert engine.run_all() == ids


def test_ten_thousand_adds_in_one_millisecond_keep_their_order(engine: Engine) -> None:
    ids = [f"j{i}" for i in random.Random(1).sample(range(10**9), 10_000)]
    for at in range(0, 10_000, 1000):
        engine.call(
            commands.add(
                [draft(engine.options, None, group_id="g", job_id=job_id) for job_id in ids[at : at + 1000]], T0
            )
        )
    engine.limit("g", 1000)
    assert engine.run_all(1000) == ids


def test_a_clock_that_steps_back_does_not_reorder_arrivals(engine: Engine) -> None:
    ids: list[str] = []
    for step in (0, -1, -SECOND, 5, -(10**9), 1, 0, -86_400_000):
        engine.now = T0 + step
        ids.append(f"at{step}-{len(ids)}")
        engine.add(ids[-1])
    assert engine.run_all() == ids


def test_arrivals_around_midnight_and_after_a_long_time_keep_their_order(engine: Engine) -> None:
    midnight = 1_700_006_400_000
    ids: list[str] = []
    for at in (midnight - 1, midnight - 1, midnight, midnight + 1, midnight + 365 * 86_400_000):
        engine.now = at
        ids.append(f"j{len(ids)}")
        engine.add(ids[-1])
    assert engine.run_all() == ids


EXACT = [-(2**63), -(2**63) + 1, -(2**53) - 1, -(2**53), -(2**53) + 1, -1, 0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**62]
EXACT += [2**62 + 1, 2**63 - 2, 2**63 - 1]


def test_order_is_exact_over_all_of_64_bits(engine: Engine) -> None:
    shuffled = random.Random(2).sample(EXACT, len(EXACT))
    for order in shuffled:
        engine.add(str(order), order_ms=order)
    assert engine.run_all() == [str(order) for order in EXACT]


def test_order_survives_a_retry_and_a_stall_exactly(engine: Engine) -> None:
    for order in reversed(EXACT):
        engine.add(str(order), order_ms=order)
    started = []
    for n, order in enumerate(EXACT):
        taken = engine.take_one()
        assert taken.id == str(order)
        if n % 3 == 0:
            engine.retry_run(taken, 0)
            taken = engine.take_one()
        elif n % 3 == 1:
            engine.stall()
            taken = engine.take_one()
        started.append(taken.id)
        engine.complete(taken)
    assert started == [str(order) for order in EXACT]


def test_equal_orders_start_by_arrival(engine: Engine) -> None:
    for job_id in ("z", "a", "m"):
        engine.add(job_id, order_ms=2**60)
    assert engine.run_all() == ["z", "a", "m"]


def test_a_smaller_order_that_arrives_later_overtakes_what_waits_but_not_what_runs(engine: Engine) -> None:
    engine.add("b", order_ms=20)
    engine.add("c", order_ms=30)
    running = engine.take_one()
    engine.add("a", order_ms=10)
    assert engine.take(5) == []
    engine.complete(running)
    assert engine.run_all() == ["a", "c"]


def test_a_gap_in_arrivals_never_outweighs_the_order(engine: Engine) -> None:
    engine.add("late", order_ms=T0 + 1)
    for i in range(3000):
        engine.add(f"x{i}", group="other")
    engine.add("early", order_ms=T0)
    engine.limit("other", 500)
    engine.pause("other")
    assert engine.run_all() == ["early", "late"]
    engine.resume("other")
    assert len(engine.run_all(500)) == 3000


def test_a_more_urgent_job_overtakes_waiting_ones_of_its_group(engine: Engine) -> None:
    engine.add("normal", priority=5)
    engine.add("urgent", priority=0)
    engine.add("lazy", priority=1023)
    engine.add("normal too", priority=5)
    assert engine.run_all() == ["urgent", "normal", "normal too", "lazy"]


def test_priority_comes_before_order(engine: Engine) -> None:
    engine.add("a", priority=1, order_ms=-(2**63))
    engine.add("b", priority=0, order_ms=2**63 - 1)
    assert engine.run_all() == ["b", "a"]


@pytest.mark.parametrize("limit", [1, 3])
def test_the_order_of_any_mixture_is_that_of_its_triples(engine: Engine, limit: int) -> None:
    source = random.Random(3)
    jobs = []
    for arrival in range(300):
        priority, order = source.randrange(3), source.choice([*EXACT, source.randrange(-(2**63), 2**63)])
        jobs.append((priority, order, arrival))
        engine.add(str(arrival), priority=priority, order_ms=order)
    if limit > 1:
        engine.limit("g", limit)
    assert engine.run_all(limit) == [str(arrival) for _, _, arrival in sorted(jobs)]
