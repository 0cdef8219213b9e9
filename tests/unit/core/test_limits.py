"""Rate limits and dedupe: their meaning, and the values that are refused."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from groupmq.core import limits
from groupmq.core.errors import ConfigurationError, GroupFull, GroupMQError
from groupmq.core.limits import MAX_STARTS, Breaker, Debounce, RateLimit, Throttle
from tests.support.hostile import Opaque

BAD_DURATIONS: list[Any] = [0, -1, 0.0005, math.nan, math.inf, "5", None, True, timedelta(0), 10**12, Opaque()]
BAD_KEYS: list[Any] = ["", None, 5, b"k", True, "\ud800", "x" * 4097, ["k"]]


def label(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("count", [0, -1, 1.0, 1.5, True, "5", None, MAX_STARTS + 1, math.nan], ids=label)
def test_a_bad_number_of_starts_is_refused_by_name(count: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^RateLimit\.count: expected an integer from 1 to 1000000, got "):
        RateLimit(count, per=1)


@pytest.mark.parametrize("per", BAD_DURATIONS, ids=label)
def test_a_bad_window_of_a_rate_is_refused_by_name(per: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^RateLimit\.per: expected .*, got "):
        RateLimit(1, per)


@pytest.mark.parametrize("failures", [0, -1, 1.0, True, "5", None], ids=label)
def test_a_bad_number_of_failures_is_refused_by_name(failures: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^Breaker\.failures: expected an integer from 1 to 1000000, got "):
        Breaker(failures)


@pytest.mark.parametrize("cooldown", BAD_DURATIONS, ids=label)
def test_a_bad_cooldown_is_refused_by_name(cooldown: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^Breaker\.cooldown: expected .*, got "):
        Breaker(5, cooldown)


def test_a_breaker_is_a_breaker_or_nothing() -> None:
    assert (limits.breaker(None), limits.breaker(Breaker())) == (None, Breaker(5, 60))
    assert (Breaker().packed(), Breaker(3, timedelta(minutes=1)).described()) == (
        [5, 60_000],
        {"failures": 3, "cooldown": 60.0},
    )
    with pytest.raises(
        ConfigurationError, match=r"^breaker: expected a Breaker\(failures=5, cooldown=60\) or None, got 5"
    ):
        limits.breaker(5)


@pytest.mark.parametrize("key", BAD_KEYS, ids=label)
@pytest.mark.parametrize("kind", [Throttle, Debounce])
def test_a_bad_key_is_refused_by_name(kind: Any, key: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{kind.__name__}\.key: expected .*, got "):
        kind(key, 5)


@pytest.mark.parametrize("duration", BAD_DURATIONS, ids=label)
@pytest.mark.parametrize(("kind", "named"), [(Throttle, "Throttle.ttl"), (Debounce, "Debounce.delay")])
def test_a_bad_duration_is_refused_by_name(kind: Any, named: str, duration: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{named}: expected .*, got "):
        kind("k", duration)


def test_limits_are_sent_in_whole_milliseconds_never_shorter_than_asked() -> None:
    assert RateLimit(3, 0.0011).packed() == [3, 2]
    assert RateLimit(3, timedelta(hours=1)).packed() == [3, 3_600_000]
    assert Throttle("k", 0.0011).packed() == [1, "k", 2]
    assert Debounce("k", timedelta(seconds=2)).packed() == [2, "k", 2000]
    assert Debounce("k", 0.0011).delay_ms == 2


def test_equal_rates_are_described_alike_however_they_were_written() -> None:
    assert RateLimit(3, 60).described() == RateLimit(3, timedelta(minutes=1)).described() == {"count": 3, "per": 60.0}


@pytest.mark.parametrize("value", [5, "3/s", (3, 1), True, RateLimit, Throttle("k", 1)], ids=label)
def test_anything_else_is_no_rate_limit(value: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^some_rate: expected a RateLimit\(count, per=seconds\) or None, got "
    ):
        limits.rate_limit(value, "some_rate")


@pytest.mark.parametrize("value", ["k", 5, True, ("k", 5), Throttle, RateLimit(1, 1)], ids=label)
def test_anything_else_is_no_dedupe(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^dedupe: expected a Throttle\(key, ttl\) or a Debounce"):
        limits.dedupe(value)


def test_no_limit_is_one_choice() -> None:
    assert limits.rate_limit(None, "rate_limit") is None
    assert limits.dedupe(None) is None


def test_a_full_group_says_which_and_how_full_and_is_of_our_family() -> None:
    error = GroupFull("user:42", 3)
    assert isinstance(error, GroupMQError)
    assert not isinstance(error, ConfigurationError)
    assert str(error) == "group 'user:42' is full: it has 3 live jobs, the most it may have; nothing was added"
