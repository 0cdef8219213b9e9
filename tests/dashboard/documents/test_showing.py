"""Values as pages show them: progress, payloads, times, trees. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupmq import JobCounts, WorkerInfo
from groupmq.dashboard import filters
from groupmq.dashboard.documents.payload import PREVIEW, Unreadable, clean, payload, preview
from groupmq.dashboard.documents.progress import fraction, progress
from groupmq.dashboard.documents.repeats import next_runs, words
from groupmq.dashboard.documents.warning import warnings
from groupmq.dashboard.documents.workers import in_order, worker_row
from groupmq.dashboard.json_tree import TreeNode, json_tree
from groupmq.dashboard.reading import READABLE
from groupmq.dashboard.redaction import Redactor

OPEN = Redactor(None)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (42, 0.42),
        (0.42, 0.42),
        (100, 1.0),
        (1, 0.01),
        (1.0, 1.0),
        (101, None),
        (-1, None),
        (True, None),
        ("half", None),
        ({"done": 3, "total": 12}, 0.25),
        ({"current": 1, "total": 0}, None),
        ({"percent": 50}, 0.5),
        ([1], None),
    ],
)
def test_a_fraction_is_read_where_there_is_one(value: Any, wanted: float | None) -> None:
    assert fraction(value) == wanted


def test_no_progress_is_none() -> None:
    assert progress(None, OPEN) is None


def test_integers_are_exact() -> None:
    big = 90071992547409931234567890
    assert str(big) in payload({"n": big}, OPEN, "data").text
    assert READABLE.decode(READABLE.encode({"n": big})) == {"n": big}
    assert json_tree({"n": big}).items[0].text == str(big)


def test_bytes_that_are_not_json_are_said_to_be_so() -> None:
    found = READABLE.decode(b"\x80\x04pickle")
    assert isinstance(found, Unreadable)
    shown = payload(found, OPEN, "data")
    assert shown.unreadable == "8 bytes that are not JSON"
    assert preview(found, OPEN, "data") == ("8 bytes that are not JSON", False)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), "\ud800", {1: 2}, object(), (1, 2), {"\ud800": b"x"}])
def test_any_data_can_be_sent(odd: Any) -> None:
    json.dumps(clean(odd), allow_nan=False).encode()
    payload(odd, OPEN, "data").text.encode()
    preview(odd, OPEN, "data")[0].encode()


def test_deep_data_does_not_break_a_page() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    assert "too deeply" in payload(deep, OPEN, "data").text


def test_a_preview_is_short() -> None:
    assert len(preview({"text": "x" * 1000}, OPEN, "data")[0]) == PREVIEW


def test_redaction_is_noticed() -> None:
    redactor = Redactor(["card"])
    assert payload({"card": 1}, redactor, "data").redacted
    assert not payload({"cart": 1}, redactor, "data").redacted


def _count(node: TreeNode) -> int:
    return 1 + sum(map(_count, node.items))


def test_a_large_tree_is_cut_and_says_how_large_it_is() -> None:
    tree = json_tree(list(range(100_000)))
    assert tree.size == 100_000
    assert _count(tree) <= 5001


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.24, "240 ms"), (3.21, "3.2 s"), (42, "42 s"), (63, "1 m 3 s"), (7500, "2 h 5 m"), (273_600, "3 d 4 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert filters.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "now"), (1, "1 second ago"), (200, "3 minutes ago"), (-12, "in 12 seconds"), (90_000, "1 day ago")],
)
def test_relative_times(seconds: float, text: str) -> None:
    now = datetime(2026, 11, 17, tzinfo=UTC)
    assert filters.relative(now - timedelta(seconds=seconds), now) == text


@given(st.floats(min_value=0, max_value=1e9), st.integers(min_value=0, max_value=10**15))
def test_numbers_have_words(seconds: float, n: int) -> None:
    assert filters.duration(seconds)
    assert filters.compact(n)
    assert filters.size(n)
    assert filters.number(n)


def test_a_time_is_an_element_that_scripts_can_read() -> None:
    moment = datetime(2026, 11, 17, 14, 3, 21, tzinfo=UTC)
    assert filters.clock(moment) == (
        '<time class="clock" datetime="2026-11-17T14:03:21.000Z" title="2026-11-17 14:03:21 UTC">14:03:21</time>'
    )
    assert "none" in filters.ago(None)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("every 5 s", "Every 5 seconds"),
        ("every 3600 s", "Every hour"),
        ("every 0.5 s", "Every 0.5 seconds"),
        ("every 90 s", "Every 90 seconds"),
        ("cron */15 * * * * (UTC)", "Every 15 minutes"),
        ("cron */10 * * * * * (UTC)", "Every 10 seconds"),
        ("cron */7 * * * * (UTC)", "Every seventh minute of every hour"),
        ("something else", "something else"),
    ],
)
def test_schedules_in_words(schedule: str, said: str) -> None:
    assert words(schedule) == said


def test_a_cron_schedule_in_words() -> None:
    assert "09:00" in words("cron 0 9 * * 1-5 (Europe/Stockholm)")


QUIET: dict[str, Any] = {
    "workers": 1,
    "paused": False,
    "longest_held": None,
    "longest_held_unpaused": None,
    "blocked": 0,
    "breakers_open": 0,
    "oldest_wait": 1.0,
    "dropped": 0,
    "server": SimpleNamespace(maxmemory=1000, eviction_policy="noeviction"),
}


@pytest.mark.parametrize(
    ("trouble", "level", "said"),
    [
        ({}, None, ""),
        ({"workers": 0}, "fail", "This queue has no worker."),
        (
            {"longest_held": SimpleNamespace(wait=301.0, reason="paused", group_id="user:7")},
            "warn",
            "The first job of user:7 has waited for 5 m 1 s.",
        ),
        (
            {
                "longest_held": SimpleNamespace(wait=7200.0, reason="paused", group_id="vacation"),
                "longest_held_unpaused": SimpleNamespace(wait=301.0, reason="running", group_id="user:7"),
            },
            "warn",
            "The first job of user:7 has waited for 5 m 1 s.",
        ),
        (
            {
                "longest_held": SimpleNamespace(wait=7200.0, reason="paused", group_id="vacation"),
                "longest_held_unpaused": SimpleNamespace(wait=2.0, reason="running", group_id="user:7"),
            },
            "warn",
            "The first job of vacation has waited for 2 h 0 m.",
        ),
        ({"blocked": 1}, "warn", "A failed job blocks its group."),
        (
            {"blocked": 2, "longest_held": SimpleNamespace(wait=301.0, reason="blocked")},
            "warn",
            "Failed jobs block 2 groups.",
        ),
        ({"breakers_open": 1}, "warn", "The breaker of a group is open."),
        ({"breakers_open": 1200}, "warn", "The breakers of 1,200 groups are open."),
        ({"oldest_wait": 301.0}, "warn", "Jobs that could start have waited for a long time."),
        ({"oldest_wait": 301.0, "paused": True}, None, ""),
        (
            {"server": SimpleNamespace(maxmemory=1, eviction_policy="allkeys-lru")},
            "fail",
            "Jobs can be lost to eviction.",
        ),
        ({"server": SimpleNamespace(maxmemory=0, eviction_policy="allkeys-lru")}, None, ""),
        ({"dropped": 1}, "warn", "Retention drops failed jobs."),
    ],
)
def test_warnings_where_something_is_wrong(trouble: dict[str, Any], level: str | None, said: str) -> None:
    found = warnings(JobCounts(0, 5, 0, 0, 0, 5, 1), **(QUIET | trouble))
    assert [(one.level, one.text) for one in found] == ([] if level is None else [(level, said)])


def test_the_row_of_a_worker_shows_whether_it_is_late_or_blocked() -> None:
    now = datetime(2026, 11, 17, 14, 0, tzinfo=UTC)
    worker = WorkerInfo("w-1", "web-1", "host", 7, 4, 2, 10.0, now - timedelta(seconds=15), "0.1.0", blocked=2.5)
    row = worker_row(worker, {}, now)
    assert (row.late, row.blocked, row.busy, row.more_jobs, row.use) == (False, 2.5, 2, 2, 0.5)
    assert worker_row(worker, {}, now + timedelta(seconds=2)).late


def test_what_runs_counts_rather_than_the_last_heartbeat() -> None:
    now = datetime(2026, 11, 17, 14, 0, tzinfo=UTC)
    worker = WorkerInfo("w-1", "web-1", "host", 7, 4, 0, 10.0, now, "0.1.0")
    jobs: Any = {"w-1": ["one", "two", "three"]}
    for complete in (True, False):
        row = worker_row(worker, jobs, now, complete=complete)
        assert (row.busy, row.use, row.more_jobs) == (3, 0.75, 0)
    worker = WorkerInfo("w-1", "web-1", "host", 7, 4, 4, 10.0, now, "0.1.0")
    assert worker_row(worker, jobs, now, complete=True).busy == 3
    row = worker_row(worker, jobs, now)
    assert (row.busy, row.more_jobs) == (4, 1)


def test_workers_stand_by_name_and_number() -> None:
    now = datetime(2026, 11, 17, 14, 0, tzinfo=UTC)
    names = ["web-10", "api-1", "web-2", "web", "web-2b"]
    workers = [WorkerInfo(f"id-{name}", name, "host", 7, 4, 0, 10.0, now, "0.1.0") for name in names]
    assert [worker.name for worker in sorted(workers, key=in_order)] == ["api-1", "web", "web-2", "web-2b", "web-10"]


def test_a_schedule_that_never_or_hardly_ever_ticks_is_answered_at_once() -> None:
    """Another process may have stored the schedule, so no schedule may keep the page busy for long."""
    at = datetime(2026, 11, 17, tzinfo=UTC)
    for schedule, runs in (
        ("cron 0 0 30 2 * (UTC)", 1),
        ("cron 0 0 29 2 * (UTC)", 3),
        ("cron 61 * * * * (UTC)", 1),
        ("cron * * * * * (Nowhere/Land)", 1),
        ("every 1e300 s", 1),
        ("every 0 s", 1),
    ):
        repeat: Any = SimpleNamespace(schedule=schedule, next_run=at, limit=None, count=0, end=None)
        assert len(next_runs(repeat)) == runs, schedule
