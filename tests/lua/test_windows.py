"""Ordering windows: a head that waits for its event time, a group that waits for late arrivals."""

from __future__ import annotations

import pytest

from groupmq.core.drafts import draft
from groupmq.core.ordering import Ordering
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine


@pytest.fixture
def timed(make_engine: MakeEngine) -> Engine:
    """A queue in which a job waits until 10 s after its order."""
    return make_engine(ordering=Ordering.event_time(10))


@pytest.fixture
def patient(make_engine: MakeEngine) -> Engine:
    """A queue in which a group waits 10 s for late arrivals, 25 s at most."""
    return make_engine(ordering=Ordering.arrival(10, max_wait=25))


def started(engine: Engine, n: int = 5) -> list[str]:
    """Run the jobs that may start now. Returns their ids."""
    return engine.run_all(n)


# Event time


def test_a_job_waits_until_its_order_and_the_window_have_passed_to_the_millisecond(timed: Engine) -> None:
    timed.add("a", order_ms=T0 - 3 * SECOND)
    assert timed.advance(take=1).wait_ms == 7 * SECOND
    timed.pass_time(7 * SECOND - 1)
    assert timed.take() == []
    timed.pass_time(1)
    assert timed.take_one().id == "a"


def test_a_late_job_with_an_earlier_order_takes_its_place_inside_the_window(timed: Engine) -> None:
    timed.add("b", order_ms=T0)
    timed.pass_time(9 * SECOND)
    timed.add("a", order_ms=T0 - SECOND)
    timed.pass_time(SECOND)
    assert started(timed) == ["a", "b"]


def test_a_job_whose_window_is_over_starts_at_once(timed: Engine) -> None:
    timed.add("b", order_ms=T0 + SECOND)
    timed.add("a", order_ms=T0 - 10 * SECOND)
    assert started(timed) == ["a"]
    assert timed.group() == "parked"


def test_a_job_without_an_order_waits_for_the_window_from_its_arrival(timed: Engine) -> None:
    timed.add("a")
    assert timed.advance(take=1).wait_ms == 10 * SECOND


def test_the_head_waits_and_holds_those_behind_it_whose_time_has_come(timed: Engine) -> None:
    timed.add("urgent", order_ms=T0 + SECOND, priority=0)
    timed.add("old", order_ms=T0 - 60 * SECOND, priority=1)
    assert timed.take(5) == []
    timed.pass_time(11 * SECOND)
    assert started(timed) == ["urgent", "old"]


@pytest.mark.parametrize("order", [2**53, 2**62, 2**63 - 1])
def test_an_order_that_is_no_time_waits_for_ever_and_breaks_nothing(timed: Engine, order: int) -> None:
    timed.add("far", order_ms=order)
    timed.pass_time(100 * 366 * 86_400_000)
    assert timed.take() == []
    assert timed.group() == "parked"
    timed.add("near", order_ms=0)
    assert started(timed) == ["near"]


@pytest.mark.parametrize("order", [-(2**63), -(2**53), -1, 0])
def test_an_order_before_all_time_starts_at_once(timed: Engine, order: int) -> None:
    timed.add("a", order_ms=order)
    assert started(timed) == ["a"]


def test_jobs_without_a_group_wait_for_nobody(make_engine: MakeEngine) -> None:
    for ordering in (Ordering.event_time(10), Ordering.arrival(10)):
        engine = make_engine(ordering=ordering)
        engine.add("a", group=None, order_ms=T0 + 60 * SECOND)
        assert engine.take_one().id == "a"


def test_a_delayed_job_waits_for_the_window_after_its_due_time(timed: Engine) -> None:
    timed.add("a", delay=5)
    timed.pass_time(5 * SECOND)
    assert timed.advance(take=1).wait_ms == 10 * SECOND
    assert timed.state("a") == "waiting"


def test_a_retry_of_a_job_whose_time_has_come_waits_for_its_back_off_alone(timed: Engine) -> None:
    timed.add("a", order_ms=T0 - 60 * SECOND)
    timed.retry_run(timed.take_one(), 2 * SECOND)
    assert timed.advance(take=1).wait_ms == 2 * SECOND
    timed.pass_time(2 * SECOND)
    assert timed.take_one().id == "a"


def test_an_earlier_head_that_is_due_sooner_is_news_for_sleeping_workers(timed: Engine) -> None:
    timed.add("b", order_ms=T0)
    assert timed.woken()
    timed.add("c", order_ms=T0 + SECOND)
    assert not timed.woken()
    timed.add("a", order_ms=T0 - SECOND)
    assert timed.woken()


