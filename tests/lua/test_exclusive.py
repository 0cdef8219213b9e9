"""Exclusive queues: one worker at a time, in turns, and exact priorities at any time of the clock."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.limits import RateLimit
from groupmq.protocol import commands
from groupmq.protocol.commands import Advanced, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, Engine


class Person:
    """A worker of an exclusive queue, with one requester and an epoch like a real one."""

    def __init__(self, engine: Engine, name: str, turn_size: int = 2) -> None:
        self.engine, self.name, self.turn_size = engine, name, turn_size
        self.epoch = 0
        self.held: list[Taken] = []

    def ask(self, n: int = 10, *outcomes: commands.Outcome, lease_ms: int = LEASE) -> list[str]:
        answer: Advanced = self.engine.advance(
            *outcomes,
            take=n,
            worker=self.name,
            requester=f"{self.name}:0",
            turn_size=self.turn_size,
            epoch=self.epoch,
            lease_ms=lease_ms,
        )
        self.answer, self.epoch = answer, answer.epoch
        self.held += answer.jobs
        return [job.id for job in answer.jobs]

    def finish(self, n: int = 10) -> list[str]:
        """Complete all jobs that it holds, and ask for more in the same call."""
        done, self.held = self.held, []
        return self.ask(n, *(commands.completed(job.id, job.fence, None) for job in done))


@pytest.fixture
def lone(make_engine: MakeEngine) -> Engine:
    return make_engine(exclusive=True)


@pytest.fixture
def ann(lone: Engine) -> Person:
    return Person(lone, "ann")


@pytest.fixture
def bob(lone: Engine) -> Person:
    return Person(lone, "bob")


def turn(engine: Engine) -> list[Any]:
    return engine.call(commands.look_turn(engine.now))


# Turns


def test_while_one_worker_has_a_turn_no_other_gets_anything(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add(*"abcdef", group=None)
    assert ann.ask(1) == ["a"]
    assert bob.ask() == []
    assert bob.answer.wait_ms == LEASE
    assert turn(lone) == ["ann", 1, LEASE, 1]


def test_a_turn_has_at_most_so_many_jobs_however_many_are_asked_for(lone: Engine, ann: Person) -> None:
    lone.add(*"abcdef", group=None)
    assert ann.ask(10) == ["a", "b"]
    assert ann.ask(10) == []


def test_a_turn_goes_on_in_the_trip_that_reports_until_it_is_full(lone: Engine, ann: Person) -> None:
    lone.add(*"abcdef", group=None)
    assert ann.ask(1) == ["a"]
    assert ann.finish(1) == ["b"]
    assert turn(lone) == ["ann", 1, LEASE, 2]
    assert ann.finish(1) == []
    assert turn(lone) == []


def test_a_full_turn_is_passed_to_a_waiting_worker(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add(*"abcdef", group=None)
    ann.ask()
    lone.woken()
    assert ann.finish() == []
    assert ann.epoch == 0
    assert lone.woken()
    assert bob.ask() == ["c", "d"]
    assert bob.epoch == 2
    assert ann.ask() == []
    bob.finish()
    assert ann.ask() == ["e", "f"]


def test_a_request_made_in_a_turn_that_has_ended_takes_nothing(lone: Engine, ann: Person, bob: Person) -> None:
    """The worker must wait at the marker again, behind the other waiting workers."""
    lone.add(*"abcdef", group=None)
    ann.ask()
    ann.finish()
    lone.woken()
    ann.epoch = 1
    assert ann.ask() == []
    assert lone.woken(), "the marker that may have woken it is set again for the others"
    assert bob.ask() == ["c", "d"]


def test_a_turn_ends_when_nothing_is_ready(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add("a")
    assert ann.ask() == ["a"]
    ann.finish()
    assert turn(lone) == []
    lone.add("b")
    assert bob.ask() == ["b"]


def test_asking_an_empty_queue_begins_no_turn(lone: Engine, ann: Person, bob: Person) -> None:
    assert ann.ask() == []
    assert turn(lone) == []
    lone.add("a")
    assert bob.ask() == ["a"]


def test_the_epoch_grows_with_each_turn_and_only_its_holder_gets_it(lone: Engine, ann: Person, bob: Person) -> None:
    epochs = []
    for i in range(6):
        lone.add(str(i), group=None)
        who, other = (ann, bob) if i % 2 else (bob, ann)
        assert who.ask() == [str(i)]
        assert other.ask() == []
        epochs.append(who.epoch)
        assert other.epoch == 0
        who.finish()
    assert epochs == [1, 2, 3, 4, 5, 6]


def test_jobs_of_one_turn_may_run_side_by_side_and_the_turn_lasts_to_the_last(
    lone: Engine, ann: Person, bob: Person
) -> None:
    lone.add(*"abc", group=None)
    ann.ask()
    first = ann.held.pop(0)
    ann.ask(0, commands.completed(first.id, first.fence, None))
    assert bob.ask() == []
    ann.finish()
    assert bob.ask() == ["c"]


@pytest.mark.parametrize("how", ["retry", "release", "fail"])
def test_every_end_of_the_last_run_ends_the_turn(lone: Engine, ann: Person, bob: Person, how: str) -> None:
    lone.add("a", group="g")
    lone.add("b", group="h")
    ann.ask(1)
    [job] = ann.held
    outcome = {
        "retry": commands.retried(job.id, job.fence, SECOND, False, "boom", ""),
        "release": commands.released(job.id, job.fence),
        "fail": commands.failed(job.id, job.fence, "boom", ""),
    }[how]
    ann.ask(0, outcome)
    assert turn(lone) == []
    assert bob.ask(1) == (["a"] if how == "release" else ["b"])


@pytest.mark.parametrize("how", ["remove", "fail"])
def test_a_turn_whose_last_job_an_operator_takes_away_ends_with_its_handler(
    lone: Engine, ann: Person, bob: Person, how: str
) -> None:
    lone.add("a", "b", group=None)
    ann.ask(1)
    [(fence, _)] = lone.look().leases.values()
    if how == "remove":
        lone.remove("a")
    else:
        lone.fail("a")
    assert turn(lone)[0] == "ann"
    assert bob.ask() == []
    lone.woken()
    ann.ask(0, commands.ended("a", fence))
    assert turn(lone) == []
    assert lone.woken()
    assert not lone.woken_for_its_turn("ann")
    assert bob.ask() == ["b"]


def test_an_operator_who_takes_away_one_of_two_jobs_does_not_end_the_turn(
    lone: Engine, ann: Person, bob: Person
) -> None:
    lone.add(*"abc", group=None)
    ann.ask()
    lone.remove("a")
    assert bob.ask() == []
    assert turn(lone)[0] == "ann"


# A holder that froze


def test_a_frozen_holder_loses_its_turn_with_its_lease_to_the_millisecond(
    lone: Engine, ann: Person, bob: Person
) -> None:
    lone.add("a", "b", group=None)
    assert ann.ask(1) == ["a"]
    lone.pass_time(LEASE - 1)
    assert bob.ask() == []
    assert bob.answer.wait_ms == 1
    lone.pass_time(1)
    assert bob.ask() == ["a", "b"]
    assert bob.epoch == 2


def test_what_a_frozen_holder_reports_later_changes_nothing(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add(*"abcd", group=None)
    ann.ask(1)
    lone.pass_time(LEASE)
    assert bob.ask() == ["a", "b"]
    before = lone.look()
    assert ann.finish() == []
    assert ann.answer.accepted == [0]
    after = lone.look()
    assert (after.turn, after.leases, after.active) == (before.turn, before.leases, before.active)


def test_a_heartbeat_renews_the_turn_with_the_leases(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add("a", "b", group=None)
    ann.ask(1)
    for _ in range(5):
        lone.pass_time(LEASE - 1)
        assert lone.beat(*ann.held, worker="ann") == []
    assert bob.ask() == []
    assert bob.answer.wait_ms == LEASE
    lone.pass_time(LEASE)
    assert bob.ask() == ["a", "b"]


def test_a_late_heartbeat_tells_the_holder_what_has_come_since(lone: Engine, ann: Person, bob: Person) -> None:
    """The turn had run out when the job was added, so the common marker woke the other workers, which got nothing. The
    heartbeat renews the turn, and must wake the holder for that job."""
    lone.add("a", group="g")
    ann.ask()
    lone.pass_time(LEASE)
    lone.add("b", group="h")
    assert (lone.woken(), lone.woken_for_its_turn("ann")) == (True, False)
    lone.beat(*ann.held, worker="ann")
    assert bob.ask() == []
    assert lone.woken_for_its_turn("ann")
    lone.beat(*ann.held, worker="ann")
    assert not lone.woken_for_its_turn("ann"), "a heartbeat in time sets no marker"
    assert ann.ask() == ["b"]


def test_a_heartbeat_of_another_worker_does_not_renew_the_turn(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add("a", group=None)
    ann.ask(1)
    lone.pass_time(LEASE - 1)
    lone.beat(worker="bob")
    assert turn(lone)[2] == 1
    lone.pass_time(1)
    assert bob.ask() == ["a"]


def test_a_scheduler_that_takes_back_the_last_lease_ends_the_turn(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add("a", group=None)
    ann.ask(1)
    lone.woken()
    assert [stalled.id for stalled in lone.stall()] == ["a"]
    assert turn(lone) == []
    assert lone.woken()
    assert bob.ask() == ["a"]


def test_a_request_sent_again_is_answered_the_same_with_its_epoch(lone: Engine, ann: Person) -> None:
    lone.add("a", "b", group=None)

    def ask() -> Advanced:
        return lone.advance(take=1, worker="ann", requester="ann:0", request=7, turn_size=2, epoch=0)

    first, again = ask(), ask()
    assert [job.fence for job in again.jobs] == [job.fence for job in first.jobs]
    assert (first.epoch, again.epoch) == (1, 1)
    assert turn(lone) == ["ann", 1, LEASE, 1]


# Groups and limits inside a turn


def test_groups_keep_their_order_inside_and_across_turns(lone: Engine) -> None:
    for i in range(6):
        lone.add(f"g{i}", group="g")
        lone.add(f"h{i}", group="h")
    people = [Person(lone, f"p{i}", turn_size=3) for i in range(3)]
    started: list[str] = []
    for _ in range(50):
        for person in people:
            started += person.finish(2) if person.held else person.ask(2)
    assert [job_id for job_id in started if job_id[0] == "g"] == [f"g{i}" for i in range(6)]
    assert [job_id for job_id in started if job_id[0] == "h"] == [f"h{i}" for i in range(6)]


def test_a_paused_queue_ends_no_turn_early_and_begins_none(lone: Engine, ann: Person, bob: Person) -> None:
    lone.add(*"abc", group=None)
    ann.ask(1)
    lone.pause()
    assert ann.ask() == []
    assert turn(lone)[0] == "ann"
    ann.finish()
    assert bob.ask() == []
    lone.resume()
    assert bob.ask() == ["b", "c"]


def test_a_job_is_runnable_whichever_worker_has_the_turn_unless_the_queue_is_paused(lone: Engine, ann: Person) -> None:
    assert not lone.call(commands.runnable(lone.now))
    lone.add(*"abc", group=None)
    assert ann.ask(1) == ["a"]
    assert lone.call(commands.runnable(lone.now))
    lone.pause()
    assert not lone.call(commands.runnable(lone.now))
    lone.resume()
    ann.finish(0)
    assert lone.call(commands.runnable(lone.now))
    lone.remove("b", "c")
    assert not lone.call(commands.runnable(lone.now))


def test_a_job_over_the_rate_of_its_queue_is_not_runnable(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True, rate_limit=RateLimit(1, per=60))
    engine.add(*"ab", group=None)
    assert Person(engine, "ann").ask(2) == ["a"]
    assert not engine.call(commands.runnable(engine.now))
    engine.pass_time(61 * SECOND)
    assert engine.call(commands.runnable(engine.now))
