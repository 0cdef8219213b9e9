"""Repeating jobs: one occurrence per tick with any number of schedulers, within bounds, and like any other job."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.client.duties.scheduler import Scheduler
from groupmq.core import record
from groupmq.core.errors import ConfigurationError
from groupmq.core.ordering import Ordering
from groupmq.core.schedule import Cron, Every
from groupmq.core.views import DutyReport
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine
from tests.lua.ticking import remove, repeating, ticks_run, watch
from tests.support.by_hand import Steps, asked

# Ticks


def test_each_tick_makes_a_job_with_an_id_and_an_order_of_its_own(engine: Engine) -> None:
    engine.repeat(Every(5), data={"x": 1}, priority=3, max_attempts=7)
    engine.pass_time(5 * SECOND)
    assert engine.tick().added == 1
    engine.pass_time(5 * SECOND)
    assert engine.tick().added == 1
    first, second = engine.run_all(1)
    assert first != second
    for job_id, tick in ((first, T0 + 5000), (second, T0 + 10_000)):
        stored = record.unpack(engine.view(job_id).record)
        assert (stored.order_ms, stored.order_given, stored.group_id) == (tick, True, "g")
        assert (stored.priority, stored.max_attempts, stored.data) == (3, 7, b'{"x":1}')


def test_the_returned_job_is_the_next_occurrence(engine: Engine) -> None:
    job = engine.repeat(Every(5))
    assert (job.state, job.order_ms, engine.state(job.id)) == ("delayed", T0 + 5000, None)
    assert job.run_at is not None
    assert job.run_at.timestamp() == T0 / 1000 + 5
    engine.pass_time(5 * SECOND)
    engine.tick()
    assert engine.take_one().id == job.id


def test_nothing_is_added_before_its_tick_and_the_look_says_how_long_that_is(engine: Engine) -> None:
    engine.repeat(Every(5))
    engine.pass_time(4999)
    ran = engine.tick()
    assert (ran.added, ran.next_in) == (0, 0.001)
    engine.pass_time(1)
    ran = engine.tick()
    assert (ran.added, ran.next_in) == (1, 5)
    assert engine.tick().added == 0


def test_late_looks_do_not_move_the_grid(engine: Engine) -> None:
    engine.repeat(Every(5))
    for late in (5001, 5300, 4999, 6200):
        engine.pass_time(late)
        engine.tick(watched_since=T0)
    assert ticks_run(engine) == [5000, 10_000, 15_000, 20_000]


@pytest.mark.parametrize(("catch_up", "expected"), [("one", [20]), ("all", [5, 10, 15, 20]), ("none", [])])
def test_missed_ticks_are_caught_up_as_catch_up_demands(engine: Engine, catch_up: Any, expected: list[int]) -> None:
    engine.repeat(Every(5, catch_up=catch_up))
    engine.pass_time(22 * SECOND)
    engine.tick()
    assert ticks_run(engine) == [at * SECOND for at in expected]
    assert watch(engine, 8 * SECOND) == [25 * SECOND, 30 * SECOND]


def test_occurrences_of_a_group_run_one_after_the_other_like_any_jobs(engine: Engine) -> None:
    engine.repeat(Every(5, catch_up="all"))
    engine.pass_time(15 * SECOND)
    assert engine.tick().added == 3
    assert len(engine.take(5)) == 1


def test_more_than_a_call_adds_is_caught_up_by_one_look(engine: Engine) -> None:
    engine.repeat(Every(1, catch_up="all"))
    engine.pass_time(2500 * SECOND)
    assert engine.tick().added == 2500
    assert engine.counts()["waiting"] == 2500


def test_more_repeats_than_a_call_reads_are_run_by_one_look(engine: Engine) -> None:
    for i in range(230):
        engine.repeat(Every(5), group=f"g{i}")
    engine.pass_time(5 * SECOND)
    assert engine.tick().added == 230
    assert len(repeating(engine)) == 230


# Any number of schedulers


def interleaved(engine: Engine, n: int) -> list[DutyReport]:
    """Run `n` schedulers side by side, step by step, so that each of them reads before any of them writes."""
    looks: list[Steps[DutyReport]] = [Scheduler(asked, T0).run_once() for _ in range(n)]
    calls = {i: look.send(None) for i, look in enumerate(looks)}
    done: dict[int, DutyReport] = {}
    while calls:
        answers = {i: engine.call(engine.at_now(call)) for i, call in calls.items()}
        calls = {}
        for i, answer in answers.items():
            try:
                calls[i] = looks[i].send(answer)
            except StopIteration as stop:
                done[i] = stop.value
    return [done[i] for i in range(n)]


@pytest.mark.parametrize("catch_up", ["one", "all"])
def test_of_any_number_of_schedulers_one_makes_the_job_of_a_tick(engine: Engine, catch_up: Any) -> None:
    engine.repeat(Every(5, catch_up=catch_up), group="g")
    engine.repeat(Every(7, catch_up=catch_up), group="h")
    for _ in range(4):
        engine.pass_time(35 * SECOND)
        before = engine.counts()["waiting"]
        ran = interleaved(engine, 5)
        added = 2 if catch_up == "one" else 12
        assert engine.counts()["waiting"] - before == added
        assert sorted(one.added for one in ran) == [0, 0, 0, 0, added]
        engine.run_all(10)


def test_a_tick_sent_again_adds_nothing(engine: Engine) -> None:
    engine.repeat(Every(5))
    [rid] = engine.look().repeats
    engine.pass_time(5 * SECOND)
    call = commands.tick([[rid, T0 + 5000, T0 + 10_000, T0 + 5000]], engine.now)
    assert engine.call(call).added == 1
    before = engine.digest()
    assert engine.call(call).added == 0
    assert {key: value for key, value in engine.digest().items() if before.get(key) != value} == {}


def test_a_tick_of_a_repeat_that_was_removed_meanwhile_adds_nothing(engine: Engine) -> None:
    engine.repeat(Every(5))
    [rid] = engine.look().repeats
    remove(engine, "g", Every(5))
    engine.pass_time(5 * SECOND)
    assert engine.call(commands.tick([[rid, T0 + 5000, T0 + 10_000, T0 + 5000]], engine.now)) == (0, -1)
    assert engine.counts()["waiting"] == 0


def test_a_tick_whose_job_exists_already_is_not_run_twice(engine: Engine) -> None:
    """A failover may have forgotten the new `next`, and not the job."""
    engine.repeat(Every(5))
    [rid] = engine.look().repeats
    engine.add(f"{rid}:{T0 + 5000}", data="was there")
    engine.pass_time(5 * SECOND)
    engine.tick()
    assert engine.counts()["waiting"] == 1
    assert watch(engine, 5 * SECOND) == [5000, 10_000]


# Bounds


def test_a_limit_ends_the_repeat_and_nothing_of_it_stays(engine: Engine) -> None:
    engine.repeat(Every(5, limit=3))
    assert watch(engine, 60 * SECOND) == [5000, 10_000, 15_000]
    assert repeating(engine) == []
    assert engine.look().ticks == {}


def test_a_start_and_an_end_bound_the_ticks_both_included(engine: Engine) -> None:
    engine.repeat(Every(5, start=(T0 + 12 * SECOND) / 1000, end=(T0 + 22 * SECOND) / 1000))
    assert watch(engine, 60 * SECOND) == [12 * SECOND, 17 * SECOND, 22 * SECOND]
    assert repeating(engine) == []


def test_immediately_runs_once_before_the_first_tick(engine: Engine) -> None:
    job = engine.repeat(Every(5, immediately=True))
    assert (job.state, engine.state(job.id)) == ("waiting", "waiting")
    assert ticks_run(engine) == [0]
    assert watch(engine, 10 * SECOND) == [5000, 10_000]


def test_the_immediate_run_counts_towards_the_limit(engine: Engine) -> None:
    engine.repeat(Every(5, immediately=True, limit=2))
    engine.repeat(Every(5, immediately=True, limit=1), group="h")
    assert [one.group_id for one in repeating(engine)] == ["g"]
    assert ticks_run(engine) == [0, 0]
    assert watch(engine, 60 * SECOND) == [5000]


@pytest.mark.parametrize(
    "over", [Every(5, end=(T0 - 1) / 1000), Every(5, end=(T0 + 4 * SECOND) / 1000), Cron("* * * * *", end=T0 / 1000)]
)
def test_a_repeat_that_will_never_tick_is_refused_and_nothing_is_written(engine: Engine, over: Any) -> None:
    engine.add("x")
    before = engine.digest()
    with pytest.raises(ConfigurationError, match=r"^repeat: expected a repeat that still ticks"):
        engine.repeat(over)
    assert engine.digest() == before


# Together with other features


def test_a_repeat_that_cannot_be_read_here_does_not_stop_the_others(engine: Engine) -> None:
    engine.repeat(Cron("* * * * *", key="lost"))
    engine.repeat(Every(60, key="fine"))
    [rid] = [name for name, one in engine.look().repeats.items() if one["key"] == "lost"]
    raw = engine.client.hget(engine.key("repeats"), rid)
    engine.client.hset(engine.key("repeats"), rid, raw.replace(b'"tz":"UTC"', b'"tz":"MRS"'))
    engine.pass_time(61 * SECOND)
    ran = engine.tick()
    assert ran.added == 1
    assert len(ran.errors) == 1
    assert rid in ran.errors[0]
    assert "MRS" in ran.errors[0]


def test_an_occurrence_that_is_not_started_in_time_expires(engine: Engine) -> None:
    job = engine.repeat(Every(5), ttl=2)
    engine.pass_time(5 * SECOND)
    engine.tick()
    engine.pass_time(2 * SECOND)
    engine.due()
    assert engine.state(job.id) == "failed"


def test_an_occurrence_waits_in_the_windows_of_its_queue(make_engine: MakeEngine) -> None:
    for ordering in (Ordering.event_time(3), Ordering.arrival(3)):
        engine = make_engine(ordering=ordering)
        engine.repeat(Every(5))
        engine.pass_time(5 * SECOND)
        engine.tick()
        assert engine.advance(take=1).wait_ms == 3 * SECOND


def test_answers_to_workers_carry_the_time_of_the_next_tick(engine: Engine) -> None:
    assert engine.advance().tick_ms == -1
    engine.repeat(Every(5))
    engine.repeat(Every(3), group="h")
    assert engine.advance().tick_ms == 3 * SECOND
    engine.pass_time(4 * SECOND)
    assert engine.advance().tick_ms == 0
    engine.tick()
    assert engine.advance().tick_ms == SECOND


def test_repeats_are_no_damage_to_repair(engine: Engine) -> None:
    engine.repeat(Every(5))
    watch(engine, 12 * SECOND)
    assert engine.run_now(engine.operations.repair()).clean
