"""Minutes are summed up into spans: their beginnings, their number and their sums."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq.client.answers.spans import BOUNDS, minutes_needed, spans
from groupmq.core.views import EMPTY, Histogram
from groupmq.protocol.commands import BUCKETS, DROPPED, Minute
from groupmq.protocol.commands.measures import minute

NOON = 28_000_020 // 60 * 60
"""The number of a minute at a full hour, in minutes since the epoch."""


@given(st.integers(0, 10**8), st.integers(0, 20_160), st.integers(1, 20_160))
def test_spans_are_as_many_as_asked_for_and_all_but_the_last_are_whole(last: int, minutes: int, step: int) -> None:
    needed = minutes_needed(last, minutes, step)
    count = -(-minutes // step)
    assert max(0, (count - 1) * step + 1) <= needed <= count * step
    found = spans(last, [Minute(completed=1)] * needed, step) if needed < 500 else []
    if found:
        assert len(found) == count
        assert [one.minutes for one in found[:-1]] == [step] * (count - 1)
        assert all(one.at.timestamp() % (60 * step) == 0 for one in found)
        assert found[-1].at.timestamp() <= 60 * last < found[-1].at.timestamp() + 60 * step
        assert sum(one.completed for one in found) == sum(one.minutes for one in found) == needed


@pytest.mark.parametrize(("last", "needed"), [(NOON, 61), (NOON + 1, 62), (NOON + 59, 120)])
def test_hours_begin_at_full_hours(last: int, needed: int) -> None:
    assert minutes_needed(last, 120, 60) == needed


def test_two_weeks_by_the_hour_are_336_entries() -> None:
    needed = minutes_needed(NOON + 17, 20_160, 60)
    assert len(spans(NOON + 17, [Minute()] * needed, 60)) == 336


def test_a_span_is_the_sum_of_its_minutes() -> None:
    one = Minute(3, 1, 2, 0, 0, 4, 4000, 6000, {0: 3, 4: 1, BUCKETS + 1: 5, BUCKETS + 24: 1, DROPPED: 7})
    two = Minute(1, 0, 0, 1, 1, 2, 2000, 1000, {4: 2, BUCKETS + 1: 1, DROPPED: 1, 99: 5})
    [found] = spans(NOON + 1, [one, two], 2)
    assert (found.completed, found.failed, found.retried) == (4, 1, 2)
    assert (found.stalled, found.rate_limited, found.started, found.retention_dropped) == (1, 1, 6, 8)
    assert (found.mean_wait, found.mean_run) == (1.0, 1.0)
    assert (found.wait.count, found.wait.sum, found.run.count, found.run.sum) == (6, 6.0, 7, 7.0)
    assert (found.wait.quantile(0.5), found.wait.quantile(0.95)) == (0.001, 0.016)
    assert (found.run.quantile(0.5), found.run.quantile(1)) == (0.002, float("inf"))
    assert found.wait.bounds == BOUNDS


@given(st.lists(st.integers(0, 2**48 - 1), min_size=8, max_size=8), st.dictionaries(st.integers(0, 50), st.integers(1)))
def test_a_stored_minute_is_read_as_it_was_written(values: list[int], counts: dict[int, int]) -> None:
    counts = {bucket: n % 2**40 for bucket, n in counts.items()}
    flat = [number for pair in counts.items() for number in pair]
    raw = b"".join(value.to_bytes(6, "big") for value in values) + (msgspec.msgpack.encode(flat) if flat else b"")
    assert minute(raw) == (*values, counts)


@pytest.mark.parametrize(
    "raw", [None, b"", b"x" * 47, b"x" * 49, b"x" * 500, bytes(48) + b"\x92\x01\xa1x", bytes(48) + b"\x92"]
)
def test_what_is_not_a_minute_counts_as_nothing(raw: bytes | None) -> None:
    assert minute(raw) == Minute()


def test_a_histogram_of_nothing_has_no_quantile_but_zero() -> None:
    for empty in (EMPTY, Histogram(BOUNDS, (0,) * BUCKETS, 0.0)):
        assert (empty.count, empty.mean, empty.quantile(0.5), empty.quantile(0.95)) == (0, 0.0, 0.0, 0.0)
