"""The events of rows: each job is active once and ends once, in the order in which they ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Outcome, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, Engine

Heard = list[tuple[str, str | None]]


@pytest.fixture
def row(engine: Engine) -> list[Taken]:
    """The row a, b, c; d still waits behind it."""
    engine.add(*"abcd")
    return engine.take_row(worker="w7")


def told(engine: Engine, *names: str) -> list[tuple[Any, ...]]:
    """These fields of each event of the last call that published any."""
    return [tuple(getattr(event, name) for name in names) for event in engine.last_events()]


def news(engine: Engine, action: Callable[[], object]) -> Heard:
    """The events that the action causes."""
    before = len(engine.heard())
    action()
    return engine.heard()[before:]


def test_of_a_row_that_is_taken_only_the_first_is_active(engine: Engine, row: list[Taken]) -> None:
    assert told(engine, "kind", "job_id", "attempt", "worker") == [("active", "a", 1, "w7")]


def test_the_end_of_a_row_publishes_active_and_completed_of_each_job(engine: Engine, row: list[Taken]) -> None:
    results = [b'"A"', None, b"[3]"]
    ends = [commands.completed(job.id, job.fence, result) for job, result in zip(row, results, strict=True)]
    engine.advance(*ends, take=1, worker="w7")
    assert told(engine, "kind", "job_id", "group_id", "attempt", "worker", "result") == [
        ("completed", "a", "g", 1, None, "A"),
        ("active", "b", "g", 1, "w7", None),
        ("completed", "b", "g", 1, None, None),
        ("active", "c", "g", 1, "w7", None),
        ("completed", "c", "g", 1, None, [3]),
        ("active", "d", "g", 1, "w7", None),
    ]


def test_jobs_of_a_row_that_end_one_by_one_each_publish_their_own_events(engine: Engine, row: list[Taken]) -> None:
    assert [news(engine, lambda job=job: engine.complete(job)) for job in row] == [  # type: ignore[misc]
        [("completed", "a")],
        [("active", "b"), ("completed", "b")],
        [("active", "c"), ("completed", "c")],
    ]


def test_rows_and_single_jobs_of_many_groups_each_publish_their_own_events(engine: Engine) -> None:
    engine.add("a1", "a2", group="a")
    engine.add("b1", group="b")
    engine.add("c1", "c2", group="c")
    engine.add("u", group=None)
    jobs = {job.id: job for job in engine.take(4, row=2, worker="w7")}
    order = ["b1", "a1", "a2", "u", "c1", "c2"]
    engine.advance(*(commands.completed(i, jobs[i].fence, f'"{i}"'.encode()) for i in order), worker="w7")
    assert told(engine, "kind", "job_id", "worker", "result") == [
        ("completed", "b1", None, "b1"),
        ("completed", "a1", None, "a1"),
        ("active", "a2", "w7", None),
        ("completed", "a2", None, "a2"),
        ("completed", "u", None, "u"),
        ("completed", "c1", None, "c1"),
        ("active", "c2", "w7", None),
        ("completed", "c2", None, "c2"),
        ("drained", None, None, None),
    ]


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_results_of_a_row_are_published_whether_they_are_kept_or_not(make_engine: MakeEngine, kept: int) -> None:
    engine = make_engine(kept=kept)
    engine.add(*"abc")
    engine.advance(*(commands.completed(job.id, job.fence, b'"x"') for job in engine.take_row()))
    found = [event.result for event in engine.last_events() if event.kind == "completed"]
    assert found == ["x", "x", "x"]


def test_one_that_has_begun_is_active_at_once_and_not_again(engine: Engine, row: list[Taken]) -> None:
    a, b, c = row
    engine.advance(commands.completed("a", a.fence, None), commands.begun("b", b.fence))
    assert told(engine, "kind", "job_id", "attempt", "worker") == [
        ("completed", "a", 1, None),
        ("active", "b", 1, "w7"),
    ]
    assert news(engine, lambda: engine.complete(b, c)) == [("completed", "b"), ("active", "c"), ("completed", "c")]


ENDS: dict[str, tuple[Callable[[Taken], Outcome], Heard]] = {
    "retried": (
        lambda job: commands.retried(job.id, job.fence, 500, False, "x", ""),
        [("active", "b"), ("retrying", "b")],
    ),
    "yields": (
        lambda job: commands.retried(job.id, job.fence, 500, True, "x", ""),
        [("active", "b"), ("retrying", "b")],
    ),
    "failed": (lambda job: commands.failed(job.id, job.fence, "x", ""), [("active", "b"), ("failed", "b")]),
    "limited": (lambda job: commands.rate_limited(job.id, job.fence, 500), [("active", "b")]),
    "released": (lambda job: commands.released(job.id, job.fence), []),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("begun", [False, True])
def test_one_that_does_not_complete_was_active_before(engine: Engine, row: list[Taken], end: str, begun: bool) -> None:
    a, b, c = row
    outcome, expected = ENDS[end]
    if begun:
        engine.begin(b)
        expected = [one for one in expected if one[0] != "active"]
    ends = commands.completed("a", a.fence, None), outcome(b), commands.released("c", c.fence)
    assert news(engine, lambda: engine.advance(*ends)) == [("completed", "a"), *expected]


def test_events_of_a_retried_job_of_a_row_have_worker_and_attempt(engine: Engine, row: list[Taken]) -> None:
    engine.retry_run(row[1], 2500)
    assert told(engine, "kind", "job_id", "group_id", "attempt", "worker", "delay") == [
        ("active", "b", "g", 1, "w7", None),
        ("retrying", "b", "g", 1, None, 2.5),
    ]


def test_of_an_expired_row_only_the_first_job_is_published_as_stalled(engine: Engine, row: list[Taken]) -> None:
    assert news(engine, engine.stall) == [("stalled", "a")]
    taken = engine.take_row()
    assert told(engine, "kind", "job_id", "attempt") == [("active", "a", 2)]
    engine.complete(*taken)
    assert news(engine, engine.take_row) == [("active", "b")]


def test_a_run_that_begins_and_stalls_in_one_call_is_published_in_this_order(engine: Engine, row: list[Taken]) -> None:
    a, b, _ = row
    engine.pass_time(LEASE)
    ends = commands.completed("a", a.fence, None), commands.begun("b", b.fence)
    assert news(engine, lambda: engine.advance(*ends)) == [("completed", "a"), ("active", "b"), ("stalled", "b")]


def test_a_recall_publishes_nothing(engine: Engine, row: list[Taken]) -> None:
    assert news(engine, lambda: engine.remove("b")) == []
    assert news(engine, lambda: engine.release(*row[1:])) == []


def test_one_of_a_row_that_is_removed_was_never_active(engine: Engine, row: list[Taken]) -> None:
    engine.remove("b")
    engine.release(*row[1:])
    assert news(engine, lambda: engine.remove("b")) == [("removed", "b")]


def test_the_queue_is_drained_when_the_last_of_a_row_has_ended(engine: Engine) -> None:
    engine.add(*"abc")
    a, *rest = engine.take_row()
    engine.complete(a)
    assert ("drained", None) not in engine.heard()
    engine.complete(*rest)
    assert engine.heard()[-1] == ("drained", None)


def test_a_row_sent_again_is_published_once(engine: Engine) -> None:
    engine.add(*"abc")
    for _ in range(2):
        engine.advance(take=1, row=3, request=1)
    assert engine.heard()[3:] == [("active", "a")]


def test_every_call_writes_one_entry_or_none(engine: Engine, row: list[Taken]) -> None:
    a, b, c = row
    before = len(engine.entries())
    engine.advance(commands.completed("a", a.fence, None), commands.begun("b", b.fence), commands.begun("c", c.fence))
    assert len(engine.entries()) == before + 1
    engine.begin(b, c)
    engine.release(c)
    assert len(engine.entries()) == before + 1


def test_a_queue_without_events_publishes_nothing_of_rows(make_engine: MakeEngine) -> None:
    engine = make_engine(events=False)
    engine.add(*"abcdefg")
    a, b, c, d, *_ = engine.take_row(6)
    engine.complete(a, b)
    engine.begin(c)
    engine.retry_run(c, 0)
    engine.fail_run(d)
    engine.pass_time(LEASE)
    engine.due()
    assert engine.run_rows() == [["c"], ["e", "f", "g"]]
    assert engine.client.exists(engine.key("events"), engine.key("segments")) == 0
