"""The leases of a worker that is known to be dead end as if they had expired: fenced, and each counted once."""

from __future__ import annotations

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Policy, Stalled, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def take_back(engine: Engine, *taken: Taken, worker: str = "w", policy: Policy | None = None) -> list[Stalled]:
    runs = [(one.id, one.fence) for one in taken]
    return engine.call(commands.take_back(worker, runs, policy or engine.policy, engine.now))


def test_a_run_uses_an_attempt_and_its_group_goes_on_at_once(engine: Engine) -> None:
    engine.add("a", "b")
    a = engine.take_one()
    assert take_back(engine, a) == [Stalled("a", "g", final=False)]
    assert engine.counter("stalled") == 1
    assert ("stalled", "a") in engine.heard()
    again = engine.take_one(worker="other", requester="other:0")
    assert (again.id, again.stored.attempts, again.stored.stalls) == ("a", 1, 1)
    assert engine.complete(a) == [0]


def test_a_prefetched_job_is_released_without_an_attempt(engine: Engine) -> None:
    engine.add("a", "b", "c")
    row = engine.take_row()
    assert [one.id for one in take_back(engine, *row)] == ["a"]
    assert [(one.id, one.stored.attempts) for one in engine.take_row()] == [("a", 1)]


def test_only_the_lease_that_was_named_ends(engine: Engine) -> None:
    engine.add("a")
    old = engine.take_one()
    engine.stall()
    new = engine.take_one(worker="other", requester="other:0")
    assert take_back(engine, old) == []
    assert take_back(engine, new) == []  # another worker holds this lease
    assert engine.complete(new) == [1]


def test_the_last_attempt_fails_the_job_for_good(engine: Engine) -> None:
    engine.add("a", max_attempts=1)
    assert take_back(engine, engine.take_one()) == [Stalled("a", "g", final=True)]
    assert engine.state("a") == "failed"


def test_more_stalls_than_allowed_fail_it_too(engine: Engine) -> None:
    engine.add("a")
    never = Policy(3, 0, engine.options.keep)
    assert take_back(engine, engine.take_one(policy=never), policy=never) == [Stalled("a", "g", final=True)]


def test_a_second_word_about_the_same_lease_changes_nothing(engine: Engine) -> None:
    engine.add("a")
    a = engine.take_one()
    take_back(engine, a)
    assert take_back(engine, a) == []
    assert engine.counter("stalled") == 1


def test_the_slot_of_a_run_whose_job_is_gone_is_free(engine: Engine) -> None:
    engine.add("a", "b")
    engine.take_one()
    engine.remove("a")
    assert engine.group() == "busy"
    take_back(engine)
    assert engine.take_one(worker="other", requester="other:0").id == "b"


def test_the_turn_of_an_exclusive_queue_is_handed_over(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", "b")
    a = engine.take_one()
    assert engine.take(worker="other", requester="other:0") == []
    take_back(engine, a)
    assert [job.id for job in engine.take(worker="other", requester="other:0")] == ["a"]
