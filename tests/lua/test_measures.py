"""The times for which jobs waited and ran, and the counts of each minute."""

from __future__ import annotations

import pytest

from groupmq.client.answers.measures import histogram
from groupmq.client.answers.spans import span
from groupmq.client.queue.measures import MOST_MINUTES
from groupmq.core.views import Histogram
from groupmq.protocol import commands, functions
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine
from tests.model.mutant import Mutant, loader

MINUTE = 60 * SECOND
FORTNIGHT = MOST_MINUTES * MINUTE
HISTOGRAMS = {b"wait", b"run"}


def waits(engine: Engine) -> dict[float, int]:
    return nonzero(engine.call(commands.stats()).wait)


def runs(engine: Engine) -> dict[float, int]:
    return nonzero(engine.call(commands.stats()).run)


def nonzero(numbers: list[int]) -> dict[float, int]:
    """The counts of the buckets that are not empty, by upper bound in ms."""
    found = histogram(numbers)
    return {bound * 1000: n for bound, n in zip(found.bounds, found.buckets, strict=True) if n}


def minutes(engine: Engine, n: int) -> list[commands.Minute]:
    return engine.call(commands.series(n, now=engine.now))[1]


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
    assert third == commands.Minute()
    assert fourth[:6] == (0, 0, 0, 1, 0, 1)
    assert span(0, [second], 1).mean_wait == 60
    assert minutes(engine, 0) == []


