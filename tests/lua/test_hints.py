"""Requests that come too late, and the hints by which sleeping workers learn of something due."""

from __future__ import annotations

import pytest

from groupmq.core.limits import RateLimit
from groupmq.core.schedule import Every
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, Engine


def test_an_older_request_of_a_requester_takes_nothing(engine: Engine) -> None:
    """It comes from a connection that was given up: no worker waits for its answer, so none would run the job."""
    engine.add("a", "b", "c", group=None)
    engine.advance(take=1, request=1)
    engine.advance(take=1, request=2)
    before = engine.digest()
    engine.advance(take=1, request=1)
    assert engine.digest() == before
    assert [job.id for job in engine.advance(take=1, request=3).jobs] == ["c"]


def test_a_retry_that_is_the_next_thing_due_wakes_a_worker(engine: Engine) -> None:
    for name, yields, delay in (("holds", False, LEASE // 10), ("yields", True, LEASE // 20)):
        engine.add(name, group=name)
        taken = engine.take_one()
        engine.woken()
        engine.retry_run(taken, delay, yields=yields)
        assert engine.woken(), name
        engine.remove(name)


def test_a_retry_behind_something_that_is_due_before_it_wakes_nobody(engine: Engine) -> None:
    engine.add("soon", group="a", delay=LEASE / 10_000)
    engine.add("fails", group="b")
    taken = engine.take_one()
    engine.woken()
    engine.retry_run(taken, LEASE // 2)
    assert not engine.woken()


def test_a_worker_that_leaves_wakes_another_since_a_hint_may_have_been_under_way_to_it(engine: Engine) -> None:
    engine.woken()
    engine.call(commands.leave(["w"], ["w:0"]))
    assert engine.woken()


def test_a_job_put_back_and_taken_in_one_call_has_used_its_attempt(engine: Engine) -> None:
    engine.add("a")
    first = engine.take_one()
    retry = commands.retried("a", first.fence, 0, False, "boom", "stack")
    [second] = engine.advance(retry, take=1).jobs
    assert (second.stored.attempts, second.stored.reason) == (1, "boom")
    engine.pass_time(LEASE)
    [third] = engine.advance(take=1).jobs
    assert (third.stored.attempts, third.stored.stalls) == (2, 1)


# Throttled queues


def test_an_add_to_a_queue_at_its_rate_wakes_nobody_and_after_it_somebody(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(1, 10))
    engine.add("a", "b", group=None)
    engine.take(1)
    assert engine.take(1) == []
    engine.woken()
    engine.add("c", group=None)
    engine.add("d", group="g")
    assert not engine.woken()
    engine.pass_time(10_001)
    engine.add("e", group=None)
    assert engine.woken()


def test_asking_a_queue_at_its_rate_again_and_again_wakes_nobody_for_ever(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(1, 10))
    engine.add("a", "b", group=None)
    engine.take(1)
    engine.take(1)
    engine.woken()
    for _ in range(3):
        engine.take(1, worker="other", requester="other:0")
        assert not engine.woken()


def test_the_end_of_a_run_in_a_queue_at_its_rate_wakes_nobody(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(1, 10))
    engine.add("a", "b")
    taken = engine.take_one()
    engine.take(1)
    engine.woken()
    engine.complete(taken)
    assert not engine.woken()


def test_a_group_at_its_rate_wakes_somebody_when_its_wait_is_the_next_thing_due(make_engine: MakeEngine) -> None:
    engine = make_engine(group_rate_limit=RateLimit(1, 1))
    engine.add("a", "b")
    taken = engine.take_one()
    engine.woken()
    engine.complete(taken)
    assert engine.woken()


# Exclusive queues


def test_an_add_during_a_turn_wakes_its_holder_and_nobody_else(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", group=None)
    engine.take(1, worker="holder", requester="holder:0")
    engine.woken()
    engine.woken_for_its_turn("holder")
    engine.add("b", group=None)
    assert engine.woken_for_its_turn("holder")
    assert not engine.woken()


def test_an_add_when_nobody_has_the_turn_wakes_a_worker(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", group=None)
    assert engine.woken()


def test_an_add_after_the_holder_froze_wakes_a_worker(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", group=None)
    engine.take(1, worker="frozen", requester="frozen:0")
    engine.woken()
    engine.pass_time(LEASE)
    engine.add("b", group=None)
    assert engine.woken()
    assert not engine.woken_for_its_turn("frozen")


@pytest.mark.parametrize("take", [0, 1])
def test_the_end_of_a_turn_wakes_the_next_and_leaves_no_marker_of_the_last(make_engine: MakeEngine, take: int) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", group="a")
    engine.add("b", group="b")
    taken = engine.take_one(turn_size=1, epoch=0)
    engine.add("c", group="c")
    engine.woken()
    engine.advance(commands.completed(taken.id, taken.fence, None), take=take, turn_size=1, epoch=1)
    assert engine.woken()
    assert not engine.woken_for_its_turn("w")


def test_a_worker_without_the_turn_that_asks_wakes_nobody(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", "b", group=None)
    engine.take(1, worker="holder", requester="holder:0")
    engine.woken()
    engine.woken_for_its_turn("holder")
    engine.take(1, worker="other", requester="other:0")
    assert not engine.woken()


# Ttl and repeats


def test_a_ttl_that_is_the_next_thing_due_wakes_a_worker(engine: Engine) -> None:
    engine.pause("g")
    engine.add("a", ttl=10)
    assert engine.woken()
    engine.add("b", ttl=20)
    assert not engine.woken()
    engine.add("c", ttl=5)
    assert engine.woken()


def test_an_occurrence_wakes_a_worker_like_any_job(engine: Engine) -> None:
    engine.repeat(Every(5))
    engine.pass_time(5000)
    engine.woken()
    engine.tick()
    assert engine.woken()


def test_a_repeat_that_ticks_before_all_others_sends_mail_to_every_live_worker(engine: Engine) -> None:
    """Busy workers need it too: their schedulers sleep until the earliest tick that they know of."""

    def mailed() -> list[str]:
        return [worker for worker in ("one", "two", "gone") if engine.client.delete(engine.keys.mail(worker))]

    for worker in ("one", "two"):
        engine.call(commands.beat(worker, "{}", LEASE, [], engine.now))
    engine.repeat(Every(60))
    assert mailed() == ["one", "two"]
    engine.repeat(Every(90), group="later")
    assert mailed() == []
    engine.repeat(Every(5), group="sooner")
    assert mailed() == ["one", "two"]
    assert engine.call(commands.beat("one", None, LEASE, [], engine.now)).tick_ms == 5000
