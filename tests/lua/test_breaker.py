"""Breakers: a group whose attempts fail in a row rests, then one job is tried. Also jobs that snooze."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from groupmq.core.limits import Breaker
from groupmq.core.queue_options import QueueOptions
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine
from tests.support import meta

COOLDOWN = 60 * SECOND


@pytest.fixture
def breaking(make_engine: MakeEngine) -> Engine:
    return make_engine(breaker=Breaker(failures=3, cooldown=60), max_attempts=100)


def fail_times(engine: Engine, n: int) -> None:
    for _ in range(n):
        engine.retry_run(engine.take_one(), 0)


def test_a_group_rests_after_failures_in_a_row_and_no_other_does(breaking: Engine) -> None:
    breaking.add("a", "b")
    breaking.add("other", group="h")
    fail_times(breaking, 3)
    look = breaking.look_group()
    assert (look.state, look.why, look.failures, look.until) == ("parked", "breaker", 3, T0 + COOLDOWN)
    assert breaking.run_all(5) == ["other"]
    breaking.pass_time(COOLDOWN - 1)
    assert breaking.take(5) == []
    breaking.pass_time(1)
    assert breaking.run_all() == ["a", "b"]
    assert breaking.view("a").stored.attempts == 4  # resting used none
    assert breaking.look_group().failures == 0


def test_what_is_not_in_a_row_does_not_count(breaking: Engine) -> None:
    breaking.add("a", "b")
    fail_times(breaking, 2)
    breaking.complete(breaking.take_one())
    fail_times(breaking, 2)
    assert breaking.group() == "ready"


def test_final_failures_and_stalls_count(breaking: Engine) -> None:
    breaking.add("a", "b", "c", "d")
    breaking.fail_run(breaking.take_one())
    breaking.take_one()
    breaking.stall()
    breaking.fail_run(breaking.take_one())
    assert breaking.look_group().why == "breaker"


@pytest.mark.parametrize("kind", ["release", "limit", "snooze", "cancel"])
def test_runs_that_do_not_fail_say_nothing(breaking: Engine, kind: str) -> None:
    breaking.add("a", "b")
    fail_times(breaking, 2)
    taken = breaking.take_one()
    if kind == "release":
        breaking.release(taken)
    elif kind == "limit":
        breaking.limit_run(taken, 0)
    elif kind == "snooze":
        breaking.advance(commands.snoozed(taken.id, taken.fence, 0, False))
    else:
        breaking.cancel(taken.id)
        breaking.fail_run(taken, "cancelled")
    assert (breaking.group(), breaking.look_group().failures) == ("ready", 2)


def test_one_job_is_tried_alone(make_engine: MakeEngine) -> None:
    engine = make_engine(breaker=Breaker(failures=2, cooldown=60), group_concurrency=3)
    engine.add(*"abcdef")
    taken = engine.take(3)
    engine.fail_run(taken[0])
    engine.fail_run(taken[1])
    engine.pass_time(COOLDOWN)
    engine.beat(taken[2])
    assert engine.take(3) == []  # the third of these jobs still runs
    assert engine.release(taken[2]) == [1]
    [probe] = engine.take(3, row=3, fill=5)
    assert engine.group() == "busy"
    assert [job.id for job in engine.advance(commands.completed(probe.id, probe.fence, None), take=5).jobs] == [*"def"]


def test_nothing_is_prefetched_behind_the_job_that_is_tried(breaking: Engine) -> None:
    breaking.add("a", "b", "c")
    fail_times(breaking, 3)
    breaking.pass_time(COOLDOWN)
    assert [job.id for job in breaking.take(1, row=3, fill=3)] == ["a"]


def test_a_failed_try_makes_the_group_rest_again(breaking: Engine) -> None:
    breaking.add("a")
    fail_times(breaking, 3)
    breaking.pass_time(COOLDOWN)
    fail_times(breaking, 1)
    assert (breaking.look_group().failures, breaking.look_group().held_ms) == (4, COOLDOWN)


def test_failures_outlive_the_jobs_of_their_group(breaking: Engine) -> None:
    """An endpoint that is down fails each job at once, and the group is empty in between."""
    for n in range(3):
        breaking.add(f"a{n}")
        breaking.fail_run(breaking.take_one())
    breaking.add("b")
    assert breaking.look_group().why == "breaker"


def test_failures_are_forgotten_after_ten_cooldowns(breaking: Engine) -> None:
    breaking.add("a")
    breaking.fail_run(breaking.take_one())
    breaking.pass_time(10 * COOLDOWN - 1)
    breaking.due()
    assert breaking.look().breakers == {"g": (1, 0)}
    breaking.pass_time(1)
    breaking.due()
    assert (breaking.look().breakers, breaking.counter("breakers")) == ({}, 0)
    assert not breaking.client.exists(breaking.key("breakers"), breaking.key("breaking"))


def test_a_group_whose_long_try_outlives_its_failures_goes_on(make_engine: MakeEngine) -> None:
    engine = make_engine(breaker=Breaker(failures=1, cooldown=1), group_concurrency=2)
    engine.add("a", "b")
    engine.fail_run(engine.take_one())
    engine.pass_time(SECOND)
    probe = engine.take_one(lease_ms=100 * SECOND)
    engine.add("c")
    assert engine.take(1) == []
    engine.pass_time(9 * SECOND)
    engine.due()
    assert [job.id for job in engine.take(1)] == ["c"]
    engine.complete(probe)


def test_a_group_may_rest_and_be_blocked(make_engine: MakeEngine) -> None:
    engine = make_engine(breaker=Breaker(failures=1, cooldown=60), on_failed="hold")
    engine.add("a", "b")
    engine.fail_run(engine.take_one())
    assert engine.group() == "blocked"
    engine.retry("a")
    assert engine.look_group().why == "breaker"
    engine.pass_time(COOLDOWN)
    assert engine.run_all() == ["a", "b"]


DAMAGE: dict[str, Callable[[Engine], Any]] = {
    "no end": lambda e: e.client.delete(e.key("breaking")),
    "no failures": lambda e: e.client.delete(e.key("breakers")),
    "a short value": lambda e: e.client.hset(e.key("breakers"), "g", b"\1"),
    "not listed as open": lambda e: e.client.delete(e.key("opened")),
    "listed as open": lambda e: e.client.zadd(e.key("opened"), {"closed": 5}),
    "closed and listed": lambda e: e.client.hset(e.key("breakers"), "g", struct.pack(">I6s", 1, bytes(6))),
    "the flag": lambda e: meta.zero(e.client, e.keys.meta, "breakers"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_to_a_breaker_is_found_and_mended(breaking: Engine, kind: str) -> None:
    breaking.add("a", "b")
    fail_times(breaking, 3)
    assert breaking.damage() == {}
    DAMAGE[kind](breaking)
    assert breaking.damage() != {}
    breaking.due()
    assert breaking.violations() == []
    assert breaking.damage() == {}


# How many are open


def opened(engine: Engine) -> dict[str, int]:
    """The groups whose breaker is open, and since when. Checks that all other views agree."""
    listed = engine.call(commands.list_since("opened", 0, 100, engine.now))
    found, stats = dict(listed.found), engine.call(commands.stats(now=engine.now))
    assert (listed.total, stats.opened, stats.opened_since) == (len(found), len(found), min(found.values(), default=0))
    for group, since in found.items():
        assert engine.look_group(group).opened_since == since
    return found


def test_a_breaker_is_counted_from_when_it_opens_until_a_job_completes(breaking: Engine) -> None:
    breaking.add("a")
    fail_times(breaking, 2)
    assert opened(breaking) == {}
    fail_times(breaking, 1)
    assert opened(breaking) == {"g": T0}
    breaking.pass_time(COOLDOWN)
    assert opened(breaking) == {"g": T0}, "the rest is over, but no job has completed yet"
    taken = breaking.take_one()
    assert opened(breaking) == {"g": T0}
    breaking.retry_run(taken, 0)
    assert opened(breaking) == {"g": T0}, "the breaker was not closed in between"
    breaking.pass_time(COOLDOWN)
    breaking.complete(breaking.take_one())
    assert opened(breaking) == {}
    assert not breaking.client.exists(breaking.key("opened"))


def test_an_open_breaker_is_counted_whatever_is_done_to_its_group(make_engine: MakeEngine) -> None:
    engine = make_engine(breaker=Breaker(failures=1, cooldown=60), on_failed="hold")
    engine.add("a", "b")
    engine.fail_run(engine.take_one())
    engine.pause("g")
    engine.resume("g")
    assert opened(engine) == {"g": T0}
    engine.retry("a")
    assert opened(engine) == {"g": T0}
    engine.remove("a", "b")
    assert (opened(engine), engine.client.exists(engine.key("groups"))) == ({"g": T0}, 0)
    engine.pass_time(10 * COOLDOWN)
    engine.due()
    assert opened(engine) == {}, "the last failure is too long ago to count"


def change(engine: Engine, options: QueueOptions) -> None:
    engine.call(commands.open_queue(options, engine.call(commands.look_at_queue())))


def test_without_the_rule_no_breaker_is_open_and_none_stays(breaking: Engine) -> None:
    breaking.add("a")
    fail_times(breaking, 3)
    without = replace(breaking.options, breaker=None)
    change(breaking, without)
    assert (opened(breaking), breaking.client.zcard(breaking.key("opened"))) == ({}, 1)
    change(breaking, breaking.options)
    assert opened(breaking) == {"g": T0}, "the breaker is open since the same time as before"
    change(breaking, without)
    breaking.pass_time(10 * COOLDOWN)
    breaking.due()
    assert not breaking.client.exists(breaking.key("opened"), breaking.key("breakers"), breaking.key("breaking"))


# Snooze


def snooze(engine: Engine, delay_ms: int, *, yields: bool = False) -> commands.Taken:
    taken = engine.take_one()
    assert engine.advance(commands.snoozed(taken.id, taken.fence, delay_ms, yields, "not yet", "Snooze")).accepted == [
        1
    ]
    return taken


def test_a_snoozed_job_comes_back_at_its_place_without_using_an_attempt(engine: Engine) -> None:
    engine.add("a", "b", max_attempts=2)
    for _ in range(5):
        snooze(engine, SECOND)
        assert (engine.take(1), engine.look_group().why, engine.look_group().holder) == ([], "snoozed", "a")
        engine.pass_time(SECOND)
    taken = engine.take_one()
    assert (taken.id, taken.stored.attempts) == ("a", 0)
    engine.retry_run(taken, 0)
    snooze(engine, SECOND)
    engine.pass_time(SECOND)
    assert engine.take_one().stored.attempts == 1
    told = [(one.number, one.outcome) for one in engine.call(commands.attempts("a")).history]
    assert told == [(1, "snoozed")] * 5 + [(1, "retried"), (2, "snoozed")]


@pytest.mark.parametrize("group", ["g", None])
def test_a_snoozed_job_that_yields_or_has_no_group_is_delayed(engine: Engine, group: str | None) -> None:
    engine.add("a", "b", group=group)
    snooze(engine, SECOND, yields=group is not None)
    assert engine.state("a") == "delayed"
    assert engine.take_one().id == "b"


def test_a_snooze_of_no_time_is_a_release(engine: Engine) -> None:
    engine.add("a", "b")
    snooze(engine, 0)
    assert engine.run_all() == ["a", "b"]


def test_a_snoozed_job_can_be_moved_and_cancelled(engine: Engine) -> None:
    engine.add("a", "b")
    snooze(engine, SECOND)
    engine.change_delay("a", 5 * SECOND)
    assert (engine.look_group().why, engine.look_group().held_ms) == ("snoozed", 5 * SECOND)
    assert engine.cancel("a") == {"a": "waiting"}
    assert engine.run_all() == ["b"]


def test_a_snooze_under_an_old_fence_is_refused(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.stall(LEASE)
    assert engine.advance(commands.snoozed(taken.id, taken.fence, SECOND, False)).accepted == [0]
