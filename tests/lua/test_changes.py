"""Operators' changes in every state: each works or is refused, and no group is ever stranded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core import record
from groupmq.protocol import commands
from groupmq.protocol.commands import Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import HOUR, LEASE, SECOND, T0, Engine

STATES: dict[str, tuple[str | None, str | None]] = {
    # how the test prepares the job: (its state, its group)
    "waiting": ("waiting", "g"),
    "waiting behind": ("waiting", "g"),
    "waiting behind a running one": ("waiting", "g"),
    "in its back-off": ("waiting", "g"),
    "in its back-off behind": ("waiting", "g"),
    "delayed": ("delayed", "g"),
    "yielding": ("delayed", "g"),
    "active": ("active", "g"),
    "expired": ("active", "g"),
    "completed": ("completed", "g"),
    "failed": ("failed", "g"),
    "ungrouped waiting": ("waiting", None),
    "ungrouped delayed": ("delayed", None),
    "ungrouped active": ("active", None),
    "ungrouped failed": ("failed", None),
    "gone": (None, "g"),
}


def prepare(engine: Engine, how: str) -> None:
    """Bring job x into a state, with a job behind it in its group."""
    group = STATES[how][1]
    if "behind" in how:
        engine.add("before", group=group)
    if how == "waiting behind a running one":
        engine.take_one(worker="before")
    if how != "gone":
        engine.add("x", group=group, delay=60 if how.endswith("delayed") else None, data="old")
    engine.add("next", group=group)
    if how == "in its back-off behind":
        engine.limit("g", 2)
        before, x = engine.take(2)
        engine.retry_run(x, 60 * SECOND)
        engine.release(before)
        engine.limit("g", 0)
    elif how in ("in its back-off", "yielding"):
        engine.retry_run(engine.take_one(), 60 * SECOND, yields=how == "yielding")
    elif how.endswith(("active", "expired", "completed", "failed")):
        taken = engine.take_one()
        assert taken.id == "x"
        if how == "completed":
            engine.complete(taken)
        elif how.endswith("failed"):
            engine.fail_run(taken)
        elif how == "expired":
            engine.pass_time(LEASE + 1)
    assert engine.state("x") == STATES[how][0]


def drained(engine: Engine) -> list[str]:
    """Let time pass and complete every job that starts, until none is left. Returns the ids in their order."""
    started = engine.run_all()
    for _ in range(3):
        engine.pass_time(HOUR)
        started += engine.run_all()
    counts = engine.counts()
    assert (counts["active"], counts["waiting"], counts["delayed"]) == (0, 0, 0)
    return started


Operation = Callable[[Engine], Any]
OPERATIONS: dict[str, Operation] = {
    "remove": lambda engine: engine.remove("x")[0],
    "promote": lambda engine: engine.promote("x"),
    "delay": lambda engine: engine.change_delay("x", 5 * SECOND),
    "delay 0": lambda engine: engine.change_delay("x", 0),
    "retry": lambda engine: engine.retry("x"),
    "fail": lambda engine: engine.fail("x"),
    "update": lambda engine: engine.update("x", b'"new"'),
}
LIVE = ("waiting", "delayed", "active")


def allowed(operation: str, how: str) -> bool:
    """The contract: which operation works on which state."""
    state = STATES[how][0]
    return {
        "remove": state is not None,
        "promote": state == "delayed" or how.startswith("in its back-off"),
        "delay": state in ("waiting", "delayed"),
        "delay 0": state in ("waiting", "delayed"),
        "retry": state == "failed",
        "fail": state in LIVE,
        "update": state is not None,
    }[operation]


@pytest.mark.parametrize("how", STATES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_change_works_or_is_refused_and_strands_nobody(engine: Engine, operation: str, how: str) -> None:
    prepare(engine, how)
    state, works = STATES[how][0], allowed(operation, how)
    before = engine.digest()
    answer = OPERATIONS[operation](engine)
    if operation == "remove":
        assert answer == works
    else:
        assert answer == (state or "", works)
    if not works:
        after = engine.digest()
        assert {key for key in after if after[key] != before.get(key)} <= {engine.keys.meta.encode()}
    assert engine.violations() == []

    runs_again = state in LIVE or (operation == "retry" and works)
    if operation in ("remove", "fail") and works:
        runs_again = False
    started = drained(engine)
    assert ("x" in started) is runs_again
    assert "next" in started
    assert len(started) == len(set(started))


@pytest.mark.parametrize("operation", ["remove", "fail"])
def test_the_group_of_a_running_job_that_is_ended_by_hand_goes_on_when_its_handler_has_ended(
    engine: Engine, operation: str
) -> None:
    prepare(engine, "active")
    [(fence, _)] = engine.look().leases.values()
    OPERATIONS[operation](engine)
    assert (engine.group(), engine.take(1)) == ("busy", [])
    assert engine.heartbeat().ended == [fence]
    engine.woken()
    assert engine.advance(commands.ended("x", fence)).accepted == [1]
    assert engine.woken()
    assert engine.heartbeat().ended == []
    assert engine.take_one().id == "next"


@pytest.mark.parametrize("operation", ["remove", "fail"])
def test_the_group_of_a_running_job_that_is_ended_by_hand_goes_on_when_the_lease_is_over(
    engine: Engine, operation: str
) -> None:
    prepare(engine, "active")
    OPERATIONS[operation](engine)
    engine.pass_time(LEASE - 1)
    assert engine.take(1) == []
    engine.pass_time(1)
    assert engine.take_one().id == "next"
    assert engine.look().stopping == {}


@pytest.mark.parametrize("outcome", ["complete", "retry", "fail", "release"])
@pytest.mark.parametrize("operation", ["remove", "fail"])
def test_an_outcome_that_comes_too_late_says_that_the_handler_has_ended(
    engine: Engine, operation: str, outcome: str
) -> None:
    engine.add("x", "next", max_attempts=5)
    taken = engine.take_one()
    OPERATIONS[operation](engine)
    late: dict[str, Callable[[Taken], list[int]]] = {
        "complete": engine.complete,
        "retry": lambda taken: engine.retry_run(taken, 0),
        "fail": engine.fail_run,
        "release": engine.release,
    }
    assert late[outcome](taken) == [0]
    assert engine.state("x") == (None if operation == "remove" else "failed")
    assert engine.take_one().id == "next"


def test_a_job_that_is_failed_by_hand_and_retried_waits_for_the_handler_of_its_first_run(engine: Engine) -> None:
    engine.add("x", "next")
    first = engine.take_one()
    engine.fail("x")
    engine.retry("x")
    assert engine.take(1) == []
    engine.end_run(first)
    second = engine.take_one()
    assert (second.id, second.fence > first.fence) == ("x", True)


def test_an_id_may_be_used_again_while_the_handler_of_a_removed_job_still_ends(engine: Engine) -> None:
    engine.add("x")
    first = engine.take_one()
    engine.remove("x")
    engine.add("x", data="new")
    assert engine.take(1) == []
    assert engine.complete(first) == [0]
    assert engine.take_one().id == "x"


@pytest.mark.parametrize("late", [1, 2])
def test_a_run_that_ends_twice_frees_one_slot(make_engine: MakeEngine, late: int) -> None:
    engine = make_engine(group_concurrency=2)
    engine.add("x", "runs", "next", "last")
    x, _ = engine.take(2)
    engine.remove("x")
    for _ in range(late):
        engine.advance(*[commands.ended("x", x.fence)] * 2)
    assert [job.id for job in engine.take(5)] == ["next"]


def test_a_run_whose_handler_will_not_end_leaves_its_group_waiting_and_its_job_failed(engine: Engine) -> None:
    engine.add("x", "next")
    taken = engine.take_one()
    engine.cancel("x")
    assert engine.advance(commands.abandoned("x", taken.fence, "cancelled", "")).accepted == [1]
    assert (engine.state("x"), engine.group()) == ("failed", "busy")
    engine.end_run(taken)
    assert engine.take_one().id == "next"


def test_a_removed_job_leaves_nothing(make_engine: MakeEngine) -> None:
    for how, (state, _) in STATES.items():
        if state is None:
            continue
        engine = make_engine()
        prepare(engine, how)
        running = [fence for fence, _ in engine.look().leases.values()]
        engine.remove("x", "next", "before")
        engine.advance(*(commands.ended("x", fence) for fence in running))
        found = engine.look()
        left = (found.jobs, found.state, found.results, found.waiting, found.groups, found.leases, found.active)
        assert not any(left), how
        assert not any((found.ready, found.parked, found.delayed, found.completed, found.failed)), how
        assert not found.stopping, how


def test_removing_the_same_job_twice_in_one_call_removes_it_once(engine: Engine) -> None:
    engine.add("a", "b")
    assert engine.remove("a", "ghost", "a") == [True, False, False]
    assert engine.run_all() == ["b"]


def test_removal_may_be_bound_to_states(engine: Engine) -> None:
    engine.add("a", "b")
    engine.take_one()
    assert engine.remove("a", "b", states=["waiting", "delayed"]) == [False, True]
    assert engine.state("a") == "active"


def test_removing_many_at_once_leaves_the_rest_in_order(engine: Engine) -> None:
    ids = [f"j{i}" for i in range(100)]
    engine.add(*ids)
    assert all(engine.remove(*ids[::3], *ids[1::3]))
    assert engine.run_all() == ids[2::3]


def test_a_promoted_job_starts_at_once_and_in_the_order_of_its_promotion(engine: Engine) -> None:
    engine.add("later", delay=60)
    engine.add("waits")
    engine.pass_time(SECOND)
    engine.promote("later")
    engine.pass_time(SECOND)
    engine.add("after")
    assert record.unpack(engine.view("later").record).order_ms == T0 + SECOND
    assert engine.run_all() == ["waits", "later", "after"]


def test_a_promoted_job_with_an_order_of_its_own_keeps_it(engine: Engine) -> None:
    engine.add("b", order_ms=20)
    engine.add("a", order_ms=10, delay=60)
    engine.promote("a")
    assert engine.run_all() == ["a", "b"]


def test_promoting_a_job_in_its_back_off_ends_the_wait_and_keeps_its_position(engine: Engine) -> None:
    prepare(engine, "in its back-off")
    engine.woken()
    assert engine.promote("x") == ("waiting", True)
    assert engine.woken()
    assert engine.run_all() == ["x", "next"]


def test_promoting_a_yielding_job_brings_it_back_to_its_own_position(engine: Engine) -> None:
    prepare(engine, "yielding")
    engine.pass_time(SECOND)
    engine.promote("x")
    assert engine.run_all() == ["x", "next"]


def test_a_job_in_its_back_off_may_get_another_time_and_keeps_its_position(engine: Engine) -> None:
    prepare(engine, "in its back-off")
    engine.change_delay("x", 5 * SECOND)
    engine.pass_time(5 * SECOND - 1)
    assert engine.take(5) == []
    engine.pass_time(1)
    assert engine.run_all() == ["x", "next"]


def test_a_waiting_job_that_is_delayed_lets_its_group_go_on(engine: Engine) -> None:
    engine.add("x", "next")
    engine.change_delay("x", 5 * SECOND)
    assert (engine.state("x"), engine.run_all()) == ("delayed", ["next"])
    engine.pass_time(5 * SECOND)
    assert engine.run_all() == ["x"]


def test_a_delayed_job_may_get_an_earlier_or_a_later_time(engine: Engine) -> None:
    engine.add("x", delay=60)
    engine.woken()
    engine.change_delay("x", 5 * SECOND)
    assert engine.woken()
    assert engine.view("x").score == T0 + 5000
    engine.change_delay("x", 90 * SECOND)
    engine.pass_time(60 * SECOND)
    assert engine.take() == []
    engine.pass_time(30 * SECOND)
    assert engine.run_all() == ["x"]


def test_a_retried_job_goes_back_to_its_original_place_with_all_its_attempts(engine: Engine) -> None:
    engine.add("x", "next", max_attempts=2)
    engine.retry_run(engine.take_one(), 0)
    engine.fail_run(engine.take_one())
    assert engine.view("x").stored.attempts == 2
    engine.pass_time(SECOND)
    engine.add("newest")
    engine.retry("x")
    again = engine.take_one()
    assert (again.id, again.stored.attempts) == ("x", 0)
    engine.retry_run(again, 0)
    engine.complete(engine.take_one())
    assert engine.run_all() == ["next", "newest"]
    assert engine.state("x") == "completed"


def test_a_job_failed_by_hand_says_so(engine: Engine) -> None:
    engine.add("x")
    engine.pass_time(SECOND)
    engine.fail("x", "not wanted")
    stored = engine.view("x").stored
    assert (stored.reason, stored.attempts, stored.finished) == ("not wanted", 0, T0 + SECOND)


def test_a_running_job_failed_by_hand_has_used_its_attempt(engine: Engine) -> None:
    engine.add("x")
    engine.take_one(worker="w1")
    engine.fail("x", "not wanted")
    stored = engine.view("x").stored
    assert (stored.reason, stored.attempts, stored.worker, stored.started) == ("not wanted", 1, "w1", T0)


def test_new_data_is_seen_by_the_next_attempt(engine: Engine) -> None:
    engine.add("x", data="old", order_ms=-3, priority=9, timeout=5)
    taken = engine.take_one()
    before = record.unpack(taken.record)
    engine.update("x", b'"new"')
    assert record.unpack(taken.record).data == b'"old"'
    engine.retry_run(taken, 0)
    assert record.unpack(engine.take_one().record) == before._replace(data=b'"new"')


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 5, b"x" * 100_000])
def test_new_data_of_any_size_leaves_the_rest_of_the_record_alone(engine: Engine, data: bytes) -> None:
    engine.add("x", "next", group="gr\u00f6up", order_ms=5, max_attempts=7, on_retry="yield")
    before = record.unpack(engine.view("x").record)
    engine.update("x", data)
    assert record.unpack(engine.view("x").record) == before._replace(data=data)
    assert engine.run_all() == ["x", "next"]
