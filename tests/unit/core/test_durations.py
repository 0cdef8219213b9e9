"""Durations and instants: accepted and refused values, and rounding that is never too early."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.core.durations import LONGEST_MS, epoch_millis, millis, moment, seconds
from groupmq.core.errors import ConfigurationError

NO_NUMBERS: list[object] = ["5", None, True, False, [], 1j, b"1", object, datetime(2024, 1, 1, tzinfo=UTC)]
OUT_OF_RANGE = [-1, -0.001, math.nan, math.inf, -math.inf, 10**400, -(10**400), 1e300, timedelta(seconds=-1)]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_duration_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^delay: expected seconds \(int, float\) or a timedelta, got "):
        seconds(value, "delay")


@pytest.mark.parametrize("value", OUT_OF_RANGE, ids=lambda value: repr(value)[:12])
def test_a_duration_out_of_range_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^delay: expected between 0 s and 100 years, got "):
        millis(value, "delay")


def test_a_minimum_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"^job_timeout: expected between 0\.05 s and 100 years, got 0\.01$"):
        seconds(0.01, "job_timeout", minimum=0.05)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (5, 5000), (0.5, 500), (0.0005, 1), (0.1, 100), (1.001, 1001), (0.0010001, 2), (1e-12, 0)],
)
def test_milliseconds_are_rounded_up_but_not_by_float_noise(value: float, expected: int) -> None:
    assert millis(value, "delay") == expected


def test_a_timedelta_is_a_duration() -> None:
    assert millis(timedelta(minutes=2, milliseconds=3), "delay") == 120_003


@given(st.integers(0, LONGEST_MS))
def test_whole_milliseconds_come_back_exactly(ms: int) -> None:
    assert millis(timedelta(milliseconds=ms), "delay") == ms


@given(st.floats(0, 1e6))
def test_a_duration_is_never_shortened_by_more_than_float_noise(value: float) -> None:
    assert millis(value, "delay") >= value * 1000 - 1e-6


def test_an_aware_datetime_is_an_instant_in_any_zone() -> None:
    moment_utc = datetime(2024, 5, 1, 12, 0, 0, 1000, tzinfo=UTC)
    elsewhere = moment_utc.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert epoch_millis(moment_utc, "run_at") == epoch_millis(elsewhere, "run_at") == 1_714_564_800_001


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (1.5, 1500), (-3, -3000), (1_700_000_000.123, 1_700_000_000_123)]
)
def test_epoch_seconds_are_an_instant(value: float, expected: int) -> None:
    assert epoch_millis(value, "run_at") == expected


def test_an_instant_is_rounded_up() -> None:
    assert epoch_millis(datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "run_at") == 1


def test_a_naive_datetime_is_refused_because_it_names_no_instant() -> None:
    with pytest.raises(ConfigurationError, match=r"^run_at: expected an aware datetime \(with a time zone\), got "):
        epoch_millis(datetime(2024, 1, 1), "run_at")


@pytest.mark.parametrize("value", ["2024-01-01", None, True, [], timedelta(1)])
def test_what_is_no_instant_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^run_at: expected an aware datetime or epoch seconds, got "):
        epoch_millis(value, "run_at")


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 1e300, 10**400, datetime.max.replace(tzinfo=UTC)],
    ids=lambda v: repr(v)[:12],
)
def test_an_instant_out_of_range_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"^run_at: expected an instant before the year 6000, got "):
        epoch_millis(value, "run_at")


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_an_instant_comes_back_not_earlier_and_within_a_millisecond(when: datetime) -> None:
    back = moment(epoch_millis(when, "run_at"))
    assert back is not None
    assert timedelta(microseconds=-2) <= back - when <= timedelta(milliseconds=1)


def test_zero_is_never() -> None:
    assert moment(0) is None
