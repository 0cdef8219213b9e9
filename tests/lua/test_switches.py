"""Pausing and resuming a queue or a group, and the limit of a single group."""

from __future__ import annotations

import pytest

from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, Engine


def test_nothing_starts_in_a_paused_queue_and_everything_is_still_there(engine: Engine) -> None:
    engine.add("a", group="a")
    assert engine.pause() is True
    engine.add("b", group="b")
    assert engine.take(5) == []
    assert engine.pause() is False
    assert engine.resume() is True
    assert engine.woken()
    assert [job.id for job in engine.take(5)] == ["a", "b"]
    assert engine.resume() is False


def test_a_completion_in_a_paused_queue_starts_nothing_behind_it(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    engine.pause()
    answer = engine.advance(commands.completed("a", taken.fence, None), take=5)
    assert (answer.accepted, answer.jobs) == ([1], [])
    engine.resume()
    assert engine.run_all() == ["b"]


def test_time_passes_in_a_paused_queue_too(engine: Engine) -> None:
    engine.add("delayed", delay=1, group="a")
    engine.add("held", group="b")
    engine.retry_run(engine.take_one(), SECOND)
    engine.add("leased", group="c")
    engine.take_one(lease_ms=SECOND)
    engine.pause()
    engine.pass_time(SECOND)
    answer = engine.advance(take=5)
    assert (answer.jobs, [one.id for one in answer.stalled]) == ([], ["leased"])
    engine.resume()
    assert sorted(engine.run_all()) == ["delayed", "held", "leased"]


def test_a_paused_group_starts_nothing_and_the_others_go_on(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    assert engine.pause("a") is True
    assert engine.pause("a") is False
    assert engine.group("a") == "paused"
    assert engine.run_all() == ["b"]
    engine.woken()
    assert engine.resume("a") is True
    assert engine.woken()
    assert engine.resume("a") is False
    assert engine.run_all() == ["a"]


def test_a_group_may_be_paused_before_it_has_any_job(engine: Engine) -> None:
    engine.pause("g")
    engine.add("a")
    assert engine.take() == []
    engine.resume("g")
    assert engine.run_all() == ["a"]


def test_a_group_paused_while_it_runs_ends_its_run_and_stops(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    engine.pause("g")
    assert engine.group() == "paused"
    answer = engine.advance(commands.completed("a", taken.fence, None), take=5)
    assert (answer.accepted, answer.jobs) == ([1], [])
    engine.resume("g")
    assert engine.run_all() == ["b"]


def test_a_group_paused_in_its_back_off_is_in_its_back_off_again_when_resumed(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 5 * SECOND)
    engine.pause("g")
    engine.pass_time(SECOND)
    engine.resume("g")
    assert (engine.group(), engine.take()) == ("parked", [])
    engine.pass_time(4 * SECOND)
    assert engine.run_all() == ["a"]


def test_a_group_whose_back_off_ended_while_paused_starts_when_resumed(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), SECOND)
    engine.pause("g")
    engine.pass_time(5 * SECOND)
    assert engine.take() == []
    engine.resume("g")
    assert engine.run_all() == ["a"]


def test_a_higher_limit_lets_more_jobs_of_the_group_start_at_once(engine: Engine) -> None:
    engine.add("a", "b", "c", "d")
    assert [job.id for job in engine.take(5)] == ["a"]
    engine.woken()
    assert engine.limit("g", 3) is True
    assert engine.woken()
    assert [job.id for job in engine.take(5)] == ["b", "c"]
    assert engine.group() == "busy"


def test_a_lower_limit_ends_nothing_and_starts_nothing_until_there_is_room(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=3)
    engine.add("a", "b", "c", "d", "e")
    a, b, c = engine.take(5)
    engine.limit("g", 1)
    engine.complete(a)
    engine.complete(b)
    assert engine.take(5) == []
    engine.complete(c)
    assert [job.id for job in engine.take(5)] == ["d"]


def test_without_a_limit_of_its_own_a_group_has_that_of_the_queue(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.limit("g", 5)
    engine.add("a", "b", "c")
    assert engine.limit("g", 0) is True
    assert engine.limit("g", 0) is False
    assert len(engine.take(5)) == 2
    assert engine.look().conf == {}


def test_a_limit_of_one_group_is_not_that_of_another(engine: Engine) -> None:
    engine.limit("a", 2)
    for group in ("a", "b"):
        engine.add(f"{group}1", f"{group}2", group=group)
    assert sorted(job.id for job in engine.take(10)) == ["a1", "a2", "b1"]


def test_a_paused_group_keeps_its_limit_and_a_limited_group_its_pause(engine: Engine) -> None:
    engine.limit("g", 2)
    engine.pause("g")
    engine.add("a", "b", "c")
    assert engine.take(5) == []
    engine.limit("g", 3)
    assert engine.take(5) == []
    engine.resume("g")
    assert len(engine.take(5)) == 3


@pytest.mark.parametrize("group", ["x", "x:active", "{}", "\n", "g:", "ö\U0001f600", "meta"])
def test_switches_of_a_group_with_any_name_touch_no_other(engine: Engine, group: str) -> None:
    engine.add("mine", group=group)
    engine.add("other", group="other")
    engine.pause(group)
    assert engine.run_all() == ["other"]
    engine.resume(group)
    assert engine.run_all() == ["mine"]
