"""`groupmq queue settings`: shows and changes the settings that are stored with a queue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groupmq import Backoff, Breaker, Ordering, RateLimit, Retention
from groupmq.sync import Queue
from groupmq.wording import setting
from tests.cli.operating import Command
from tests.support.workers import one_kind

pytestmark = one_kind


@pytest.mark.parametrize(
    ("said", "name", "value"),
    [
        ("job_timeout=2m", "job_timeout", 120),
        ("max_attempts=7", "max_attempts", 7),
        ("max-attempts = 7", "max_attempts", 7),
        ("backoff=5s", "backoff", Backoff.fixed(5)),
        ("backoff=500ms..5m", "backoff", Backoff.exponential(base=0.5, max=300)),
        ("backoff=1s..5m x3 jitter 0.1", "backoff", Backoff.exponential(base=1, factor=3, max=300, jitter=0.1)),
        ("on_retry=yield", "on_retry", "yield"),
        ("on_failed=hold", "on_failed", "hold"),
        ("keep_completed=0", "keep_completed", Retention(count=0)),
        ("keep_failed=5000,14d", "keep_failed", Retention(count=5000, age=14 * 86_400)),
        ("keep_failed=36h", "keep_failed", Retention(age=129_600)),
        ("keep_failed=all", "keep_failed", Retention()),
        ("breaker=3/90s", "breaker", Breaker(3, 90)),
        ("rate_limit=100/1s", "rate_limit", RateLimit(100, 1)),
        ("group_rate_limit=2/500ms", "group_rate_limit", RateLimit(2, 0.5)),
        ("ordering=event_time:2s", "ordering", Ordering.event_time(2)),
        ("ordering=arrival:500ms..4s", "ordering", Ordering.arrival(0.5, 4)),
        ("ordering=arrival:500ms", "ordering", Ordering.arrival(0.5)),
        ("fairness=round-robin", "fairness", "round-robin"),
        ("group_concurrency=3", "group_concurrency", 3),
        ("exclusive=yes", "exclusive", True),
        ("events=off", "events", False),
        ("max_group_size=1000", "max_group_size", 1000),
        ("priority_ageing=1m", "priority_ageing", 60),
    ],
)
def test_a_setting_is_stored_as_it_is_said_and_shown_so_that_it_can_be_said_again(
    command: Command, orders: Queue, said: str, name: str, value: Any
) -> None:
    orders.add(1)
    answer = command("queue", "settings", "orders", "--set", said, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out)["changed"] == [name]
    assert getattr(orders.get_settings(), name) == value
    shown = setting(name, getattr(orders.get_settings(), name))
    again = json.loads(command("queue", "settings", "orders", "--set", f"{name}={shown}", "--json").out)
    assert again["changed"] == []


def test_several_settings_are_changed_at_once_and_none_turns_one_off(command: Command, orders: Queue) -> None:
    orders.add(1)
    answer = command("queue", "settings", "--set", "rate_limit=5/1s", "--set", "max_attempts=9")
    assert answer.code == 0
    assert "max_attempts" in answer.out
    assert "was 3" in answer.out
    assert "was none" in answer.out
    command("queue", "settings", "--set", "rate_limit=none")
    settings = orders.get_settings()
    assert (settings.rate_limit, settings.max_attempts) == (None, 9)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("max_attempts", "is not NAME=VALUE"),
        ("max_attempt=7", "'max_attempt' is not a setting of a queue; known: job_timeout, max_attempts"),
        ("max_attempts=many", "max_attempts: expected a whole number, got 'many'"),
        ("max_attempts=0", "max_attempts: expected an integer from 1"),
        ("job_timeout=soon", "job_timeout: expected a duration: 30, 1.5, 500ms, 10m, 2h, 7d, got 'soon'"),
        ("backoff=soon", "backoff: expected a duration, or 1s..5m, which grows, got 'soon'"),
        ("exclusive=perhaps", "exclusive: expected yes or no, got 'perhaps'"),
        ("rate_limit=100", "rate_limit: expected a count and a time (100/1s), or none, got '100'"),
        ("ordering=by moon", "ordering: expected event_time:2s, arrival:500ms"),
        ("on_retry=stop", "on_retry: expected"),
        ("serializer=json", "'serializer' is not a setting of a queue"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(command: Command, orders: Queue, said: str, told: str) -> None:
    orders.add(1)
    before = orders.get_settings()
    answer = command("queue", "settings", "orders", "--set", "on_failed=hold", "--set", said)
    assert (answer.code, answer.out) == (2, "")
    assert told in answer.err
    assert len(answer.err.splitlines()) == 1
    assert orders.get_settings() == before


def test_a_queue_that_does_not_exist_is_not_made(command: Command, url: str) -> None:
    answer = command("queue", "settings", "nobody", "--set", "max_attempts=9")
    assert (answer.code, answer.out) == (1, "")
    assert "does not exist" in answer.err
    assert Queue.list(url) == []
