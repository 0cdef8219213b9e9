"""Rows that lose a job: prefetched jobs that an operator acts on, and missing records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Taken
from tests.lua.engine import LEASE, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


OUTCOMES: dict[str, Callable[[Engine, Taken], list[int]]] = {
    "release": lambda engine, job: engine.release(job),
    "retry": lambda engine, job: engine.retry_run(job, 500),
    "limit": lambda engine, job: engine.limit_run(job, 500),
}

ASKED = 100
"""Milliseconds for which a job that was given back for an operator is not taken, as in lua/transitions/release.lua."""

# Operations on one job. They return the status in the answer: 1 done, 0 refused, 2 not settled yet.
OPERATIONS: dict[str, Callable[[Engine, str], int]] = {
    "remove": lambda engine, job_id: engine.remove(job_id)[0],
    "fail": lambda engine, job_id: engine.fail(job_id).status,
    "cancel": lambda engine, job_id: {"unsettled": 2}.get(engine.cancel(job_id)[job_id], 1),
    "update": lambda engine, job_id: engine.update(job_id, b"2").status,
    "delay": lambda engine, job_id: engine.change_delay(job_id, 500).status,
    "promote": lambda engine, job_id: engine.promote(job_id).status,
    "recall": lambda engine, job_id: 2 * len(engine.call(commands.recall([job_id], engine.now)).unsettled),
}
DONE_WAITING = {"remove": 1, "fail": 1, "cancel": 1, "update": 1, "delay": 1, "promote": 0, "recall": 0}
DONE_RUNNING = {"remove": 1, "fail": 1, "cancel": 1, "update": 1, "delay": 0, "promote": 0, "recall": 0}


@pytest.fixture
def row(engine: Engine) -> list[Taken]:
    engine.heartbeat()
    engine.add(*"abcd")
    return engine.take_row()


def mailed(engine: Engine) -> bool:
    return bool(engine.client.delete(engine.keys.mail("w")))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_is_done_to_a_prefetched_job_before_its_worker_has_answered(
    engine: Engine, row: list[Taken], operation: str
) -> None:
    before = engine.view("b")
    assert OPERATIONS[operation](engine, "b") == 2
    assert (engine.view("b"), engine.group()) == (before, "busy")
    assert mailed(engine)
    assert engine.heartbeat(row[0]).recalled == [row[1].fence]
    assert engine.heartbeat(worker="other").recalled == []
    assert OPERATIONS[operation](engine, "b") == 2


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_prefetched_job_that_is_given_back_is_acted_on_like_any_that_waits(
    engine: Engine, row: list[Taken], operation: str
) -> None:
    OPERATIONS[operation](engine, "b")
    assert engine.release(*row[1:]) == [1, 1]
    assert (engine.look().recalls, engine.heartbeat().recalled) == ({}, [])
    assert OPERATIONS[operation](engine, "b") == DONE_WAITING[operation]
    engine.complete(row[0])
    runs = operation in ("update", "promote", "recall")
    assert engine.run_rows() == [], "no worker takes it before the operator has tried again"
    engine.pass_time(ASKED)
    assert [one for row in engine.run_rows() for one in row] == (["b", "c", "d"] if runs else ["c", "d"])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_prefetched_job_that_has_begun_is_acted_on_like_any_that_runs(
    engine: Engine, row: list[Taken], operation: str
) -> None:
    OPERATIONS[operation](engine, "b")
    engine.complete(row[0])
    assert engine.begin(row[1]) == [1]
    assert (engine.look().recalls, engine.heartbeat().recalled) == ({}, [])
    assert OPERATIONS[operation](engine, "b") == DONE_RUNNING[operation]
    if operation in ("remove", "fail"):
        assert engine.heartbeat().ended == [row[1].fence]
    elif operation == "cancel":
        assert engine.heartbeat().cancelled == [row[1].fence]
    assert engine.complete(row[1]) == [operation not in ("remove", "fail")]
    engine.complete(row[2])
    assert engine.run_rows() == [["d"]]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_prefetched_job_of_a_dead_worker_is_settled_by_its_lease(
    engine: Engine, row: list[Taken], operation: str
) -> None:
    engine.pass_time(LEASE - 1)
    assert OPERATIONS[operation](engine, "b") == 2
    engine.pass_time(1)
    assert OPERATIONS[operation](engine, "b") == DONE_WAITING[operation]
    assert engine.look().recalls == {}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_prefetched_job_that_has_run_meanwhile_is_left_as_it_ended(
    engine: Engine, row: list[Taken], operation: str
) -> None:
    OPERATIONS[operation](engine, "b")
    engine.complete(*row)
    assert engine.look().recalls == {}
    if operation in ("remove", "update"):
        assert OPERATIONS[operation](engine, "b") == 1
    elif operation == "cancel":
        assert engine.cancel("b") == {"b": "completed"}
    else:
        assert OPERATIONS[operation](engine, "b") == 0


def test_a_page_of_leases_names_what_is_not_settled_and_what_runs(engine: Engine, row: list[Taken]) -> None:
    engine.add("x", group="other")
    engine.take_one()
    page = engine.call(commands.recall_page("0", None, engine.now))
    assert (page.cursor, sorted(page.unsettled), sorted(page.running)) == ("0", ["b", "c"], ["a", "x"])
    page = engine.call(commands.recall_page("0", "other", engine.now))
    assert (page.unsettled, page.running) == ([], ["x"])


def test_removal_that_is_bound_to_finished_jobs_asks_nobody(engine: Engine, row: list[Taken]) -> None:
    assert engine.remove("b", states=["completed", "failed", "delayed"]) == [0]
    assert not mailed(engine)


@pytest.mark.parametrize("states", [["waiting"], ["active"]])
def test_a_prefetched_job_counts_as_what_it_turns_out_to_be(
    engine: Engine, row: list[Taken], states: list[str]
) -> None:
    assert engine.remove("b", states=states) == [2]
    engine.release(*row[1:])
    assert engine.remove("b", states=states) == [states == ["waiting"]]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_one_of_a_row_that_is_removed_while_it_runs_is_refused_and_the_others_go_on(engine: Engine, name: str) -> None:
    engine.add(*"abcd")
    row = engine.take_row()
    engine.begin(*row)
    assert engine.remove(name) == [True]
    assert engine.beat(*row) == [name]
    assert (engine.group(), engine.take_row()) == ("busy", [])
    assert engine.complete(*row) == [int(job.id != name) for job in row]
    assert (engine.state(name), engine.run_rows()) == (None, [["d"]])


def test_one_of_a_row_that_fails_by_hand_and_is_tried_again_comes_first_after_it(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.begin(b)
    assert engine.fail("b") == ("active", True)
    assert engine.begin(b) == [0]
    assert engine.retry("b") == ("failed", True)
    assert engine.complete(a, b, c) == [1, 0, 1]
    assert engine.run_rows() == [["b", "d"]]


@pytest.mark.parametrize("begun", [False, True])
def test_one_of_a_row_that_fails_by_hand_has_used_an_attempt_only_if_it_has_begun(engine: Engine, begun: bool) -> None:
    engine.add(*"abc")
    _, b, c = engine.take_row(worker="w7")
    if begun:
        engine.begin(b)
    else:
        engine.fail("b")
        engine.release(b, c)
    engine.fail("b")
    stored = engine.view("b").stored
    assert (stored.attempts, stored.worker, stored.reason) == (int(begun), "w7" if begun else "", "by hand")


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