def test_minutes_are_kept_for_two_weeks_and_the_wait_of_all_time(engine: Engine) -> None:
    engine.add("a", "b", "c")
    engine.complete(engine.take_one())
    engine.pass_time(FORTNIGHT - MINUTE)
    engine.complete(engine.take_one())
    assert [sum(one[:8]) > 0 for one in (minutes(engine, MOST_MINUTES)[i] for i in (0, 1, -1))] == [True, False, True]
    engine.pass_time(MINUTE)
    engine.complete(engine.take_one())
    fields = engine.client.hkeys(engine.key("series"))
    assert set(fields) == {str(T0 // MINUTE + MOST_MINUTES - 1).encode()} | HISTOGRAMS, "beside the current minute"
    assert sum(waits(engine).values()) == 3
    engine.client.flushall()  # the first minute is forgotten, so the rest no longer adds up to the counters


def test_after_a_long_silence_what_is_too_old_goes_once_there_is_too_much(engine: Engine) -> None:
    engine.add("a")
    minute = T0 // MINUTE
    stored = {str(minute - n): bytes(48) for n in range(1, MOST_MINUTES + 3000)}
    engine.client.hset(engine.key("series"), mapping=stored)
    engine.complete(engine.take_one())
    for n in range(1, 300):
        engine.pass_time(MINUTE)
        engine.add(f"b{n}")
        engine.complete(engine.take_one())
    left = {int(field) for field in engine.client.hkeys(engine.key("series")) if field.isdigit()}
    assert set(range(minute + 300 - MOST_MINUTES, minute + 299)) <= left, "beside the current minute"
    assert len(left) <= MOST_MINUTES + 841


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 47, b"x" * 500])
def test_a_value_that_is_not_ours_is_written_anew_and_stops_nobody(engine: Engine, damage: bytes) -> None:
    engine.add("a", "b")
    for field in (str(T0 // MINUTE), "wait", "run"):
        engine.client.hset(engine.key("series"), field, damage)
    engine.client.hset(engine.key("meta"), "measures", damage)
    stats = engine.call(commands.stats())
    assert (histogram(stats.wait).count, minutes(engine, 1)) == (0, [commands.Minute()])
    engine.complete(engine.take_one())
    assert (waits(engine), runs(engine)) == ({1: 1}, {1: 1})
    assert minutes(engine, 1)[0][:6] == (1, 0, 0, 0, 0, 1)
    engine.pass_time(MINUTE)
    engine.complete(engine.take_one())
    assert minutes(engine, 2)[0][:6] == (1, 0, 0, 0, 0, 1), "after the minute"
    assert sum(runs(engine).values()) == 2


def spread(engine: Engine, minute: int) -> tuple[dict[float, int], dict[float, int]]:
    """The waits and runs of a minute; minutes count from that of T0."""
    [found] = engine.call(commands.series(1, T0 // MINUTE + minute, now=engine.now))[1]
    stats = span(0, [found], 1)
    return buckets(stats.wait), buckets(stats.run)


def buckets(found: Histogram) -> dict[float, int]:
    return {bound * 1000: n for bound, n in zip(found.bounds, found.buckets, strict=True) if n}


def test_each_minute_knows_how_long_its_own_jobs_waited_and_ran(engine: Engine) -> None:
    engine.add("a", "b", "c")
    engine.pass_time(3)
    job = engine.take_one()
    engine.pass_time(1)
    engine.complete(job)
    first: tuple[dict[float, int], dict[float, int]] = ({4: 1}, {2: 1})
    assert spread(engine, 0) == first, "during the minute"
    engine.pass_time(MINUTE)
    job = engine.take_one()
    assert spread(engine, 0) == first, "after the minute"
    assert spread(engine, 1) == ({65536: 1}, {})
    engine.pass_time(2 * MINUTE)
    engine.fail_run(job)
    engine.retry_run(engine.take_one(lease_ms=2**30), 0)
    assert [spread(engine, n) for n in range(4)] == [
        first,
        ({65536: 1}, {}),
        ({}, {}),
        ({262144: 1}, {131072: 1, 1: 1}),
    ]
    assert spread(engine, 4) == ({}, {})


def test_a_minute_that_comes_again_goes_on_where_it_was(engine: Engine) -> None:
    """The clock may step back after a failover, or by hand."""
    engine.add(*(f"j{n}" for n in range(6)), group=None)
    for ms in (0, MINUTE, -MINUTE, 0, MINUTE, MINUTE):
        engine.pass_time(ms)
        engine.complete(engine.take_one())
    assert [sum(spread(engine, n)[1].values()) for n in range(3)] == [3, 2, 1]
    assert [sum(spread(engine, n)[0].values()) for n in range(3)] == [3, 2, 1]
    assert [one.completed for one in minutes(engine, 3)] == [3, 2, 1]
    assert (sum(waits(engine).values()), sum(runs(engine).values())) == (6, 6)


def test_after_a_silence_longer_than_two_weeks_the_last_minute_is_forgotten(engine: Engine) -> None:
    engine.add("a", "b")
    engine.complete(engine.take_one())
    engine.pass_time(FORTNIGHT + MINUTE)
    engine.complete(engine.take_one())
    assert set(engine.client.hkeys(engine.key("series"))) == HISTOGRAMS
    assert sum(waits(engine).values()) == 2, "the histograms of all time still have it"
    assert sum(spread(engine, MOST_MINUTES + 1)[1].values()) == 1
    engine.client.flushall()


DEFECTS = [
    Mutant("all minutes are one", "elseif measure_value.minute_of(value) ~= minute then", "elseif false then"),
    Mutant("a minute that comes again forgets what it had", "if before then", "if false then"),
    Mutant("the minute under way keeps what the one before had", "rep(9 * 6) .. NOTHING", "rep(54) .. raw:sub(101)"),
    Mutant("a minute that is over keeps no histograms", "return numbers .. pack_pairs(counts)", "return numbers"),
    Mutant("times of a minute that is over not added up", "if raw and #raw == 6 * #numbers then", "if false then"),
]


@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.defect for defect in DEFECTS])
def test_defects_of_minutes_are_caught(
    make_engine: MakeEngine, defect: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "load", loader(defect))
    engine = make_engine()
    with pytest.raises(AssertionError):
        test_a_minute_that_comes_again_goes_on_where_it_was(engine)
    engine.client.flushall()  # remove what the defect has left behind


def test_failed_jobs_that_retention_drops_are_counted(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=2)
    engine.add(*(f"j{n}" for n in range(7)), group=None)
    for n, job in enumerate(engine.take(5)):
        engine.fail_run(job)
        assert minutes(engine, 1)[0].spread.get(commands.DROPPED, 0) == max(0, n - 1)
    engine.pass_time(MINUTE)
    for job in engine.take(2):
        engine.fail_run(job)
    [before, now] = engine.run_now(engine.operations.get_metrics(2)).series
    assert (before.retention_dropped, now.retention_dropped) == (3, 2)
    assert (before.failed, before.run.count, before.wait.count) == (5, 5, 5)


def test_jobs_that_are_never_kept_and_completed_ones_do_not_count_as_dropped(make_engine: MakeEngine) -> None:
    for kept, end in ((0, Engine.fail_run), (1, Engine.complete)):
        engine = make_engine(kept=kept)
        engine.add("a", "b", "c", group=None)
        for job in engine.take(3):
            end(engine, job)
        assert commands.DROPPED not in minutes(engine, 1)[0].spread


def test_a_minute_of_thousands_of_jobs_takes_few_bytes(engine: Engine) -> None:
    for n in range(40):
        engine.add(*(f"j{n} {i}" for i in range(100)), group=None)
        engine.pass_time(n)
        taken = engine.take(100)
        engine.pass_time(n)
        engine.complete(*taken)
    engine.pass_time(MINUTE)
    engine.add("later")
    engine.take_one()
    stored = engine.client.hget(engine.key("series"), str(T0 // MINUTE))
    assert stored is not None
    assert 48 < len(stored) <= 48 + 60
    assert sum(spread(engine, 0)[0].values()) == 4000


def test_a_minute_is_stored_once_it_is_over(engine: Engine) -> None:
    """During the minute its numbers are part of `meta`, so that calls need not write a further key."""
    engine.add(*(f"j{n}" for n in range(10)), group=None)

    def changed() -> set[bytes]:
        before = engine.client.hgetall(engine.key("series"))
        engine.complete(engine.take_one())
        after = engine.client.hgetall(engine.key("series"))
        return {field for field in after if after[field] != before.get(field)}

    assert changed() == changed() == set()
    engine.pass_time(MINUTE)
    assert changed() == {str(T0 // MINUTE).encode(), b"wait", b"run"}
    assert changed() == set()


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
    assert (stats.ready, stats.parked, stats.overrides) == (2, 1, 3)
    metrics = engine.run(engine.operations.get_metrics(0))
    assert (metrics.groups_ready, metrics.groups_parked, metrics.groups_paused) == (2, 1, 2)


def test_paused_groups_are_counted_page_by_page(engine: Engine) -> None:
    for n in range(1500):
        engine.pause(f"g{n}")
    engine.limit("other", 2)
    assert engine.run(engine.operations.get_metrics(0)).groups_paused == 1500
