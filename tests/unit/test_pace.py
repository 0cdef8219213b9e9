"""How many jobs a worker takes together, by what it has seen of its handlers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.worker.pace import SHORT, Pace

LONGEST_ROW = 64
MOST_PER_CALL = 400
MOST = 800


def pace(typical: float, prefetch: int | None = None) -> Pace:
    made = Pace("auto" if prefetch is None else prefetch)
    made.typical = typical
    return made


def test_before_anything_is_known_each_job_comes_alone() -> None:
    assert Pace("auto").row(1, 0) == 1
    assert Pace(100).row(1, 0) == 1


def test_many_short_runs_are_believed_few_are_not() -> None:
    seen = Pace("auto")
    for _ in range(100):
        seen.saw(0.0)
    assert seen.row(1, 0) == 1
    for _ in range(100):
        seen.saw(0.0)
    assert seen.row(1, 0) > 1


def test_a_single_long_run_is_believed_at_once_and_remembered_for_a_while() -> None:
    seen = pace(1e-5)
    assert seen.row(1, 0) == LONGEST_ROW
    seen.saw(0.1)
    assert seen.row(1, 0) == 1
    for _ in range(20):
        seen.saw(1e-5)
    assert seen.row(1, 0) == 1
    for _ in range(100):
        seen.saw(1e-5)
    assert seen.row(1, 0) > 1


def test_one_hiccup_among_short_runs_is_soon_forgotten() -> None:
    seen = pace(1e-5)
    seen.saw(0.003)
    assert seen.row(1, 0) == 1
    for _ in range(20):
        seen.saw(1e-5)
    assert seen.row(1, 0) > 1


@pytest.mark.parametrize(
    ("typical", "length"),
    [(1.0, 1), (SHORT * 1.001, 1), (SHORT, 5), (0.0005, 10), (0.0001, 50), (1e-5, 64), (1e-9, 64), (0.0, 64)],
)
def test_the_shorter_the_handlers_the_longer_the_row(typical: float, length: int) -> None:
    assert pace(typical).row(1, 0) == pytest.approx(length, abs=1 if 1 < length < LONGEST_ROW else 0)


@pytest.mark.parametrize(
    ("prefetch", "take", "ahead", "length"),
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
def test_a_number_bounds_what_is_ahead(prefetch: int, take: int, ahead: int, length: int) -> None:
    assert pace(1e-5, prefetch).row(take, ahead) == length


def test_whoever_asks_for_nothing_gets_no_rows() -> None:
    assert pace(1e-5).row(0, 0) == 1
    assert pace(1e-5, 100).row(0, 0) == 1


@given(
    typical=st.floats(0, 2),
    prefetch=st.none() | st.integers(0, 10_000),
    take=st.integers(0, 1000),
    ahead=st.integers(0, 20_000),
)
def test_whatever_it_has_seen_its_answer_is_within_bounds(
    typical: float, prefetch: int | None, take: int, ahead: int
) -> None:
    length = pace(typical, prefetch).row(take, ahead)
    assert 1 <= length <= LONGEST_ROW
    assert length == 1 or typical <= SHORT
    more = take * (length - 1)
    assert more == 0 or ahead + more <= (MOST if prefetch is None else prefetch)
    assert length == 1 or take * length <= MOST_PER_CALL


@given(durations=st.lists(st.floats(0, 10), max_size=50))
def test_what_is_typical_lies_between_what_was_seen_and_what_was_assumed(durations: list[float]) -> None:
    seen = Pace("auto")
    for duration in durations:
        seen.saw(duration)
    assert min([1.0, *durations]) <= seen.typical <= max([1.0, *durations])
