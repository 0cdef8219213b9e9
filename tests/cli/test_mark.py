"""`groupmq mark`: the mark that it stores, and its messages when it cannot."""

from __future__ import annotations

from datetime import UTC, datetime

import redis

from groupmq.sync import Queue
from tests.cli.operating import Command


def test_a_mark_is_stored_with_its_queue(command: Command, orders: Queue) -> None:
    orders.add(1)
    assert command("mark", "v1.4", "--at", "2026-01-31T09:00:00+01:00").code == 0
    answer = command.program("mark", "v1.5 \x1b[31m", "--json")
    assert answer.json["label"] == "v1.5 \x1b[31m"
    first, second = orders.get_marks()
    assert (first.label, first.at) == ("v1.4", datetime(2026, 1, 31, 8, tzinfo=UTC))
    assert second.at.isoformat() == answer.json["at"]
    assert "\x1b" not in command("mark", "v1.6 \x1b[31m").out


def test_a_queue_that_is_not_there_is_not_made_by_a_mark(command: Command, client: redis.Redis) -> None:
    assert "does not exist" in command("mark", "v1.4").line(1)
    assert client.keys() == []


def test_a_mark_that_cannot_be_is_refused_in_one_line(command: Command, orders: Queue) -> None:
    orders.add(1)
    assert "label: expected at most 200 characters" in command("mark", "x" * 201).line(2)
    assert "label: expected a non-empty string" in command("mark", "").line(2)
    assert "has no time zone" in command("mark", "v1", "--at", "2026-01-31T09:00:00").line(2)
    assert orders.get_marks() == []
