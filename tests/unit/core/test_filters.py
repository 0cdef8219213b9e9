"""The arguments of filters: accepted and refused values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from groupmq import ConfigurationError, JobFilter
from groupmq.core.filters import is_error


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"state": "done"}, "JobFilter.state: expected 'active' or 'waiting'"),
        ({"error": ""}, "JobFilter.error: expected a non-empty string"),
        ({"group_id": 7}, "JobFilter.group_id"),
        ({"text": ""}, "JobFilter.text"),
        ({"worker": b"w"}, "JobFilter.worker"),
        ({"job_id": ""}, "JobFilter.job_id"),
        ({"older": -1}, "JobFilter.older: expected between 0 s"),
        ({"newer": "10m"}, "JobFilter.newer: expected seconds"),
    ],
)
def test_what_a_filter_cannot_mean_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        JobFilter(**wrong)


def test_durations_are_seconds_or_timedeltas() -> None:
    assert JobFilter(older=60, newer=timedelta(hours=1)).older == 60


@pytest.mark.parametrize(
    ("error", "wanted", "matches"),
    [
        ("shop.errors.CardDeclined", "CardDeclined", True),
        ("shop.errors.CardDeclined", "shop.errors.CardDeclined", True),
        ("shop.errors.CardDeclined", "shop.errors", True),
        ("shop.errors.CardDeclined", "shop.errors.Card", True),
        ("shop.errors.CardDeclined", "Card", False),
        ("shop.errors.CardDeclined", "errors", False),
        ("ValueError", "ValueError", True),
        ("ValueError", "Value", True),
        (None, "ValueError", False),
    ],
)
def test_an_error_is_meant_by_its_name_or_the_beginning_of_its_path(
    error: str | None, wanted: str, matches: bool
) -> None:
    assert is_error(error, wanted) is matches
