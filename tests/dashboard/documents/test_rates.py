"""The rate of a queue: over the last whole minutes, or over its whole life if that is shorter."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from groupmq import MinuteStats
from groupmq.dashboard.documents.queue_row import rate

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def minutes(*completed: int) -> list[MinuteStats]:
    """The last minutes of an hour; the last one has lasted half a minute."""
    counts = [0] * (60 - len(completed)) + list(completed)
    begin = NOW.replace(second=0) - timedelta(minutes=59)
    return [made(begin + timedelta(minutes=n), count) for n, count in enumerate(counts)]


def made(at: datetime, completed: int) -> MinuteStats:
    return MinuteStats(
        at, completed, failed=0, retried=0, stalled=0, rate_limited=0, started=0, mean_wait=0, mean_run=0
    )


@pytest.mark.parametrize(
    ("completed", "per_minute"),
    [
        ((60, 60, 60, 60, 60, 60, 60, 30), 60),
        ((600, 60, 0, 0, 0, 0, 60, 5), 12),
        ((60, 30), 60),
        ((30,), 60),
        ((), 0),
        ((600, 0, 0, 0, 0, 0, 0), 0),
    ],
    ids=["steady", "uneven", "in its second minute", "in its first minute", "never", "not any more"],
)
def test_completed_per_minute(completed: tuple[int, ...], per_minute: float) -> None:
    assert rate(minutes(*completed), "completed", NOW) * 60 == pytest.approx(per_minute)
