"""Jobs that were granted for a free slot: until their worker confirms that one has begun, operators must ask it."""

from __future__ import annotations

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Taken
from tests.lua.engine import LEASE, Engine
from tests.lua.test_rows_taken_away import ASKED, DONE_RUNNING, DONE_WAITING, OPERATIONS, mailed


@pytest.fixture
def granted(engine: Engine) -> Taken:
    engine.heartbeat()
    engine.add("a", "b")
    return engine.take_one(confirms=True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_is_done_to_a_job_before_its_worker_has_said_whether_it_began(
    engine: Engine, granted: Taken, operation: str
) -> None:
    before = engine.view("a")
    assert before.state == "active"
    assert OPERATIONS[operation](engine, "a") == 2
    assert (engine.view("a"), engine.group()) == (before, "busy")
    assert mailed(engine)
    assert engine.heartbeat().recalled == [granted.fence]
    assert OPERATIONS[operation](engine, "a") == 2


@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_that_is_given_back_is_acted_on_like_any_that_waits(engine: Engine, granted: Taken, operation: str) -> None:
    OPERATIONS[operation](engine, "a")
    assert engine.release(granted) == [1]
    assert (engine.look().recalls, engine.heartbeat().recalled) == ({}, [])
    assert engine.take() == [], "no worker takes it before the operator has tried again"
    assert OPERATIONS[operation](engine, "a") == DONE_WAITING[operation]


def test_one_without_a_group_is_not_taken_again_before_the_operator_has_come_back(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    job = engine.take_one(confirms=True)
    assert engine.remove("a") == [2]
    engine.release(job)
    assert [taken.id for taken in engine.take(2)] == ["b"], "only the released job has to wait"
    engine.pass_time(ASKED - 1)
    assert engine.take() == []
    engine.pass_time(1)
    assert engine.take_one().id == "a", "the operator did not try again in time"


@pytest.mark.parametrize("how", ["reported", "renewed"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_that_has_begun_is_acted_on_like_any_that_runs(
    engine: Engine, granted: Taken, operation: str, how: str
) -> None:
    OPERATIONS[operation](engine, "a")
    if how == "reported":
        assert engine.begin(granted) == [1]
    else:
        assert engine.heartbeat(granted).recalled == [], "the heartbeat that renews the lease has settled it"
    assert engine.look().recalls == {}
    assert OPERATIONS[operation](engine, "a") == DONE_RUNNING[operation]
    assert engine.complete(granted) == [operation not in ("remove", "fail")]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_one_of_a_dead_worker_is_settled_by_its_lease(engine: Engine, granted: Taken, operation: str) -> None:
    """Its handler may have been called, so the job counts as running."""
    engine.pass_time(LEASE - 1)
    assert OPERATIONS[operation](engine, "a") == 2
    engine.pass_time(1)
    assert OPERATIONS[operation](engine, "a") == DONE_RUNNING[operation]


def test_it_counts_as_running_from_the_start(engine: Engine, granted: Taken) -> None:
    [run] = engine.call(commands.list_runs("0", now=engine.now)).found
    assert (run.id, run.prefetched) == ("a", 0)
    assert engine.stall(LEASE) == [commands.Stalled("a", "g", final=False)]
    assert engine.view("a").stored.attempts == 1


def test_no_event_says_a_second_time_that_it_began(engine: Engine, granted: Taken) -> None:
    before = engine.look().entries
    engine.begin(granted)
    engine.beat(granted)
    assert engine.look().entries == before


def test_the_jobs_of_a_batch_are_granted_too(engine: Engine) -> None:
    engine.add(*"abc")
    engine.take_row(batch_wait_ms=0, confirms=True)
    assert engine.look().granted == set("abc")
    engine.take_row(batch_wait_ms=0)
    assert OPERATIONS["remove"](engine, "b") == 2
