"""Expired leases: the position is kept, an attempt is used, and the group goes on."""

from __future__ import annotations

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy, Stalled
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, T0, Engine


def test_a_lease_lasts_exactly_as_long_as_it_says(engine: Engine) -> None:
    engine.add("a")
    engine.take_one(lease_ms=1000)
    assert engine.stall(999) == []
    assert engine.stall(1) == [Stalled("a", "g", final=False)]


def test_a_stalled_job_keeps_its_place_and_has_used_an_attempt(engine: Engine) -> None:
    engine.add("a", "b")
    engine.take_one(worker="dead")
    engine.stall()
    again = engine.take_one()
    assert (again.id, again.stored.attempts, again.stored.stalls) == ("a", 1, 1)
    assert again.stored.reason == "stalled: the lease of worker dead expired"
    engine.complete(again)
    assert engine.run_all() == ["b"]
    assert engine.counter("stalled") == 1


def test_a_reservation_takes_expired_leases_back_on_its_way(engine: Engine) -> None:
    engine.add("a")
    old = engine.take_one()
    engine.pass_time(LEASE)
    answer = engine.advance(take=1)
    assert answer.stalled == [Stalled("a", "g", final=False)]
    assert [job.id for job in answer.jobs] == ["a"]
    assert answer.jobs[0].fence > old.fence


def test_a_reservation_that_is_sent_again_names_the_same_stalled_jobs(engine: Engine) -> None:
    """No other worker learns of these stalls, so without the second answer they would not be logged."""
    engine.add("a")
    engine.take_one()
    engine.pass_time(LEASE)
    first, again = engine.advance(take=1, request=5), engine.advance(take=1, request=5)
    assert first.stalled == again.stalled == [Stalled("a", "g", final=False)]


def test_a_stall_says_that_the_job_blocks_its_group(make_engine: MakeEngine) -> None:
    engine = make_engine(on_failed="hold")
    engine.add("a", max_attempts=1)
    engine.add("b", group=None, max_attempts=1)
    engine.take(2)
    assert sorted(engine.stall()) == [Stalled("a", "g", final=True, blocks=True), Stalled("b", None, final=True)]


def test_a_cancelled_job_that_stalls_does_not_run_again_and_blocks_nothing(make_engine: MakeEngine) -> None:
    engine = make_engine(on_failed="hold")
    engine.add("a", max_attempts=5)
    engine.take_one()
    engine.cancel("a")
    assert engine.stall() == [Stalled("a", "g", final=True, cancelled=True)]


def test_a_stall_during_the_last_attempt_fails_the_job_and_the_group_goes_on(engine: Engine) -> None:
    engine.add("a", "b", max_attempts=2)
    engine.take_one()
    assert engine.stall() == [Stalled("a", "g", final=False)]
    engine.take_one(worker="w9")
    assert engine.stall() == [Stalled("a", "g", final=True)]
    view = engine.view("a")
    assert (view.state, view.stored.attempts) == ("failed", 2)
    assert view.stored.reason == "stalled: the lease of worker w9 expired during the last attempt"
    assert engine.run_all() == ["b"]


def test_a_job_without_attempts_of_its_own_has_those_of_the_policy(engine: Engine) -> None:
    engine.add("a")
    policy = Policy(1, -1, engine.options.keep)
    engine.take_one()
    assert engine.stall(policy=policy) == [Stalled("a", "g", final=True)]


def test_a_jobs_own_attempts_come_before_those_of_the_policy(engine: Engine) -> None:
    engine.add("a", max_attempts=5)
    policy = Policy(1, -1, engine.options.keep)
    for _ in range(4):
        engine.take_one()
        assert engine.stall(policy=policy) == [Stalled("a", "g", final=False)]
    engine.take_one()
    assert engine.stall(policy=policy) == [Stalled("a", "g", final=True)]


@pytest.mark.parametrize("max_stalled", [0, 1, 2])
def test_more_stalls_than_allowed_fail_the_job_although_attempts_remain(engine: Engine, max_stalled: int) -> None:
    engine.add("a", "b", max_attempts=100)
    policy = Policy(100, max_stalled, engine.options.keep)
    for _ in range(max_stalled):
        engine.take_one()
        assert engine.stall(policy=policy) == [Stalled("a", "g", final=False)]
    engine.take_one()
    assert engine.stall(policy=policy) == [Stalled("a", "g", final=True)]
    assert engine.view("a").stored.reason.endswith(f"more than {max_stalled} times")
    assert engine.run_all() == ["b"]


def test_ordinary_failures_are_no_stalls(engine: Engine) -> None:
    engine.add("a", max_attempts=100)
    policy = Policy(100, 0, engine.options.keep)
    for _ in range(5):
        engine.retry_run(engine.take_one(), 0)
    engine.take_one()
    assert engine.stall(policy=policy) == [Stalled("a", "g", final=True)]
    assert engine.view("a").stored.stalls == 1


def test_a_stall_is_logged_like_any_failed_attempt(engine: Engine) -> None:
    engine.add("a", max_attempts=2)
    engine.take_one(worker="w1")
    engine.stall()
    engine.take_one(worker="w2")
    engine.stall()
    last, first = engine.call(commands.stats(10)).failures
    assert (first[:2], first[5:]) == (["a", 1], [False, "w1", "", "g"])
    assert (last[:2], last[5:]) == (["a", 2], [True, "w2", "", "g"])


def test_a_stalled_job_without_a_group_runs_again(engine: Engine) -> None:
    engine.add("a", group=None)
    engine.take_one()
    assert engine.stall() == [Stalled("a", None, final=False)]
    assert engine.run_all() == ["a"]


def test_every_group_of_a_dead_worker_is_free_again(engine: Engine) -> None:
    for i in range(50):
        engine.add(f"{i}-a", f"{i}-b", group=str(i))
    assert len(engine.take(50, worker="dead")) == 50
    assert len(engine.stall()) + len(engine.stall(0)) == 50, "a call takes a part of them back"
    assert len(engine.run_all(10)) == 100


def test_a_limit_above_one_frees_only_the_slot_that_expired(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.add("a", "b", "c")
    engine.take_one(lease_ms=1000)
    b = engine.take_one(lease_ms=5000)
    assert [one.id for one in engine.stall(1000)] == ["a"]
    assert [job.id for job in engine.take(5)] == ["a"]
    engine.complete(b)
    assert [job.id for job in engine.take(5)] == ["c"]


def test_a_stall_in_a_paused_group_waits_for_its_resumption(engine: Engine) -> None:
    engine.add("a")
    engine.take_one()
    engine.pause("g")
    engine.stall()
    assert engine.take() == []
    engine.resume("g")
    assert engine.run_all() == ["a"]


def test_any_number_of_expired_leases_is_taken_back_in_bounded_steps(engine: Engine) -> None:
    engine.call(commands.add([draft(engine.options, None, job_id=str(i)) for i in range(1000)], T0))
    assert len(engine.take(1000)) == 1000
    engine.pass_time(LEASE)
    steps = [engine.due()]
    while steps[-1].wait_ms == 0:
        steps.append(engine.due())
    assert sum(len(step.stalled) for step in steps) == 1000
    assert max(len(step.stalled) for step in steps) <= 50
    assert steps[-1].wait_ms == -1
    assert engine.counts()["waiting"] == 1000


def test_a_worker_that_was_only_slow_may_go_on_until_its_lease_is_taken(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.pass_time(LEASE + 1)
    assert engine.call(commands.beat("w", None, LEASE, [("a", taken.fence)], engine.now)).lost == []
    assert engine.due().stalled == []
    assert engine.complete(taken) == [1]
