"""Rows of which something is taken away: cancelled, removed or failed by hand; and those whose record is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from groupmq.commands import Stalled, Taken
from tests.lua.engine import LEASE, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


def cancelled_row(engine: Engine) -> list[Taken]:
    """Of a, b and c, b is to be stopped."""
    engine.add(*"abcd")
    row = engine.take_row()
    assert engine.cancel("b") == {"b": "active"}
    assert engine.heartbeat(*row).cancelled == [row[1].token]
    return row


OUTCOMES: dict[str, Callable[[Engine, Taken], list[int]]] = {
    "release": lambda engine, job: engine.release(job),
    "retry": lambda engine, job: engine.retry_run(job, 500),
    "limit": lambda engine, job: engine.limit_run(job, 500),
}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_cancelled_one_of_a_row_does_not_come_back(engine: Engine, outcome: str, begun: bool) -> None:
    """It has used an attempt if it is known to have run."""
    a, b, c = cancelled_row(engine)
    if begun:
        engine.begin(b)
    assert OUTCOMES[outcome](engine, b) == [1]
    assert (engine.state("b"), engine.view("b").stored.reason) == ("failed", "cancelled")
    assert engine.view("b").stored.attempts == int(begun or outcome != "release")
    assert engine.look().cancels == {}
    engine.complete(a, c)
    assert engine.run_rows() == [["d"]]


def test_a_cancelled_one_of_a_row_that_expires_has_failed_and_never_ran(engine: Engine) -> None:
    cancelled_row(engine)
    assert engine.stall() == [Stalled("a", "g", final=False)]
    stored = engine.view("b").stored
    assert (engine.state("b"), stored.reason, stored.attempts, stored.stalls) == ("failed", "cancelled", 0, 0)
    assert (engine.look().cancels, engine.counter("stalled")) == ({}, 1)
    assert engine.run_rows() == [["a"], ["c", "d"]]


def test_a_cancelled_one_of_a_row_may_begin_and_complete(engine: Engine) -> None:
    _, b, _ = cancelled_row(engine)
    assert (engine.begin(b), engine.look().cancels) == ([1], {"b": b.token})
    assert engine.complete(b) == [1]
    assert (engine.state("b"), engine.look().cancels) == ("completed", {})


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_one_of_a_row_that_is_removed_is_refused_and_the_others_go_on(engine: Engine, name: str) -> None:
    engine.add(*"abcd")
    row = engine.take_row()
    assert engine.remove(name) == [True]
    assert engine.beat(*row) == [name]
    assert (engine.group(), engine.take_row()) == ("busy", [])
    assert engine.complete(*row) == [int(job.id != name) for job in row]
    assert (engine.state(name), engine.run_rows()) == (None, [["d"]])


def test_a_group_whose_row_is_removed_goes_on(engine: Engine) -> None:
    engine.add(*"abcd")
    engine.take_row()
    assert engine.remove(*"abc") == [True] * 3
    assert engine.run_rows() == [["d"]]


def test_one_of_a_row_that_fails_by_hand_and_is_tried_again_comes_first_after_it(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    assert engine.fail("b") == ("active", True)
    assert engine.begin(b) == [0]
    assert engine.retry("b") == ("failed", True)
    assert engine.complete(a, b, c) == [1, 0, 1]
    assert engine.run_rows() == [["b", "d"]]


@pytest.mark.parametrize("begun", [False, True])
def test_one_of_a_row_that_fails_by_hand_has_used_an_attempt_only_if_it_has_begun(engine: Engine, begun: bool) -> None:
    engine.add(*"abc")
    _, b, _ = engine.take_row(worker="w7")
    if begun:
        engine.begin(b)
    engine.fail("b")
    stored = engine.view("b").stored
    assert (stored.attempts, stored.worker, stored.reason) == (int(begun), "w7" if begun else "", "by hand")


def test_one_of_a_row_cannot_be_moved(engine: Engine) -> None:
    engine.add(*"abc")
    engine.take_row()
    assert engine.change_delay("b", 500) == engine.promote("b") == engine.retry("b") == ("active", False)


# Missing records


def lose(engine: Engine, *job_ids: str) -> None:
    engine.client.hdel(engine.key("jobs"), *job_ids)


def test_a_row_ends_before_a_job_whose_record_is_missing(engine: Engine) -> None:
    engine.add(*"abcd")
    lose(engine, "b")
    row = engine.take_row()
    assert ids(row) == ["a"]
    engine.complete(*row)
    assert engine.take_row() == []
    assert engine.woken()
    assert engine.run_rows() == [["c", "d"]]
    assert engine.counter("lost") == 1


def test_behind_a_head_whose_record_is_missing_nobody_follows(engine: Engine) -> None:
    engine.add(*"abcd")
    engine.add("x", "y", group="other")
    lose(engine, "a")
    answer = engine.advance(take=2, row=3)
    assert (ids(answer.jobs), answer.rows, engine.group()) == (["x", "y"], [2], "ready")
    assert engine.run_rows() == [["b", "c", "d"]]
    assert engine.counter("lost") == 1


@pytest.mark.parametrize("outcome", [*OUTCOMES, "expire"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_record_lost_while_its_row_is_held_leaves_no_ghost(engine: Engine, at: int, outcome: str) -> None:
    engine.add(*"abcd")
    row = engine.take_row()
    job = row.pop(at)
    lose(engine, job.id)
    if outcome == "expire":
        engine.pass_time(LEASE - 1)
        engine.beat(*row)
        assert engine.stall(1) == []
    else:
        assert OUTCOMES[outcome](engine, job) == [1]
    assert engine.group() == "busy"
    engine.complete(*row)
    assert engine.run_rows() == [["d"]]
    assert min(engine.counts().values()) == 0
