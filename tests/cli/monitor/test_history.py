"""Rates are computed from successive surveys."""

from __future__ import annotations

from datetime import timedelta

import pytest

from groupmq import JobTotals
from groupmq.cli.monitor.history import KEPT, History
from tests.cli.monitor.samples import AT, look


def history(*points: tuple[float, int]) -> History:
    """Surveys at these seconds, each with the number of jobs completed by then."""
    found = History()
    for second, completed in points:
        found = found.and_then(look(at=AT + timedelta(seconds=second), totals=JobTotals(0, completed)))
    return found


def test_a_rate_needs_two_looks() -> None:
    assert history().rate("completed") is None
    assert history((0, 5)).rates() == {"added": None, "completed": None, "failed": None, "retried": None}
    assert history((0, 5), (2, 15)).rate("completed") == 5.0


def test_a_rate_is_the_mean_of_the_last_ten_seconds() -> None:
    steady = history(*((second, 7 * second) for second in range(30)))
    assert steady.rate("completed") == 7.0
    assert history((0, 0), (1, 1000), (12, 1000), (13, 1011)).rate("completed") == 11.0
    assert history((0, 0), (60, 120)).rate("completed") == 2.0


def test_the_steps_are_the_rate_from_each_look_to_the_next() -> None:
    assert history((0, 0), (1, 3), (3, 4)).steps("completed") == [3.0, 0.5]


def test_jobs_that_were_removed_make_no_negative_rate() -> None:
    fewer = History().and_then(look(0, totals=JobTotals(100))).and_then(look(1, totals=JobTotals(40)))
    assert fewer.rate("added") == 0.0


@pytest.mark.parametrize("then", [(5, 3), (-1, 50)])
def test_another_queue_or_a_clock_set_back_begins_anew(then: tuple[float, int]) -> None:
    assert history((0, 10), (1, 20), then).rate("completed") is None


def test_two_looks_in_one_moment_are_one() -> None:
    assert history((0, 10), (1, 20), (1, 20)).steps("completed") == [10.0]


def test_it_is_bounded() -> None:
    long = history(*((second, second) for second in range(KEPT * 3)))
    assert len(long.samples) == KEPT
    assert long.rate("completed") == 1.0