def test_a_parked_group_that_may_run_more_than_others_leaves_its_parking_when_it_becomes_ready(timed: Engine) -> None:
    timed.limit("g", 2)
    timed.add("runs", order_ms=0)
    timed.add("far", order_ms=2**62)
    timed.take_one()
    assert timed.group() == "parked"
    timed.add("near", order_ms=0)
    assert timed.violations() == []
    assert timed.take_one().id == "near"


# Arrivals


def test_the_first_job_of_a_group_waits_for_the_window(patient: Engine) -> None:
    patient.add("a")
    assert patient.advance(take=1).wait_ms == 10 * SECOND
    patient.pass_time(10 * SECOND - 1)
    assert patient.take() == []
    patient.pass_time(1)
    assert patient.take_one().id == "a"


def test_each_arrival_extends_the_window_and_the_order_decides_at_its_end(patient: Engine) -> None:
    patient.add("c", order_ms=30)
    patient.pass_time(8 * SECOND)
    patient.add("a", order_ms=10)
    patient.pass_time(8 * SECOND)
    assert patient.take() == []
    patient.add("b", order_ms=20)
    patient.pass_time(9 * SECOND)
    assert started(patient) == ["a", "b", "c"]


def test_a_group_never_waits_longer_than_max_wait(patient: Engine) -> None:
    for i in range(5):
        patient.add(str(i))
        assert patient.take() == []
        patient.pass_time(5 * SECOND)
    assert patient.now == T0 + 25 * SECOND
    assert patient.take_one().id == "0"


def test_jobs_of_one_call_open_one_window(patient: Engine) -> None:
    patient.call(commands.add([draft(patient.options, i, group_id="g", job_id=str(i)) for i in range(3)], T0))
    assert patient.advance(take=1).wait_ms == 10 * SECOND


def test_once_the_window_has_closed_late_jobs_wait_for_nobody(patient: Engine) -> None:
    patient.add("b", "d", order_ms=20)
    patient.pass_time(10 * SECOND)
    running = patient.take_one()
    patient.add("a", order_ms=10)
    patient.complete(running)
    assert started(patient) == ["a", "d"]


def test_an_arrival_after_the_window_closed_unseen_does_not_open_it_again(patient: Engine) -> None:
    """The window of the first job is over, and `max_wait` does not prolong it."""
    patient.add("a")
    patient.pass_time(12 * SECOND)
    patient.add("b")
    assert started(patient) == ["a", "b"]


def test_a_group_that_ran_empty_waits_again(patient: Engine) -> None:
    patient.add("a")
    patient.pass_time(10 * SECOND)
    assert started(patient) == ["a"]
    patient.add("b")
    assert patient.advance(take=1).wait_ms == 10 * SECOND


def test_a_group_emptied_by_an_operator_forgets_its_window(patient: Engine) -> None:
    patient.add("a")
    patient.pass_time(9 * SECOND)
    patient.remove("a")
    patient.add("b")
    patient.pass_time(9 * SECOND)
    assert patient.take() == []
    patient.pass_time(SECOND)
    assert patient.take_one().id == "b"


def test_each_group_has_a_window_of_its_own(patient: Engine) -> None:
    patient.add("a", group="one")
    patient.pass_time(5 * SECOND)
    patient.add("b", group="two")
    patient.pass_time(5 * SECOND)
    assert started(patient) == ["a"]
    patient.pass_time(5 * SECOND)
    assert started(patient) == ["b"]


@pytest.mark.parametrize("how", ["retry", "stall", "release"])
def test_a_job_that_comes_back_opens_no_window(patient: Engine, how: str) -> None:
    patient.add("a")
    patient.pass_time(10 * SECOND)
    taken = patient.take_one()
    if how == "retry":
        patient.retry_run(taken, 0)
    elif how == "stall":
        patient.pass_time(LEASE)
    else:
        patient.release(taken)
    assert patient.take_one().id == "a"


def test_a_delayed_job_opens_a_window_when_it_is_due(patient: Engine) -> None:
    patient.add("a", delay=5)
    patient.pass_time(5 * SECOND)
    assert patient.advance(take=1).wait_ms == 10 * SECOND


def test_a_window_goes_on_while_its_group_is_paused(patient: Engine) -> None:
    patient.add("a")
    patient.pause("g")
    patient.pass_time(4 * SECOND)
    patient.resume("g")
    assert patient.advance(take=1).wait_ms == 6 * SECOND


def test_a_window_is_not_damage_to_repair(patient: Engine, timed: Engine) -> None:
    for engine in (patient, timed):
        engine.add("a", "b")
        engine.add("c", group="other")
        assert engine.run_now(engine.operations.repair()).clean
