"""Windows for late jobs: their meaning in milliseconds, and the values that are refused."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from groupmq.core.errors import ConfigurationError
from groupmq.core.ordering import Ordering, checked
from groupmq.core.queue_options import QueueOptions
from tests.support.hostile import Opaque

BAD_DURATIONS: list[Any] = [0, -1, 0.0005, math.nan, math.inf, "5", None, True, timedelta(0), 10**12, Opaque()]


@pytest.mark.parametrize("window", BAD_DURATIONS)
@pytest.mark.parametrize("make", [Ordering.event_time, Ordering.arrival])
def test_a_bad_window_is_refused_by_name(make: Any, window: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^window: expected .*, got "):
        make(window)


@pytest.mark.parametrize("max_wait", [value for value in BAD_DURATIONS if value is not None])
def test_a_bad_max_wait_is_refused_by_name(max_wait: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^max_wait: expected .*, got "):
        Ordering.arrival(1, max_wait)


def test_a_max_wait_shorter_than_the_window_is_refused_and_as_long_is_not() -> None:
    with pytest.raises(ConfigurationError, match=r"^max_wait: expected at least the window \(2 s\), got 1\.999$"):
        Ordering.arrival(2, max_wait=1.999)
    assert Ordering.arrival(2, max_wait=2).max_wait_ms == 2000


def test_windows_are_whole_milliseconds_never_shorter_than_asked() -> None:
    assert Ordering.event_time(0.0011).window_ms == 2
    assert Ordering.event_time(timedelta(minutes=1)).window_ms == 60_000
    assert Ordering.arrival(0.0011, max_wait=0.0031).max_wait_ms == 4


def test_a_group_waits_for_three_windows_at_most_by_default() -> None:
    assert Ordering.arrival(2).max_wait_ms == 6000


def test_each_kind_gives_the_scripts_its_own_rules() -> None:
    assert QueueOptions("q", ordering=Ordering.event_time(2)).rules == {"event_window": 2000}
    assert QueueOptions("q", ordering=Ordering.arrival(2, 5)).rules == {"arrival_window": 2000, "max_wait": 5000}


def test_the_kind_the_window_and_the_longest_wait_are_what_processes_must_agree_on() -> None:
    orderings = [
        None,
        Ordering.event_time(2),
        Ordering.event_time(3),
        Ordering.arrival(2),
        Ordering.arrival(3),
        Ordering.arrival(2, max_wait=7),
    ]
    assert len({QueueOptions("q", ordering=ordering).shared for ordering in orderings}) == len(orderings)
    same = Ordering.arrival(2, max_wait=timedelta(seconds=6))
    assert QueueOptions("q", ordering=same).shared == QueueOptions("q", ordering=Ordering.arrival(2)).shared


@pytest.mark.parametrize("value", ["arrival", 5, True, Ordering, timedelta(1), {}])
def test_anything_else_is_no_ordering(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^ordering: expected Ordering\.event_time"):
        checked(value)


def test_no_ordering_is_one_choice() -> None:
    assert checked(None) is None
