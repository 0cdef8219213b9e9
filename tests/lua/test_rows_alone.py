"""Where a row ends: jobs that are never prefetched, and queues and groups without prefetching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from groupmq.core.limits import RateLimit
from groupmq.core.ordering import Ordering
from groupmq.protocol.commands import Policy, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


def test_a_row_ends_before_a_less_urgent_job(engine: Engine) -> None:
    engine.add("c", "d", priority=7)
    engine.add("a", "b", priority=5)
    engine.add("e", priority=8)
    assert engine.run_rows(5) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_row_ends_before_a_job_that_must_not_wait(engine: Engine) -> None:
    """It starts at once as the head of the next row, in which other jobs may follow it."""
    engine.add("a", "b")
    engine.add("c", ttl=60)
    engine.add("d")
    assert engine.run_rows(4) == [["a", "b"], ["c", "d"]]


def test_a_job_that_may_run_only_once_is_alone(engine: Engine) -> None:
    """Prefetched, it could run twice if its worker died. Its outcome must not wait for other jobs either."""
    engine.add("a", "b")
    engine.add("c", max_attempts=1)
    engine.add("d", "e")
    assert engine.run_rows(4) == [["a", "b"], ["c"], ["d", "e"]]


def test_jobs_that_may_run_once_by_the_word_of_their_worker_run_alone(engine: Engine) -> None:
    engine.add("a", "b")
    engine.add("c", "d", max_attempts=2)
    engine.policy = Policy(1, -1, engine.options.keep)
    assert engine.run_rows(4) == [["a"], ["b"], ["c", "d"]]


def test_jobs_that_may_not_stall_by_the_word_of_their_worker_run_alone(engine: Engine) -> None:
    engine.add(*"abc")
    engine.policy = Policy(3, 0, engine.options.keep)
    assert engine.run_rows() == [["a"], ["b"], ["c"]]
    engine.add(*"def")
    engine.policy = Policy(3, 1, engine.options.keep)
    assert engine.run_rows() == [["d", "e", "f"]]


def test_a_job_that_ran_before_is_alone_wherever_it_stands(engine: Engine) -> None:
    engine.add("b", order_ms=5)
    engine.retry_run(engine.take_one(), 0)
    engine.add("a", order_ms=1)
    engine.add("c", "d", order_ms=9)
    assert engine.run_rows(4) == [["a"], ["b"], ["c", "d"]]


def test_a_row_ends_where_its_jobs_become_too_large_in_all(engine: Engine) -> None:
    engine.add(*"abcde", data="x" * 500_000)
    assert engine.run_rows(5) == [["a", "b"], ["c", "d"], ["e"]]
    assert engine.counter("lost") == 0


def test_what_is_large_takes_nothing_but_those_behind_from_other_groups(engine: Engine) -> None:
    for group in "abc":
        engine.add(f"{group}1", f"{group}2", group=group, data="x" * 500_000)
    answer = engine.advance(take=3, row=2)
    assert (ids(answer.jobs), answer.rows, answer.wait_ms) == (["a1", "b1"], [], 0)
    answer = engine.advance(take=3, row=2)
    assert (ids(answer.jobs), answer.rows) == (["c1", "c2"], [2])


def test_the_rate_of_a_queue_counts_every_job_of_a_row(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(4, 1))
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", "b2", "b3", group="b")
    answer = engine.advance(take=2, row=3)
    assert (ids(answer.jobs), answer.rows) == (["a1", "a2", "a3", "b1"], [3, 1])
    engine.complete(*answer.jobs)
    assert engine.take(2, row=3) == []
    engine.pass_time(SECOND)
    assert engine.take(2, row=3) == []
    engine.pass_time(1)
    assert ids(engine.take(2, row=3)) == ["b2", "b3"]


def test_what_the_rate_of_a_queue_leaves_goes_to_other_groups_first(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(4, 1))
    for group in "abc":
        engine.add(f"{group}1", f"{group}2", f"{group}3", group=group)
    answer = engine.advance(take=3, row=3)
    assert (ids(answer.jobs), answer.rows) == (["a1", "a2", "b1", "c1"], [2, 1, 1])


def test_a_job_that_may_not_follow_takes_nothing_of_the_rate(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(2, 1))
    engine.add("a1", "a2", group="a", max_attempts=1)
    engine.add("b1", group="b")
    assert ids(engine.take(2, row=2)) == ["a1", "b1"]


# Where there are no rows

ALONE: dict[str, dict[str, Any]] = {
    "two at once": {"group_concurrency": 2},
    "round robin": {"fairness": "round-robin"},
    "ageing": {"priority_ageing_ms": 10 * SECOND},
    "rate of groups": {"group_rate_limit": RateLimit(100, 1)},
    "exclusive": {"exclusive": True},
    "event time": {"ordering": Ordering.event_time(1)},
}


@pytest.mark.parametrize("options", ALONE.values(), ids=ALONE)
def test_where_more_than_order_counts_each_job_is_taken_by_itself(
    make_engine: MakeEngine, options: dict[str, Any]
) -> None:
    engine = make_engine(**options)
    engine.add(*"abc", order_ms=T0 - SECOND)
    answer = engine.advance(take=1, row=3)
    assert (ids(answer.jobs), answer.rows, engine.look().ahead) == (["a"], [], set())
    engine.complete(*answer.jobs)
    assert engine.run_rows() == [["b"], ["c"]]


def test_jobs_without_a_group_make_no_row(engine: Engine) -> None:
    engine.add(*"abcd", group=None)
    assert engine.run_rows() == [["a"], ["b"], ["c"], ["d"]]


OPERATORS: dict[str, tuple[Callable[[Engine], bool], Callable[[Engine], bool]]] = {
    "limit": (lambda engine: engine.limit("g", 2), lambda engine: engine.limit("g", 0)),
    "rate": (lambda engine: engine.rate("g", RateLimit(100, 1)), lambda engine: engine.rate("g", None)),
}


@pytest.mark.parametrize("setting", OPERATORS)
def test_a_group_that_an_operator_has_set_otherwise_makes_no_row(engine: Engine, setting: str) -> None:
    change, undo = OPERATORS[setting]
    engine.add(*"abc")
    engine.add(*"xyz", group="other")
    change(engine)
    taken = engine.take(3, row=3)
    assert engine.look().ahead == {"y", "z"}
    engine.release(*taken)
    undo(engine)
    assert engine.run_rows() == [["a", "b", "c"], ["x", "y", "z"]]


def test_a_group_that_an_operator_has_limited_to_one_makes_rows(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=3)
    engine.limit("g", 1)
    engine.add(*"abc")
    assert engine.run_rows() == [["a", "b", "c"]]


def test_while_a_group_waits_for_late_arrivals_nothing_follows(make_engine: MakeEngine) -> None:
    engine = make_engine(ordering=Ordering.arrival(10))
    engine.add(*"bcd", order_ms=5)
    assert engine.take_row() == []
    engine.add("a", order_ms=1)
    engine.pass_time(10 * SECOND)
    assert engine.run_rows() == [["a"], ["b", "c", "d"]]


def test_nothing_follows_in_a_group_with_a_back_off(engine: Engine) -> None:
    engine.add(*"abc", priority=5)
    engine.retry_run(engine.take_one(), 500)
    engine.add("u1", "u2", priority=0)
    assert engine.run_rows() == [["u1"], ["u2"]]
    engine.pass_time(500)
    assert engine.run_rows() == [["a"], ["b", "c"]]


def test_after_a_rest_a_group_begins_with_one_alone(engine: Engine) -> None:
    engine.add(*"abc")
    engine.limit_run(engine.take_one(), 500)
    assert engine.take_row() == []
    engine.pass_time(500)
    assert engine.run_rows() == [["a"], ["b", "c"]]
