"""Marks in the history of a queue."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from groupmq import ConfigurationError, Mark, Queue
from groupmq.sync import Queue as SyncQueue

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


async def test_marks_are_kept_by_their_time(queue: Queue) -> None:
    assert await queue.get_marks() == []
    second = await queue.mark("v1.4", at=NOON)
    first = await queue.mark("rolled back", at=NOON.timestamp() - 60)
    assert second == Mark(NOON, "v1.4")
    assert await queue.get_marks() == [first, second] == [Mark(NOON - timedelta(minutes=1), "rolled back"), second]
    assert await queue.get_marks(since=NOON) == [second]
    assert await queue.get_marks(since=NOON.timestamp() + 0.001) == []


async def test_a_mark_without_a_time_has_that_of_the_server(queue: Queue, client: redis.Redis) -> None:
    def now() -> datetime:
        seconds, micros = client.time()
        return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=micros)

    before = now()
    made = await queue.mark("now")
    assert before - timedelta(milliseconds=1) <= made.at <= now()
    assert await queue.get_marks() == [made]


async def test_the_same_mark_is_there_once_and_others_of_its_moment_beside_it(queue: Queue) -> None:
    for label in ("a", "a", "b", "a b", " "):
        await queue.mark(label, at=NOON)
    assert sorted(mark.label for mark in await queue.get_marks()) == [" ", "a", "a b", "b"]


async def test_the_newest_hundred_are_kept(queue: Queue) -> None:
    minute = timedelta(minutes=1)
    await asyncio.gather(*(queue.mark(f"v{n}", at=NOON + n * minute) for n in range(103)))
    marks = await queue.get_marks()
    assert [mark.label for mark in marks] == [f"v{n}" for n in range(3, 103)]
    too_old = await queue.mark("long ago", at=NOON)
    assert too_old.at == NOON
    assert await queue.get_marks() == marks


@pytest.mark.parametrize("label", ["ö 日本語", "\n\t\x00", "<script>alert(1)</script>", "x" * 200, "7 days"])
async def test_any_label_comes_back_as_it_is(queue: Queue, label: str) -> None:
    made = await queue.mark(label)
    assert made.label == label
    assert await queue.get_marks() == [made]


@pytest.mark.parametrize(
    ("label", "at", "named"),
    [
        ("", None, "label"),
        ("x" * 201, None, "label"),
        (7, None, "label"),
        ("\ud800", None, "label"),
        ("v1", datetime(2026, 1, 1), "at"),
        ("v1", "noon", "at"),
        ("v1", True, "at"),
    ],
)
async def test_a_bad_argument_is_named_and_nothing_is_marked(queue: Queue, label: Any, at: Any, named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{named}: expected"):
        await queue.mark(label, at=at)
    with pytest.raises(ConfigurationError, match=r"^since: expected"):
        await queue.get_marks(since=datetime(2026, 1, 1))
    assert await queue.get_marks() == []


async def test_marks_go_with_their_queue(queue: Queue, client: redis.Redis) -> None:
    await queue.mark("v1")
    await queue.obliterate()
    assert client.keys() == []


def test_the_blocking_client_marks_as_well(url: str) -> None:
    with SyncQueue("orders", url) as queue:
        made = queue.mark("v1", at=NOON)
        assert queue.get_marks() == [made]
        assert queue.get_marks(since=NOON + timedelta(seconds=1)) == []
