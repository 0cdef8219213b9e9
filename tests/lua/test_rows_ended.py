"""How the jobs of a row end: reported, given back, expired. Each keeps its position until it has ended."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import FRESH, Policy, Stalled, Taken
from tests.lua.engine import LEASE, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


def attempts(engine: Engine, *job_ids: str) -> list[int]:
    return [engine.view(job_id).stored.attempts for job_id in job_ids]


# Given back


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_back_off_in_a_row_whose_rest_is_given_back_keeps_the_order(engine: Engine, at: int) -> None:
    engine.add(*"abcde")
    row = engine.take_row(4)
    ends = [commands.completed(job.id, job.fence, None) for job in row[:at]]
    ends.append(commands.retried(row[at].id, row[at].fence, 500, False, "boom", ""))
    rest = [commands.released(job.id, job.fence) for job in row[at + 1 :]]
    answer = engine.advance(*ends, *rest, take=1, row=4)
    assert (answer.accepted, answer.jobs, engine.group()) == ([1, 1, 1, 1], [], "parked")
    engine.pass_time(500)
    again, *later = list("abcde"[at:])
    assert engine.run_rows(5) == [[again], later]
    assert attempts(engine, *"abcde") == [2 if name == again else 1 for name in "abcde"]


def test_a_retry_that_yields_leaves_the_rest_of_its_row_to_go_on(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.complete(a)
    engine.retry_run(b, 500, yields=True)
    assert (engine.state("b"), engine.group()) == ("delayed", "busy")
    engine.pass_time(500)
    engine.complete(c)
    assert engine.run_rows() == [["b"], ["d"]]


def test_what_comes_too_often_lets_its_group_rest_and_keeps_its_position(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.advance(
        commands.completed("a", a.fence, None),
        commands.rate_limited("b", b.fence, 500),
        commands.released("c", c.fence),
    )
    assert (engine.group(), engine.view("b").stored) == ("parked", FRESH)
    engine.pass_time(500)
    assert engine.run_rows() == [["b"], ["c", "d"]]


def test_a_failure_in_a_row_whose_rest_is_given_back_ends_only_itself(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.advance(
        commands.completed("a", a.fence, None), commands.failed("b", b.fence, "x", ""), commands.released("c", c.fence)
    )
    assert (engine.state("b"), engine.view("b").stored.attempts) == ("failed", 1)
    assert engine.run_rows() == [["c", "d"]]


def test_what_is_given_back_leaves_no_trace(engine: Engine) -> None:
    engine.add(*"abcd")
    a, *rest = engine.take_row()
    before = engine.heard()
    assert engine.release(*rest) == [1, 1]
    assert engine.heard() == before
    assert (engine.look().waiting_ids("g"), engine.look().ahead) == (["b", "c", "d"], set())
    assert [engine.view(name).stored for name in "bcd"] == [FRESH] * 3
    assert (engine.client.hlen(engine.key("state")), engine.call(commands.stats(10)).failures) == (0, [])
    assert engine.take_row() == []  # a runs
    engine.complete(a)
    assert engine.run_rows() == [["b", "c", "d"]]


def test_a_whole_row_given_back_and_taken_in_one_call_keeps_its_order(engine: Engine) -> None:
    engine.add(*"abcd")
    row = engine.take_row()
    answer = engine.advance(*(commands.released(job.id, job.fence) for job in row), take=1, row=3)
    assert ids(answer.jobs)[0] == "a"
    assert answer.jobs[0].fence > row[-1].fence
    engine.complete(*answer.jobs)
    assert [name for found in engine.run_rows() for name in found] == list("abcd"[len(answer.jobs) :])


def test_a_middle_one_given_back_is_next_though_the_row_goes_on(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.release(b)
    engine.complete(a)
    assert engine.take_row() == []
    engine.complete(c)
    assert engine.run_rows() == [["b", "d"]]


# Expired


def test_of_an_expired_row_only_the_first_has_stalled(engine: Engine) -> None:
    engine.add(*"abcde")
    engine.take_row(worker="dead")
    assert engine.stall() == [Stalled("a", "g", final=False)]
    assert attempts(engine, *"abc") == [1, 0, 0]
    assert [engine.view(name).stored for name in "bc"] == [FRESH, FRESH]
    assert engine.counter("stalled") == len(engine.call(commands.stats(10)).failures) == 1
    assert engine.run_rows() == [["a"], ["b", "c", "d"], ["e"]]


def test_an_expired_row_is_taken_back_on_the_way_of_another_worker(engine: Engine) -> None:
    engine.add(*"abc")
    old = engine.take_row()
    engine.pass_time(LEASE)
    answer = engine.advance(take=1, row=3, worker="other")
    assert (ids(answer.jobs), answer.stalled) == (["a"], [Stalled("a", "g", final=False)])
    assert engine.complete(*old) == [0, 0, 0]
    assert engine.counter("lease_lost") == 3
    engine.complete(*answer.jobs)
    assert engine.run_rows() == [["b", "c"]]


def test_a_row_that_expires_after_its_first_has_ended_has_not_stalled(engine: Engine) -> None:
    engine.add(*"abcd")
    engine.complete(engine.take_row()[0])
    assert engine.stall() == []
    assert attempts(engine, *"abc") == [1, 0, 0]
    assert engine.run_rows() == [["b", "c", "d"]]


@pytest.mark.parametrize("ended", [0, 1])
def test_of_an_expired_row_the_one_that_has_begun_has_stalled(engine: Engine, ended: int) -> None:
    engine.add(*"abcd")
    row = engine.take_row()
    engine.complete(*row[:ended])
    engine.begin(row[ended])
    begun = "abc"[ended]
    assert engine.stall() == [Stalled(begun, "g", final=False)]
    assert attempts(engine, *"abc"[ended:]) == [1] + [0] * (2 - ended)
    assert engine.run_rows() == [[begun], list("abcd"[ended + 1 :])]


@pytest.mark.parametrize("policy", [(1, -1), (100, 0)], ids=["last attempt", "no stalls"])
def test_the_last_chance_of_the_first_is_nothing_to_those_behind_it(engine: Engine, policy: tuple[int, int]) -> None:
    engine.add("a")
    engine.add(*"bc", max_attempts=2)
    engine.take_row()
    assert engine.stall(policy=Policy(*policy, engine.options.keep)) == [Stalled("a", "g", final=True)]
    assert engine.run_rows() == [["b", "c"]]


def test_a_heartbeat_renews_the_leases_of_a_whole_row(engine: Engine) -> None:
    engine.add(*"abc")
    row = engine.take_row()
    engine.pass_time(LEASE - 1)
    assert engine.beat(*row) == []
    assert engine.stall(1) == []
    assert engine.look().ahead == {"b", "c"}
    assert engine.stall(LEASE - 1) == [Stalled("a", "g", final=False)]


def test_those_of_a_row_that_nobody_renews_wait_for_the_rest_of_it(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, c = engine.take_row()
    engine.pass_time(LEASE - 1)
    engine.beat(a, c)
    assert (engine.stall(1), engine.take_row()) == ([], [])
    assert engine.beat(a, b, c) == ["b"]
    assert engine.complete(a, b, c) == [1, 0, 1]
    assert engine.run_rows() == [["b", "d"]]


def test_a_row_reported_in_the_moment_of_expiry_counts(engine: Engine) -> None:
    engine.add(*"abcd")
    a, b, _ = engine.take_row()
    engine.pass_time(LEASE)
    answer = engine.advance(*(commands.completed(job.id, job.fence, None) for job in (a, b)), take=1, row=2)
    assert (answer.accepted, answer.stalled) == ([1, 1], [])
    assert ids(answer.jobs)[0] == "c"
    assert attempts(engine, *"abc") == [1, 1, 0]
