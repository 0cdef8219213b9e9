"""Rows: jobs of a group that are taken together, in order. They hold their group until the last one has ended."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, T0, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


def test_a_row_is_the_next_jobs_of_a_group_in_their_order_under_growing_fences(engine: Engine) -> None:
    for name, order in (("d", 4), ("b", 2), ("a", 1), ("e", 5), ("c", 3)):
        engine.add(name, order_ms=order, data=name)
    answer = engine.advance(take=1, row=3)
    assert (ids(answer.jobs), answer.rows) == (["a", "b", "c"], [3])
    fences = [job.fence for job in answer.jobs]
    assert fences == sorted(set(fences))
    for job in answer.jobs:
        view = engine.view(job.id)
        assert (job.record, job.stored, job.fence) == (view.record, commands.FRESH, view.fence)
        assert (view.state, view.worker, view.started) == ("active", "w", T0)
    assert engine.look().ahead == {"b", "c"}
    assert set(engine.look().active.values()) == {T0 + LEASE}


@pytest.mark.parametrize("row", [1, 2, 3, 4, 5, 6, 100])
def test_a_row_is_as_long_as_it_was_asked_for_or_as_there_are_jobs(engine: Engine, row: int) -> None:
    engine.add(*"abcde")
    answer = engine.advance(take=1, row=row)
    assert ids(answer.jobs) == list("abcde"[:row])
    assert answer.rows == ([] if row == 1 else [min(row, 5)])


def test_each_head_has_its_row_and_only_heads_are_counted(engine: Engine) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", group="b")
    engine.add("u1", "u2", group=None)
    engine.add("c1", "c2", group="c")
    engine.add("d1", group="d")
    answer = engine.advance(take=5, row=2)
    assert (ids(answer.jobs), answer.rows) == ("a1 a2 b1 u1 u2 c1 c2".split(), [2, 1, 1, 1, 2])


def test_where_nobody_follows_an_answer_says_nothing_of_rows(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    assert engine.advance(take=2, row=3).rows == []
    assert engine.advance(take=2, row=3).rows == []


def test_the_group_is_busy_until_the_last_of_its_row_has_ended(engine: Engine) -> None:
    engine.add(*"abcd")
    for job in engine.take_row():
        assert (engine.group(), engine.take_row(worker="other", requester="other:0")) == ("busy", [])
        assert engine.complete(job) == [1]
    assert engine.group() == "ready"
    assert ids(engine.take_row(worker="other", requester="other:0")) == ["d"]


def test_what_a_row_holds_is_counted_as_running(make_engine: MakeEngine) -> None:
    engine = make_engine(max_group_size=4)
    engine.add(*"abcd")
    a, *rest = engine.take_row()
    assert (engine.counts()["active"], engine.look().groups["g"].running) == (3, 3)
    assert engine.add("e").full == [0]
    engine.complete(a)
    assert engine.add("e").full == []
    engine.complete(*rest)
    assert engine.run_rows() == [["d", "e"]]


def test_one_call_ends_a_row_and_takes_the_next(engine: Engine) -> None:
    engine.add(*"abcde")
    ends = [commands.completed(job.id, job.fence, job.id.encode()) for job in engine.take_row()]
    answer = engine.advance(*ends, take=1, row=3)
    assert (answer.accepted, ids(answer.jobs), answer.rows) == ([1, 1, 1], ["d", "e"], [2])
    for name in "abc":
        view = engine.view(name)
        assert (view.state, view.result, view.stored.attempts) == ("completed", name.encode(), 1)
    assert engine.counter("completed") == 3


def test_one_by_one_they_leave_the_next_head_to_the_end_of_the_last(engine: Engine) -> None:
    engine.add(*"abcd")
    ends = [commands.completed(job.id, job.fence, None) for job in engine.take_row()]
    assert [ids(engine.advance(end, take=1, row=3).jobs) for end in ends] == [[], [], ["d"]]


def test_the_end_of_a_row_wakes_somebody_for_what_is_left(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.woken()
    engine.complete(a, b)
    assert not engine.woken()
    engine.complete(c)
    assert engine.woken()


def test_who_arrives_meanwhile_waits_for_the_next_row(engine: Engine) -> None:
    engine.add("b", "c", order_ms=5)
    row = engine.take_row()
    engine.add("a", order_ms=1)
    engine.add("d", order_ms=9)
    engine.complete(*row)
    assert engine.run_rows() == [["a", "d"]]


def test_of_an_empty_or_paused_queue_or_group_no_row_is_taken(engine: Engine) -> None:
    assert engine.advance(take=1, row=3).rows == []
    engine.add(*"abc")
    engine.pause()
    assert engine.take_row() == []
    engine.resume()
    engine.pause("g")
    assert engine.take_row() == []
    engine.resume("g")
    assert ids(engine.take_row(2)) == ["a", "b"]
    engine.pause("g")
    assert engine.group() == "paused"
