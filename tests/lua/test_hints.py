"""Requests that come too late, and the hints by which sleeping workers learn of something due."""

from __future__ import annotations

from groupmq import commands
from tests.lua.engine import LEASE, Engine


def test_an_older_request_of_a_lane_takes_nothing(engine: Engine) -> None:
    """It comes from a connection that was given up: nobody waits for its answer, so nobody would run the job."""
    engine.add("a", "b", "c", group=None)
    engine.advance(take=1, request=1)
    engine.advance(take=1, request=2)
    before = engine.digest()
    engine.advance(take=1, request=1)
    assert engine.digest() == before
    assert [job.id for job in engine.advance(take=1, request=3).jobs] == ["c"]


def test_a_retry_that_is_the_next_thing_due_wakes_a_worker(engine: Engine) -> None:
    for name, yields in (("holds", False), ("yields", True)):
        engine.add(name, group=name)
        taken = engine.take_one()
        engine.woken()
        engine.retry_run(taken, LEASE // 10, yields=yields)
        assert engine.woken(), name
        engine.remove(name)


def test_a_retry_behind_something_that_is_due_before_it_wakes_nobody(engine: Engine) -> None:
    engine.add("soon", group="a", delay=LEASE / 10_000)
    engine.add("fails", group="b")
    taken = engine.take_one()
    engine.woken()
    engine.retry_run(taken, LEASE // 2)
    assert not engine.woken()


def test_whoever_leaves_wakes_somebody_since_a_hint_may_have_been_under_way_to_it(engine: Engine) -> None:
    engine.woken()
    engine.call(commands.leave(["w"], ["w:0"]))
    assert engine.woken()


def test_a_job_put_back_and_taken_in_one_call_has_used_its_attempt(engine: Engine) -> None:
    engine.add("a")
    first = engine.take_one()
    retry = commands.retried("a", first.token, 0, False, "boom", "stack")
    [second] = engine.advance(retry, take=1).jobs
    assert (second.stored.attempts, second.stored.reason) == (1, "boom")
    engine.pass_time(LEASE)
    [third] = engine.advance(take=1).jobs
    assert (third.stored.attempts, third.stored.stalls) == (2, 1)
