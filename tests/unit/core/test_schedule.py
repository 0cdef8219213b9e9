"""When repeats tick: the grid of `Every`, the clock changes of `Cron`, and missed ticks."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from groupmq.core.errors import ConfigurationError
from groupmq.core.schedule import Cron, Every, Repeat, last_tick, tick_after
from tests.support.hostile import Opaque

T0 = 1_700_000_000_000
STOCKHOLM, NEW_YORK = "Europe/Stockholm", "America/New_York"


def plan(repeat: Repeat, now: int = T0) -> dict[str, Any]:
    return repeat.plan(now, None)


def ticks(repeat: Repeat, after: int, n: int) -> list[int]:
    found: list[int] = []
    tick: int | None = after
    while len(found) < n:
        assert tick is not None
        tick = tick_after(plan(repeat, after), tick)
        if tick is None:
            break
        found.append(tick)
    return found


def local(pattern: str, tz: str, after: str, n: int) -> list[str]:
    """The ticks after a local time, as local times with their offset from UTC."""
    zone = ZoneInfo(tz)
    start = int(datetime.fromisoformat(after).replace(tzinfo=zone).timestamp() * 1000)
    return [f"{datetime.fromtimestamp(t / 1000, zone):%m-%d %H:%M%z}" for t in ticks(Cron(pattern, tz=tz), start, n)]


# The grid of Every


def test_ticks_are_whole_intervals_from_the_definition() -> None:
    assert ticks(Every(5), T0, 3) == [T0 + 5000, T0 + 10_000, T0 + 15_000]


def test_ticks_are_whole_intervals_from_the_start_if_one_is_given() -> None:
    late = Every(10, start=(T0 - 3000) / 1000)
    assert ticks(late, T0, 2) == [T0 + 7000, T0 + 17_000]
    early = Every(10, start=(T0 + 2000) / 1000)
    assert ticks(early, T0, 2) == [T0 + 2000, T0 + 12_000]


def test_a_look_that_comes_late_does_not_move_the_grid() -> None:
    every = plan(Every(5))
    assert [tick_after(every, T0 + late) for late in (0, 1, 4999, 5000, 5001, 12_345)] == [
        T0 + at for at in (5000, 5000, 5000, 10_000, 10_000, 15_000)
    ]


@pytest.mark.parametrize("interval", [0.1, 1 / 3, 0.0015, 7, timedelta(milliseconds=33), timedelta(microseconds=1234)])
def test_a_million_ticks_do_not_drift(interval: Any) -> None:
    every = Every(interval)
    grid = plan(every)
    exact = T0 + 1_000_000 * every.micros // 1000
    assert tick_after(grid, exact - 1) == exact
    assert last_tick(grid, exact) == exact
    wanted = interval.total_seconds() if isinstance(interval, timedelta) else interval
    assert abs(exact - T0 - wanted * 1e9) <= 1 + 0.5 * 1000


def test_ticks_of_less_than_a_millisecond_apart_in_phase_stay_apart() -> None:
    assert ticks(Every(0.0015), T0, 4) == [T0 + 1, T0 + 3, T0 + 4, T0 + 6]


def test_the_last_tick_is_the_one_at_or_before_an_instant() -> None:
    every = plan(Every(5))
    assert [last_tick(every, T0 + at) for at in (5000, 9999, 10_000)] == [T0 + 5000, T0 + 5000, T0 + 10_000]


# Start and end


def test_a_tick_at_the_end_still_comes_and_none_after_it() -> None:
    every = plan(Every(5, end=(T0 + 10_000) / 1000))
    assert tick_after(every, T0 + 5000) == T0 + 10_000
    assert tick_after(every, T0 + 10_000) is None
    assert last_tick(every, T0 + 60_000) == T0 + 10_000


def test_a_tick_of_a_cron_at_its_start_counts_and_none_before_it() -> None:
    cron = Cron("0 * * * *", start=datetime(2024, 1, 1, 12, tzinfo=UTC), end=datetime(2024, 1, 1, 13, tzinfo=UTC))
    noon = int(datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp() * 1000)
    assert tick_after(plan(cron), T0) == noon
    assert tick_after(plan(cron), noon) == noon + 3_600_000
    assert tick_after(plan(cron), noon + 3_600_000) is None


# Cron


def test_five_fields_are_minutes_and_six_have_seconds_in_front() -> None:
    base = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1000)
    assert ticks(Cron("*/15 * * * *"), base, 2) == [base + 900_000, base + 1_800_000]
    assert ticks(Cron("*/15 * * * * *"), base, 2) == [base + 15_000, base + 30_000]
    assert ticks(Cron("30 0 9 * * *"), base, 1) == [base + 9 * 3_600_000 + 30_000]


def test_a_cron_ticks_in_its_zone_winter_and_summer() -> None:
    weekdays = local("0 9 * * 1-5", STOCKHOLM, "2026-03-27T08:00", 3)
    assert weekdays == ["03-27 09:00+0100", "03-30 09:00+0200", "03-31 09:00+0200"]


@pytest.mark.parametrize(
    ("tz", "pattern", "after", "expected"),
    [
        (STOCKHOLM, "30 2 * * *", "2026-03-28T00:00", ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
        (NEW_YORK, "30 2 * * *", "2026-03-07T00:00", ["03-07 02:30-0500", "03-08 03:00-0400", "03-09 02:30-0400"]),
        ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T00:00", ["11-04 01:00-0200", "11-05 00:00-0200"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00", ["10-04 02:30+1100", "10-05 02:15+1100"]),
        ("Pacific/Apia", "0 9 * * *", "2011-12-29T00:00", ["12-29 09:00-1000", "12-31 00:00+1400", "12-31 09:00+1400"]),
    ],
)
def test_a_time_in_the_gap_of_spring_ticks_once_at_its_end(
    tz: str, pattern: str, after: str, expected: list[str]
) -> None:
    assert local(pattern, tz, after, len(expected)) == expected


def test_several_times_in_one_gap_tick_once() -> None:
    expected = ["03-29 01:30+0100", "03-29 03:00+0200", "03-30 01:30+0200", "03-30 02:00+0200", "03-30 02:30+0200"]
    assert local("0,30 1,2 * * *", STOCKHOLM, "2026-03-29T01:00", 6) == [
        *expected[:2],
        "03-30 01:00+0200",
        *expected[2:],
    ]


@pytest.mark.parametrize(
    ("tz", "pattern", "after", "expected"),
    [
        (STOCKHOLM, "30 2 * * *", "2026-10-24T12:00", ["10-25 02:30+0200", "10-26 02:30+0100", "10-27 02:30+0100"]),
        (STOCKHOLM, "15,45 2 * * *", "2026-10-24T12:00", ["10-25 02:15+0200", "10-25 02:45+0200", "10-26 02:15+0100"]),
        (NEW_YORK, "30 1 * * *", "2026-10-31T12:00", ["11-01 01:30-0400", "11-02 01:30-0500", "11-03 01:30-0500"]),
    ],
)
def test_a_time_in_the_hour_that_comes_twice_in_autumn_ticks_the_first_time_only(
    tz: str, pattern: str, after: str, expected: list[str]
) -> None:
    assert local(pattern, tz, after, len(expected)) == expected


@pytest.mark.parametrize(
    ("tz", "after", "expected"),
    [
        (STOCKHOLM, "2026-10-25T01:30", ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"]),
        (NEW_YORK, "2026-11-01T00:30", ["11-01 01:00-0400", "11-01 01:00-0500", "11-01 02:00-0500"]),
        (STOCKHOLM, "2026-03-29T00:30", ["03-29 01:00+0100", "03-29 03:00+0200", "03-29 04:00+0200"]),
        (NEW_YORK, "2026-03-08T00:30", ["03-08 01:00-0500", "03-08 03:00-0400", "03-08 04:00-0400"]),
    ],
)
def test_an_hourly_cron_ticks_each_hour_of_real_time(tz: str, after: str, expected: list[str]) -> None:
    assert local("0 * * * *", tz, after, 3) == expected


def test_a_scheduler_that_starts_in_the_second_of_two_hours_does_not_repeat_the_first() -> None:
    second_hour = int(datetime(2026, 10, 25, 1, 10, tzinfo=UTC).timestamp() * 1000)
    [tick] = ticks(Cron("30 2 * * *", tz=STOCKHOLM), second_hour, 1)
    assert datetime.fromtimestamp(tick / 1000, UTC) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("pattern", ["* * * * * *", "*/5 * * * *", "0 9 * * 1-5", "0 0 29 2 *", "30 2 * * *"])
def test_the_last_tick_of_a_cron_is_the_one_at_or_before_an_instant(pattern: str) -> None:
    cron = plan(Cron(pattern, tz=STOCKHOLM))
    tick = tick_after(cron, T0)
    assert tick is not None
    assert last_tick(cron, tick) == tick
    assert last_tick(cron, tick + 999) == tick
    assert last_tick(cron, tick - 1) < tick


# Bad input


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "a non-empty string"),
        (" ", "Wrong number of fields"),
        (None, "a non-empty string"),
        (5, "a non-empty string"),
        (b"* * * * *", "a non-empty string"),
        ("* * * *", "Wrong number of fields"),
        ("* * * * * * *", "Wrong number of fields"),
        ("@daily", "Wrong number of fields"),
        ("60 * * * *", "Bad minute"),
        ("-1 * * * *", "Bad minute"),
        ("*/0 * * * *", "Bad minute"),
        ("5-1 * * * *", "Bad minute"),
        ("every 5 minutes a day", "Bad minute"),
        ("* 24 * * *", "Bad hour"),
        ("* * 0 * *", "Bad day-of-month"),
        ("0 0 30 2 *", "Bad day-of-month"),
        ("* * * 13 *", "Bad month"),
        ("* * * * 8", "Bad day-of-week"),
        ("61 * * * * *", "Bad second"),
    ],
)
def test_a_bad_pattern_is_refused_by_name(pattern: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^Cron\.pattern: expected .*{why}.*, got "):
        Cron(pattern)


@pytest.mark.parametrize(
    "tz", ["", None, 5, True, "Mars/Base", "Europe", "../etc/passwd", "\0", "\ud800", "x" * 5000, UTC]
)
def test_an_unknown_zone_is_refused_by_name(tz: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^Cron\.tz: expected a time zone of the tz database.*, got "):
        Cron("* * * * *", tz=tz)


@pytest.mark.parametrize(
    "interval", [0, -1, 0.0005, math.nan, math.inf, "5", None, True, timedelta(0), 10**12, Opaque()]
)
def test_a_bad_interval_is_refused_by_name(interval: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^Every\.interval: expected .*, got "):
        Every(interval)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"key": ""}, "key"),
        ({"key": 5}, "key"),
        ({"key": "\ud800"}, "key"),
        ({"start": "tomorrow"}, "start"),
        ({"start": datetime(2024, 1, 1)}, "start"),
        ({"start": True}, "start"),
        ({"end": datetime(2024, 1, 1)}, "end"),
        ({"end": math.nan}, "end"),
        ({"start": 20, "end": 10}, "end"),
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 1.0}, "limit"),
        ({"immediately": 1}, "immediately"),
        ({"immediately": None}, "immediately"),
        ({"catch_up": "some"}, "catch_up"),
        ({"catch_up": None}, "catch_up"),
        ({"catch_up": ["one"]}, "catch_up"),
        ({"overlap": "wait"}, "overlap"),
        ({"overlap": None}, "overlap"),
    ],
)
@pytest.mark.parametrize("kind", [lambda **fields: Every(5, **fields), lambda **fields: Cron("0 9 * * *", **fields)])
def test_a_bad_field_of_a_repeat_is_refused_by_name(kind: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^repeat\.{re.escape(named)}: expected .*, got "):
        kind(**fields)


# Names and plans


def test_a_repeat_is_named_by_its_key_or_else_by_what_it_says() -> None:
    assert Every(5).name == Every(5.0).name == Every(timedelta(seconds=5)).name == "every 5 s"
    assert Cron("0  9 * * *").name == Cron(" 0 9 * * * ").name == "cron 0 9 * * * (UTC)"
    assert Cron("0 9 * * *", tz=STOCKHOLM).name != Cron("0 9 * * *").name
    assert Every(5, key="mine").name == Cron("0 9 * * *", key="mine").name == "mine"


def test_the_same_timing_keeps_the_grid_and_another_begins_anew() -> None:
    first = plan(Every(5), T0)
    assert Every(5, limit=3).plan(T0 + 777, first)["anchor"] == T0
    assert Every(6).plan(T0 + 777, first)["anchor"] == T0 + 777
    assert Every(5, start=T0 / 1000 + 9).plan(T0 + 777, first)["anchor"] == T0 + 9000


def test_the_next_runs_are_the_next_ticks() -> None:
    after = datetime(2026, 11, 17, 8, 0, tzinfo=UTC)
    assert Every(60).next_runs(after, 2) == [after + timedelta(minutes=1), after + timedelta(minutes=2)]
    assert Cron("0 9 * * *", tz=STOCKHOLM).next_runs(after, 1) == [after.replace(day=18)]


def test_there_are_no_next_runs_after_the_end() -> None:
    after = datetime(2026, 11, 17, 8, 0, tzinfo=UTC)
    assert Every(60, end=after + timedelta(seconds=90)).next_runs(after) == [after + timedelta(minutes=1)]
