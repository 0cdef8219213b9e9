"""How many jobs a worker prefetches, by the measured durations of its handlers."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.worker.fetching.prefetch import SHORT, Prefetch

LONGEST_ROW = 64
PER_CALL, MOST_PER_CALL, MOST, RESERVE = 240, 360, 1000, 80


def pace(typical: float, prefetch: int | None = None) -> Prefetch:
    made = Prefetch("auto" if prefetch is None else prefetch)
    made.typical = typical
    return made


def row(of: Prefetch, room: int, prefetched: int) -> int:
    """The length of rows that is asked for with this much room, while no job is in hand."""
    return of.plan(room, 0, prefetched, reports=False)[1]


def test_before_anything_is_known_each_job_comes_alone() -> None:
    assert row(Prefetch("auto"), 1, 0) == 1
    assert row(Prefetch(100), 1, 0) == 1


def test_many_short_runs_are_believed_few_are_not() -> None:
    seen = Prefetch("auto")
    for _ in range(90):
        seen.saw(0.0)
    assert row(seen, 1, 0) == 1
    for _ in range(10):
        seen.saw(0.0)
    assert row(seen, 1, 0) > 1


def test_a_single_long_run_is_believed_at_once_and_remembered_for_a_while() -> None:
    seen = pace(1e-5)
    assert row(seen, 1, 0) == LONGEST_ROW
    seen.saw(0.1)
    assert row(seen, 1, 0) == 1
    for _ in range(20):
        seen.saw(1e-5)
    assert row(seen, 1, 0) == 1
    for _ in range(100):
        seen.saw(1e-5)
    assert row(seen, 1, 0) > 1


def test_one_hiccup_among_short_runs_is_soon_forgotten() -> None:
    seen = pace(1e-5)
    seen.saw(0.003)
    assert row(seen, 1, 0) > 1
    seen.saw(0.01)
    assert row(seen, 1, 0) == 1
    for _ in range(20):
        seen.saw(1e-5)
    assert row(seen, 1, 0) > 1


@pytest.mark.parametrize(
    ("typical", "length"),
    [(1.0, 1), (SHORT * 1.001, 1), (SHORT, 5), (0.0005, 10), (0.0001, 50), (1e-5, 64), (1e-9, 64), (0.0, 64)],
)
def test_the_shorter_the_handlers_the_longer_the_row(typical: float, length: int) -> None:
    assert row(pace(typical), 1, 0) == pytest.approx(length, abs=1 if 1 < length < LONGEST_ROW else 0)


@pytest.mark.parametrize(
    ("prefetch", "take", "prefetched", "length"),
    [
        (0, 1, 0, 1),
        (1, 1, 0, 2),
        (7, 1, 0, 8),
        (7, 1, 3, 5),
        (7, 1, 7, 1),
        (7, 1, 9, 1),
        (7, 2, 0, 4),
        (7, 8, 0, 1),
        (10_000, 1, 0, LONGEST_ROW),
    ],
)
def test_a_number_bounds_what_is_ahead(prefetch: int, take: int, prefetched: int, length: int) -> None:
    assert row(pace(1e-5, prefetch), take, prefetched) == length


def test_a_worker_without_demand_asks_for_no_rows() -> None:
    assert row(pace(1e-5), 0, 0) == 1
    assert row(pace(1e-5, 100), 0, 0) == 1


@given(
    typical=st.floats(0, 2),
    prefetch=st.none() | st.integers(0, 10_000),
    lengths=st.lists(st.tuples(st.integers(1, 64), st.integers(1, 100)), max_size=5),
    room=st.integers(0, 1000),
    in_hand=st.integers(0, 500),
    prefetched=st.integers(0, 20_000),
    reports=st.booleans(),
)
def test_whatever_it_has_seen_its_answer_is_within_bounds(
    typical: float,
    prefetch: int | None,
    lengths: list[tuple[int, int]],
    room: int,
    in_hand: int,
    prefetched: int,
    reports: bool,
) -> None:
    made = pace(typical, prefetch)
    for length, rows in lengths:
        made.took(length * rows, rows)
    take, length = made.plan(room, in_hand, prefetched, reports=reports)
    assert 0 <= take <= room
    assert 1 <= length <= LONGEST_ROW
    assert length == 1 or typical <= SHORT
    more = take * (length - 1)
    assert more == 0 or prefetched + more <= (MOST if prefetch is None else prefetch)
    assert length == 1 or take * length <= MOST_PER_CALL
    # No job waits while a slot is free and there is not much to do.
    assert take == room or (typical <= SHORT and (take >= PER_CALL // LONGEST_ROW or prefetched >= 100))


def test_where_many_come_together_fewer_are_asked_for() -> None:
    seen = pace(1e-5)
    assert seen.plan(100, 0, 0, reports=False) == (100, MOST_PER_CALL // 100)
    for _ in range(50):
        seen.took(1600, 100)
    assert seen.plan(100, 0, 0, reports=False) == (PER_CALL // 16, MOST_PER_CALL // (PER_CALL // 16))
    for _ in range(50):
        seen.took(100, 100)
    assert seen.plan(100, 0, 0, reports=False) == (100, MOST_PER_CALL // 100)


def test_a_requester_that_has_brought_enough_asks_with_its_next_reports() -> None:
    seen = pace(0.0004)
    for _ in range(50):
        seen.took(1200, 100)
    enough = PER_CALL // 12
    assert seen.plan(90, enough, PER_CALL, reports=False) == (0, 1)
    assert seen.plan(90, enough, PER_CALL, reports=True) == (0, 1)
    assert seen.plan(90, enough - 4, 110, reports=False) == (0, 1)
    assert seen.plan(90, enough - 4, 110, reports=True) == (4, 12)
    assert seen.plan(90, 5, 50, reports=False) == (enough, 12), (
        "the jobs in hand may run long, so a request must not wait for them"
    )


def test_a_requester_whose_instant_jobs_have_not_all_ended_only_reports() -> None:
    """If it replaced only the jobs that have ended, its calls would stay that small."""
    seen = pace(1e-5)
    for _ in range(50):
        seen.took(1600, 100)
    assert seen.plan(90, 5, 110, reports=True) == (0, 1)
    assert seen.plan(90, 0, 110, reports=True)[0] == PER_CALL // 16
    assert seen.plan(90, 5, 50, reports=True)[0] == PER_CALL // 16, "too few jobs are left to wait for the others"


@given(durations=st.lists(st.floats(0, 10), max_size=50))
def test_what_is_typical_lies_between_what_was_seen_and_what_was_assumed(durations: list[float]) -> None:
    seen = Prefetch("auto")
    for duration in durations:
        seen.saw(duration)
    assert min([1.0, *durations]) <= seen.typical <= max([1.0, *durations])


@pytest.mark.parametrize(
    ("typical", "take", "slots", "prefetched", "fill"),
    [
        (1.0, 1, 1, 0, 0),
        (SHORT, 1, 1, 0, 6),
        (SHORT, 1, 1, 5, 0),
        (0.0005, 1, 1, 0, 11),
        (1e-5, 1, 1, 0, RESERVE),
        (0.0, 0, 1, 0, 0),
        (1e-5, 50, 100, 30, RESERVE),
        (1e-5, RESERVE, 100, 0, 0),
        (SHORT, 50, 100, 500, 0),
    ],
)
def test_a_reserve_is_some_milliseconds_of_work_for_each_slot(
    typical: float, take: int, slots: int, prefetched: int, fill: int
) -> None:
    assert pace(typical).fill(take, slots, prefetched) == fill


@pytest.mark.parametrize(("prefetch", "prefetched", "fill"), [(0, 0, 0), (1, 0, 2), (7, 0, 8), (7, 3, 5), (7, 7, 0)])
def test_a_number_bounds_a_reserve(prefetch: int, prefetched: int, fill: int) -> None:
    assert pace(1e-5, prefetch).fill(1, 1, prefetched) == fill


def test_where_rows_bring_enough_there_is_no_reserve() -> None:
    seen = pace(1e-5)
    for _ in range(50):
        seen.took(1600, 100)
    assert seen.fill(6, 100, 0) == 0
    assert seen.fill(4, 100, 0) == RESERVE


def test_only_handlers_that_take_no_time_share_tasks() -> None:
    """Without prefetching each handler has its own task."""
    cases: list[tuple[Literal["auto"] | int, bool]] = [("auto", True), (0, False)]
    for most, shares in cases:
        prefetch, found = Prefetch(most), []
        for durations in ([], [0.00001] * 300, [0.01]):
            for duration in durations:
                prefetch.saw(duration)
            found.append(prefetch.shares_tasks)
        assert found == [False, shares, False]
