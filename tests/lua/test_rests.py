"""RateLimited: the group of the job rests, and no attempt is used."""

from __future__ import annotations

from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, Engine


def test_a_rate_limited_group_rests_and_uses_no_attempt(engine: Engine) -> None:
    engine.add("a", "b", max_attempts=1)
    assert engine.limit_run(engine.take_one(), 5 * SECOND) == [1]
    assert engine.group() == "parked"
    assert engine.advance(take=5).wait_ms == 5 * SECOND
    engine.pass_time(5 * SECOND)
    taken = engine.take_one()
    assert (taken.id, taken.stored.attempts) == ("a", 0)


def test_the_rest_is_of_the_group_not_of_the_job(engine: Engine) -> None:
    engine.add("b", order_ms=2)
    engine.limit_run(engine.take_one(), 5 * SECOND)
    engine.add("a", order_ms=1)
    assert engine.take(5) == []
    engine.remove("b")
    assert engine.take(5) == []
    engine.pass_time(5 * SECOND)
    assert engine.run_all() == ["a"]


def test_other_groups_go_on_while_one_rests(engine: Engine) -> None:
    engine.add("a", group="g")
    engine.limit_run(engine.take_one(), 5 * SECOND)
    engine.add("x", group="h")
    assert engine.run_all() == ["x"]


def test_the_longer_of_two_rests_counts(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.add("a", "b")
    first, second = engine.take(2)
    engine.limit_run(first, 9 * SECOND)
    engine.limit_run(second, 5 * SECOND)
    assert engine.advance(take=2).wait_ms == 9 * SECOND
    engine.pass_time(9 * SECOND)
    assert [job.id for job in engine.take(2)] == ["a", "b"]


def test_a_job_without_a_group_rests_alone(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    engine.limit_run(engine.take_one(), 5 * SECOND)
    assert engine.run_all() == ["b"]
    engine.pass_time(5 * SECOND)
    assert engine.run_all() == ["a"]


def test_a_late_word_of_a_lost_lease_rests_nobody(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.stall()
    assert engine.limit_run(taken, 60 * SECOND) == [0]
    assert engine.take_one().id == "a"
