"""A worker reports that a job of its row has begun; and a request that brought a row is resent."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import FRESH, Outcome, Taken
from tests.lua.engine import LEASE, SECOND, T0, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


# Begun


def test_one_that_has_begun_is_like_any_that_runs(engine: Engine) -> None:
    engine.add(*"abc")
    a, b, c = engine.take_row(worker="w7")
    engine.pass_time(SECOND)
    assert engine.complete(a) == [1]
    engine.pass_time(SECOND)
    assert engine.begin(b) == [1]
    view = engine.view("b")
    assert (view.state, view.fence, view.started, view.worker) == ("active", b.fence, T0, "w7")
    assert (engine.look().ahead, engine.look().active["b"], view.stored) == ({"c"}, T0 + LEASE, FRESH)
    engine.pass_time(SECOND)
    assert engine.complete(b) == [1]
    stored = engine.view("b").stored
    # The start is when the row was taken, not when the server learned that the job had begun.
    assert (stored.attempts, stored.started, stored.finished) == (1, T0, T0 + 3 * SECOND)
    assert engine.complete(c) == [1]


def test_beginning_again_changes_nothing(engine: Engine) -> None:
    engine.add(*"abc")
    a, b, _ = engine.take_row()
    engine.begin(b)
    before = engine.look()
    engine.pass_time(SECOND)
    assert (engine.begin(b), engine.begin(b, b), engine.begin(a)) == ([1], [1, 1], [1])
    after = engine.look()
    assert (after.leases, after.ahead, after.entries) == (before.leases, before.ahead, before.entries)
    assert (engine.view("a").started, engine.view("b").started) == (T0, T0)


def test_beginning_twice_in_one_call_is_beginning_once(engine: Engine) -> None:
    engine.add(*"abc")
    _, b, _ = engine.take_row()
    assert engine.begin(b, b) == [1, 1]
    assert engine.heard().count(("active", "b")) == 1


@pytest.mark.parametrize("how", ["ended", "expired", "released", "removed", "next fence", "unknown"])
def test_what_begins_too_late_is_refused_and_no_loss(engine: Engine, how: str) -> None:
    engine.add(*"abcd")
    a, b, _ = engine.take_row()
    if how == "ended":
        engine.complete(a, b)
    elif how == "expired":
        engine.stall()
    elif how == "released":
        engine.release(b)
    elif how == "removed":
        engine.begin(b)
        engine.remove("b")
    elif how == "next fence":
        b = b._replace(fence=b.fence + 1)
    else:
        b = b._replace(id="ghost")
    before, told = engine.digest(), engine.heard()
    assert engine.begin(b) == [0]
    assert (engine.counter("lease_lost"), engine.heard()) == (0, told)
    after = engine.digest()
    changed = {key.decode() for key in after.keys() | before.keys() if after.get(key) != before.get(key)}
    assert changed <= {engine.key("requesters")}


ENDS: dict[str, tuple[Callable[[Taken], Outcome], str, int]] = {
    "fail": (lambda job: commands.failed(job.id, job.fence, "x", ""), "failed", 1),
    "retry": (lambda job: commands.retried(job.id, job.fence, 0, False, "x", ""), "waiting", 1),
    "yield": (lambda job: commands.retried(job.id, job.fence, 500, True, "x", ""), "delayed", 1),
    "release": (lambda job: commands.released(job.id, job.fence), "waiting", 0),
    "limited": (lambda job: commands.rate_limited(job.id, job.fence, 500), "waiting", 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_one_may_begin_and_end_in_one_call(engine: Engine, end: str) -> None:
    engine.add(*"abc")
    a, b, c = engine.take_row()
    engine.pass_time(SECOND)
    outcome, state, attempts = ENDS[end]
    answer = engine.advance(commands.completed("a", a.fence, None), commands.begun("b", b.fence), outcome(b))
    assert answer.accepted == [1, 1, 1]
    view = engine.view("b")
    assert (view.state, view.stored.attempts) == (state, attempts)
    assert view.stored.started == (T0 if attempts else 0)
    assert engine.heard().count(("active", "b")) == 1
    assert engine.look().ahead == {"c"}
    assert engine.complete(c) == [1]


def test_one_that_completes_need_not_have_begun(engine: Engine) -> None:
    """Completions are applied first. The report that the job has begun then comes too late, and nothing is lost."""
    engine.add(*"abc")
    _, b, _ = engine.take_row()
    assert engine.advance(commands.begun("b", b.fence), commands.completed("b", b.fence, b"1")).accepted == [0, 1]
    assert (engine.view("b").result, engine.counter("lease_lost")) == (b"1", 0)
    assert engine.heard().count(("active", "b")) == 1


def test_what_begins_when_its_lease_is_over_has_stalled(engine: Engine) -> None:
    engine.add(*"abc")
    a, b, _ = engine.take_row()
    engine.pass_time(LEASE)
    answer = engine.advance(commands.completed("a", a.fence, None), commands.begun("b", b.fence))
    assert (answer.accepted, [one.id for one in answer.stalled]) == ([1, 1], ["b"])
    assert [engine.view(name).stored.attempts for name in "abc"] == [1, 1, 0]
    assert engine.run_rows() == [["b"], ["c"]]


def test_a_handler_may_say_something_before_it_is_known_to_have_begun(engine: Engine) -> None:
    engine.add(*"abc")
    _, b, _ = engine.take_row()
    assert engine.report_progress(b, progress="1", line="x")
    assert engine.look().ahead == {"b", "c"}


# Resent


def test_a_row_sent_again_is_answered_the_same(engine: Engine) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", group="b")
    engine.add("c1", "c2", group="c")
    engine.add("u", group=None)
    first = engine.advance(take=9, row=3, request=7)
    assert first.rows == [3, 1, 2, 1]
    before = engine.digest()
    for _ in range(2):
        again = engine.advance(take=9, row=3, request=7)
        assert (again.jobs, again.rows) == (first.jobs, first.rows)
    assert engine.digest() == before


def test_a_row_sent_again_in_a_call_that_ended_another_is_taken_once(engine: Engine) -> None:
    engine.add(*"abcdef")
    ends = [commands.completed(job.id, job.fence, None) for job in engine.take_row()]
    first = engine.advance(*ends, take=1, row=3, request=77)
    again = engine.advance(*ends, take=1, row=3, request=77)
    assert (again.accepted, again.jobs, again.rows) == (first.accepted, first.jobs, [3])
    assert engine.counter("completed") == 3


def sent_again(engine: Engine, change: Callable[[], object]) -> tuple[list[str], Sequence[int]]:
    """Take x, the row a, b, c, and y; then make a change and resend the request. Returns the ids and rows of the second
    answer."""
    engine.add("x", group="x")
    engine.add(*"abcd")
    engine.add("y", group="y")
    assert engine.advance(take=3, row=3, request=7).rows == [1, 3, 1]
    change()
    again = engine.advance(take=3, row=3, request=7)
    return ids(again.jobs), again.rows


def give_back(engine: Engine, job_id: str) -> None:
    fence, _ = engine.look().leases[job_id]
    assert engine.advance(commands.released(job_id, fence), requester="other:0").accepted == [1]


def test_a_row_sent_again_without_its_first_begins_with_the_next(engine: Engine) -> None:
    assert sent_again(engine, lambda: engine.remove("a")) == (["x", "b", "c", "y"], [1, 2, 1])


def test_a_row_sent_again_without_its_last_is_shorter(engine: Engine) -> None:
    assert sent_again(engine, lambda: give_back(engine, "c")) == (["x", "a", "b", "y"], [1, 2, 1])


def test_a_row_sent_again_without_one_of_its_middle_is_still_one_row(engine: Engine) -> None:
    assert sent_again(engine, lambda: give_back(engine, "b")) == (["x", "a", "c", "y"], [1, 2, 1])


def test_a_row_of_which_one_is_left_is_none_when_it_is_sent_again(engine: Engine) -> None:
    def change() -> None:
        give_back(engine, "b")
        engine.remove("a")

    assert sent_again(engine, change) == (["x", "c", "y"], [])


def test_a_row_sent_again_whose_heads_record_is_missing_begins_with_the_next(engine: Engine) -> None:
    def lose() -> None:
        engine.client.hdel(engine.key("jobs"), "a")

    assert sent_again(engine, lose) == (["x", "b", "c", "y"], [1, 2, 1])
    engine.remove("x", "y")
    engine.stall()


def test_a_row_sent_again_whose_head_is_anothers_by_now_begins_with_the_next(engine: Engine) -> None:
    def give_to_another() -> None:
        engine.fail("a")
        engine.retry("a")
        engine.limit("g", 4)
        assert ids(engine.take(1, requester="other:0", worker="other")) == ["a"]

    assert sent_again(engine, give_to_another) == (["x", "b", "c", "y"], [1, 2, 1])


def test_a_row_sent_again_of_which_all_has_expired_is_empty(engine: Engine) -> None:
    assert sent_again(engine, engine.stall) == ([], [])
