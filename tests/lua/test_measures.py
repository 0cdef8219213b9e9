"""How long jobs waited and ran, and what happened in each minute."""

from __future__ import annotations

import pytest

from groupmq import commands
from groupmq.operations.measuring import MOST_MINUTES, histogram, minute_stats
from tests.lua.engine import LEASE, SECOND, T0, Engine

MINUTE = 60 * SECOND
FORTNIGHT = MOST_MINUTES * MINUTE


def waits(engine: Engine) -> dict[float, int]:
    return nonzero(engine.call(commands.stats()).wait)


def runs(engine: Engine) -> dict[float, int]:
    return nonzero(engine.call(commands.stats()).run)


def nonzero(numbers: list[int]) -> dict[float, int]:
    """Upper bounds in ms that counted anything."""
    found = histogram(numbers)
    return {bound * 1000: n for bound, n in zip(found.bounds, found.buckets, strict=True) if n}


def minutes(engine: Engine, n: int) -> list[commands.Minute]:
    return engine.call(commands.series(n, engine.now))[1]


@pytest.mark.parametrize(
    ("ms", "below"), [(0, 1), (1, 2), (2, 4), (3, 4), (4, 8), (1023, 1024), (2**23 - 1, 2**23), (2**23, float("inf"))]
)
def test_a_time_is_counted_under_the_next_power_of_two(engine: Engine, ms: int, below: float) -> None:
    engine.add("a")
    engine.pass_time(ms)
    job = engine.take_one(lease_ms=2**30)
    engine.pass_time(ms)
    engine.complete(job)
    assert (waits(engine), runs(engine)) == ({below: 1}, {below: 1})
    stats = engine.call(commands.stats())
    assert (histogram(stats.wait).sum, histogram(stats.run).mean) == (ms / 1000, ms / 1000)


def test_waiting_is_measured_once_for_a_job_and_running_for_each_run(engine: Engine) -> None:
    engine.add("a")
    engine.pass_time(3)
    engine.retry_run(engine.take_one(), 0)
    engine.pass_time(100)
    engine.complete(engine.take_one())
    assert (waits(engine), runs(engine)) == ({4: 1}, {1: 2})


def test_a_delay_is_no_waiting(engine: Engine) -> None:
    engine.add("a", delay=5)
    engine.pass_time(5 * SECOND + 1)
    engine.take_one()
    assert waits(engine) == {2: 1}


def test_a_job_with_an_order_of_its_own_waits_from_its_arrival(engine: Engine) -> None:
    engine.add("a", order_ms=1)
    engine.pass_time(7)
    engine.take_one()
    assert waits(engine) == {8: 1}


def test_a_clock_that_steps_back_measures_nothing_below_zero(engine: Engine) -> None:
    engine.add("a")
    engine.pass_time(-MINUTE)
    job = engine.take_one()
    engine.pass_time(-MINUTE)
    engine.complete(job)
    assert (waits(engine), runs(engine)) == ({1: 1}, {1: 1})


def test_each_minute_has_its_own_counts(engine: Engine) -> None:
    engine.add("a", "b", "c", "d")
    engine.complete(engine.take_one())
    engine.pass_time(MINUTE)
    engine.retry_run(engine.take_one(), 0)
    engine.complete(engine.take_one())
    engine.fail_run(engine.take_one(), "boom")
    engine.pass_time(2 * MINUTE)
    engine.take_one()
    engine.pass_time(LEASE + 1)
    engine.due()
    first, second, third, fourth = minutes(engine, 4)
    assert first[:6] == (1, 0, 0, 0, 0, 1)
    assert second[:6] == (1, 1, 1, 0, 0, 2)
    assert third == (0,) * 8
    assert fourth[:6] == (0, 0, 0, 1, 0, 1)
    assert minute_stats(0, second).mean_wait == 60
    assert minutes(engine, 0) == []


def test_minutes_are_kept_for_two_weeks_and_the_wait_of_all_time(engine: Engine) -> None:
    engine.add("a", "b", "c")
    engine.complete(engine.take_one())
    engine.pass_time(FORTNIGHT - MINUTE)
    engine.complete(engine.take_one())
    assert [sum(one) > 0 for one in (minutes(engine, MOST_MINUTES)[i] for i in (0, 1, -1))] == [True, False, True]
    engine.pass_time(MINUTE)
    engine.complete(engine.take_one())
    fields = engine.client.hkeys(engine.key("series"))
    assert set(fields) == {str(T0 // MINUTE + n).encode() for n in (MOST_MINUTES - 1, MOST_MINUTES)} | {b"wait", b"run"}
    assert sum(waits(engine).values()) == 3
    engine.client.flushall()  # the first minute is forgotten, so the rest no longer adds up to the counters


def test_after_a_long_silence_what_is_too_old_goes_once_there_is_too_much(engine: Engine) -> None:
    engine.add("a")
    minute = T0 // MINUTE
    stored = {str(minute - n): bytes(48) for n in range(1, MOST_MINUTES + 3000)}
    engine.client.hset(engine.key("series"), mapping=stored)
    engine.take_one()
    left = {int(field) for field in engine.client.hkeys(engine.key("series")) if field.isdigit()}
    assert left == set(range(minute - MOST_MINUTES + 1, minute + 1))


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 47, b"x" * 500])
def test_a_value_that_is_not_ours_is_written_anew_and_stops_nobody(engine: Engine, damage: bytes) -> None:
    engine.add("a")
    for field in (str(T0 // MINUTE), "wait", "run"):
        engine.client.hset(engine.key("series"), field, damage)
    stats = engine.call(commands.stats())
    assert (histogram(stats.wait).count, minutes(engine, 1)) == (0, [(0,) * 8])
    engine.complete(engine.take_one())
    assert (waits(engine), runs(engine)) == ({1: 1}, {1: 1})
    assert minutes(engine, 1)[0][:6] == (1, 0, 0, 0, 0, 1)


def test_groups_are_counted_by_what_they_may_do(engine: Engine) -> None:
    engine.add("alone", group=None)
    for group in ("ready", "also ready", "held", "paused", "paused and empty", "busy"):
        engine.add(group, group=group)
    for job in engine.take(7):
        if job.id == "held":
            engine.retry_run(job, 5 * SECOND)
        elif job.id != "busy":
            engine.release(job)
    engine.add("behind", group="busy")
    engine.remove("paused and empty")
    engine.pause("paused")
    engine.pause("paused and empty")
    engine.limit("ready", 3)
    stats = engine.call(commands.stats(now=engine.now))
    assert (stats.ready, stats.due, stats.overrides) == (2, 1, 3)
    metrics = engine.run(engine.operations.get_metrics(0))
    assert (metrics.groups_ready, metrics.groups_due, metrics.groups_paused) == (2, 1, 2)


def test_paused_groups_are_counted_page_by_page(engine: Engine) -> None:
    for n in range(1500):
        engine.pause(f"g{n}")
    engine.limit("other", 2)
    assert engine.run(engine.operations.get_metrics(0)).groups_paused == 1500


def test_how_long_the_first_in_line_has_waited(engine: Engine) -> None:
    assert engine.call(commands.stats(now=engine.now)).oldest_ms == -1
    engine.add("a", group="a")
    engine.pass_time(5)
    engine.add("b", group="b")
    engine.pass_time(10)
    assert engine.call(commands.stats(now=engine.now)).oldest_ms == 15
    engine.take_one()
    assert engine.call(commands.stats(now=engine.now)).oldest_ms == 10
    engine.take_one()
    assert engine.call(commands.stats(now=engine.now)).oldest_ms == -1
