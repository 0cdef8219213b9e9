"""The ticks that a scheduler runs when some are due, and properties of the ticks of every repeat."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from groupmq.core.schedule import GRACE_MS, MOST_TICKS, Cron, Every, Repeat, due_ticks, last_tick, tick_after

T0 = 1_700_000_000_000
YEAR = 366 * 86_400_000


def plan(repeat: Repeat) -> dict[str, Any]:
    return repeat.plan(T0, None)


def grid(*at: int) -> list[int]:
    """Ticks of Every(5), by their number."""
    return [T0 + 5000 * k for k in at]


def run(repeat: Repeat, late_ms: int, *, watched: bool, count: int = 0) -> tuple[list[int], int]:
    """The ticks that are run, and the next one, if the first tick of a repeat (at 5 s) is noticed this late."""
    found = due_ticks(plan(repeat), T0 + 5000, count, T0 + 5000 + late_ms, watched=watched)
    return found.run, found.next


def test_a_tick_on_time_is_run_whatever_catch_up_says() -> None:
    for catch_up in ("one", "all", "none"):
        assert run(Every(5, catch_up=catch_up), 0, watched=True) == (grid(1), grid(2)[0])
        assert run(Every(5, catch_up=catch_up), GRACE_MS, watched=True) == (grid(1), grid(2)[0])


@pytest.mark.parametrize(("catch_up", "expected"), [("one", [4]), ("all", [1, 2, 3, 4]), ("none", [])])
@pytest.mark.parametrize("watched", [False, True])
def test_missed_ticks_become_one_run_or_all_or_none(catch_up: Any, expected: list[int], watched: bool) -> None:
    assert run(Every(5, catch_up=catch_up), 16_000, watched=watched) == (grid(*expected), grid(5)[0])


def test_a_tick_that_nobody_was_there_for_is_missed_however_short_ago() -> None:
    assert run(Every(5, catch_up="none"), 1, watched=False) == ([], grid(2)[0])
    assert run(Every(5, catch_up="one"), 1, watched=False) == (grid(1), grid(2)[0])


def test_a_watched_tick_is_missed_once_the_grace_is_over() -> None:
    assert run(Every(5, catch_up="none"), GRACE_MS + 1, watched=True) == ([], grid(2)[0])


def test_ticks_faster_than_the_looks_are_all_run_within_the_grace() -> None:
    fast = due_ticks(plan(Every(0.1)), T0 + 100, 0, T0 + 1050, watched=True)
    assert fast.run == [T0 + 100 * k for k in range(1, 11)]
    assert fast.next == T0 + 1100


def test_the_limit_ends_a_repeat_at_its_last_occurrence() -> None:
    assert run(Every(5, limit=3), 0, watched=True, count=1) == (grid(1), grid(2)[0])
    assert run(Every(5, limit=3), 0, watched=True, count=2) == (grid(1), 0)
    assert run(Every(5, limit=3, catch_up="all"), 60_000, watched=False) == (grid(1, 2, 3), 0)
    assert run(Every(5, limit=1), 60_000, watched=False) == (grid(13), 0)


def test_ticks_that_were_skipped_do_not_count_towards_the_limit() -> None:
    assert run(Every(5, limit=1, catch_up="none"), 60_000, watched=False) == ([], grid(14)[0])


def test_after_the_end_only_what_ticked_before_it_is_caught_up() -> None:
    end = (T0 + 12_000) / 1000
    assert run(Every(5, end=end), 60_000, watched=False) == (grid(2), 0)
    assert run(Every(5, end=end, catch_up="all"), 60_000, watched=False) == (grid(1, 2), 0)
    assert run(Every(5, end=end, catch_up="none"), 60_000, watched=False) == ([], 0)


def test_a_long_absence_is_caught_up_in_bounded_steps_that_skip_nothing() -> None:
    every = plan(Every(1, catch_up="all"))
    now, expected = T0 + 2_500_000, T0 + 1000
    found: list[int] = []
    while expected <= now:
        ticks = due_ticks(every, expected, len(found), now, watched=False)
        assert len(ticks.run) <= MOST_TICKS
        found += ticks.run
        expected = ticks.next
    assert found == [T0 + 1000 * k for k in range(1, 2501)]


def test_one_run_after_a_year_of_absence_takes_no_year_to_find() -> None:
    found = due_ticks(plan(Every(0.001)), T0 + 1, 0, T0 + YEAR, watched=False)
    assert (found.run, found.next) == ([T0 + YEAR], T0 + YEAR + 1)


# Properties

everies = st.builds(
    Every,
    st.floats(0.001, 1e7) | st.integers(1, 10**7) | st.timedeltas().filter(lambda d: 0.001 <= d.total_seconds() < 1e9),
    start=st.none() | st.integers(0, 2 * T0 // 1000),
)
FIELDS = {
    "minute": ["*", "0", "*/7", "5,35", "0-20/10", "59"],
    "hour": ["*", "2", "*/3", "1-3", "23", "0"],
    "day": ["*", "1", "15,31", "L"],
    "month": ["*", "*/2", "3,10"],
    "weekday": ["*", "1-5", "0"],
}
ZONES = ["UTC", "Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu"]
patterns = st.tuples(*(st.sampled_from(values) for values in FIELDS.values())).map(" ".join)
with_seconds = st.tuples(st.sampled_from(["0", "*/20", "59"]), patterns).map(" ".join)
crons = st.builds(Cron, patterns | with_seconds, tz=st.sampled_from(ZONES))
instants = st.integers(T0, T0 + 3 * YEAR)


@given(everies | crons, instants)
@settings(max_examples=300, deadline=None)
def test_the_next_tick_is_after_the_instant_and_the_last_tick_before_it_is_the_instant(
    repeat: Every | Cron, instant: int
) -> None:
    ticking = plan(repeat)
    tick = tick_after(ticking, instant)
    assert tick is not None
    assert tick > instant
    assert last_tick(ticking, tick) == tick
    assert tick_after(ticking, tick - 1) == tick


@given(everies | crons, instants)
@settings(max_examples=200, deadline=None)
def test_there_is_no_tick_between_the_last_and_the_next(repeat: Every | Cron, instant: int) -> None:
    ticking = plan(repeat)
    first = tick_after(ticking, T0 - 1)
    assert first is not None
    assume(first <= instant)
    last, following = last_tick(ticking, instant), tick_after(ticking, instant)
    assert last <= instant
    assert tick_after(ticking, last) == following


@given(everies | crons, instants)
@settings(max_examples=100, deadline=None)
def test_ticks_only_grow(repeat: Every | Cron, instant: int) -> None:
    ticking, found = plan(repeat), [instant]
    for _ in range(20):
        tick = tick_after(ticking, found[-1])
        assert tick is not None
        found.append(tick)
    assert all(a < b for a, b in pairwise(found))


@given(everies, st.integers(0, 10**6))
def test_the_grid_never_drifts(every: Every, k: int) -> None:
    ticking = plan(every)
    exact = ticking["anchor"] + k * every.micros // 1000
    assert tick_after(ticking, exact - 1) == exact


@given(crons, instants)
@settings(max_examples=200, deadline=None)
def test_a_tick_of_a_cron_is_a_whole_second_that_its_fields_allow(cron: Cron, instant: int) -> None:
    """Of the fields only the weekday is checked, since a clock change cannot move it. Seconds are checked if given."""
    tick = tick_after(plan(cron), instant)
    assert tick is not None
    assert tick % 1000 == 0
    wall = _wall(tick, cron.tz)
    fields = cron.pattern.split()
    if fields[-3] == "*" and fields[-1] == "1-5":
        assert wall.isoweekday() <= 5
    if len(fields) == 6 and fields[0] == "59":
        assert wall.second in (59, 0)


def _wall(tick: int, tz: str) -> datetime:
    return datetime.fromtimestamp(tick / 1000, ZoneInfo(tz))


@given(
    everies.filter(lambda e: e.start is None) | crons,
    st.lists(st.integers(0, GRACE_MS), min_size=1, max_size=30),
    st.sampled_from(["one", "all", "none"]),
)
@settings(max_examples=200, deadline=None)
def test_a_scheduler_that_comes_within_the_grace_runs_every_tick_once(
    repeat: Every | Cron, lateness: list[int], catch_up: str
) -> None:
    ticking = plan(repeat) | {"catch_up": catch_up}
    expected, now = tick_after(ticking, T0), T0
    found: list[int] = []
    assert expected is not None
    first = expected
    for late in lateness:
        now = max(now, expected + late)
        while expected <= now:
            ticks = due_ticks(ticking, expected, len(found), now, watched=True)
            found += ticks.run
            expected = ticks.next
    wanted: list[int] = []
    tick: int | None = first
    while tick is not None and tick <= now:
        wanted.append(tick)
        tick = tick_after(ticking, tick)
    assert found == wanted
    assert expected == tick
