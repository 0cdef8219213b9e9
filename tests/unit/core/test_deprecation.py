"""Old names still answer for a release, and name the new ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from groupmq import JobTotals, Metrics, MinuteStats
from groupmq.core.views import EMPTY
from groupmq.worker import WorkerMetrics

METRICS = Metrics(
    completed=3,
    failed=0,
    retried=0,
    stalled=0,
    lost=0,
    rate_limited=0,
    lease_lost=0,
    groups_ready=0,
    groups_parked=2,
    groups_paused=0,
    oldest_wait=None,
    wait=EMPTY,
    run=EMPTY,
    series=[],
)


@pytest.mark.parametrize(
    ("view", "old", "new", "value"),
    [
        (METRICS, "groups_due", "groups_parked", 2),
        (MinuteStats(datetime.now(UTC), 4, 0, 0, 0, 0, 0, 0.0, 0.0), "processed", "completed", 4),
        (JobTotals(completed=5), "processed", "completed", 5),
        (WorkerMetrics("w", completed=1, retried=1, failed=1), "processed", "runs_ended", 3),
        (WorkerMetrics("w", rate_limited=6), "limited", "rate_limited", 6),
    ],
)
def test_an_old_name_answers_and_warns_with_the_new_one(view: Any, old: str, new: str, value: int) -> None:
    owner = type(view).__name__
    with pytest.warns(DeprecationWarning, match=f"^{owner}.{old} is deprecated; use {owner}.{new}$"):
        assert getattr(view, old) == getattr(view, new) == value


def test_processed_of_the_metrics_is_part_of_the_contract_and_stays() -> None:
    assert METRICS.processed == METRICS.completed == 3
