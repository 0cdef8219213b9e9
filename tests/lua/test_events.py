"""The event log: a call that does something writes one entry, a call that does nothing writes none. It is bounded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine

SEGMENT = 524_288


def told(engine: Engine, *names: str) -> list[tuple[Any, ...]]:
    """These fields of each event of the last call that published any."""
    return [tuple(getattr(event, name) for name in names) for event in engine.last_events()]


def xadds(engine: Engine, action: Callable[[], Any]) -> int:
    """The number of XADDs that the action causes."""
    engine.client.config_resetstat()
    action()
    stats: dict[str, Any] = engine.client.info("commandstats")
    return int(stats.get("cmdstat_xadd", {"calls": 0})["calls"])


def test_an_add_publishes_all_jobs_in_one_entry_with_the_time_of_the_call(engine: Engine) -> None:
    engine.add("a", "b", group="g")
    engine.add("c", group=None)
    assert [(entry.number, len(entry.events)) for entry in engine.entries()] == [(1, 2), (2, 1)]
    assert engine.heard() == [("added", "a"), ("added", "b"), ("added", "c")]
    assert told(engine, "kind", "job_id", "group_id", "at") == [
        ("added", "c", None, datetime.fromtimestamp(T0 / 1000, UTC))
    ]


def test_a_duplicate_is_not_added_and_publishes_nothing(engine: Engine) -> None:
    engine.add("a")
    engine.add("a")
    assert engine.heard() == [("added", "a")]


def test_a_delayed_job_is_added_once_and_its_promotion_publishes_nothing(engine: Engine) -> None:
    engine.add("a", delay=1)
    engine.pass_time(SECOND)
    engine.due()
    assert engine.heard() == [("added", "a")]


def test_an_active_event_has_the_attempt_and_the_worker(engine: Engine) -> None:
    engine.add("a", group="g")
    engine.add("b", group="h")
    engine.take(2, worker="w7")
    assert told(engine, "kind", "job_id", "group_id", "attempt", "worker") == [
        ("active", "a", "g", 1, "w7"),
        ("active", "b", "h", 1, "w7"),
    ]


def test_a_completed_event_has_the_attempt_and_the_result(engine: Engine) -> None:
    engine.add("a", "b", "c", group=None)
    a, b, c = engine.take(3)
    engine.advance(
        commands.completed(a.id, a.fence, b'{"x":1}'),
        commands.completed(b.id, b.fence, None),
        commands.completed(c.id, c.fence, b"[2]"),
    )
    assert told(engine, "kind", "job_id", "attempt", "result", "stored")[:3] == [
        ("completed", "a", 1, {"x": 1}, False),
        ("completed", "b", 1, None, False),
        ("completed", "c", 1, [2], False),
    ]


@pytest.mark.parametrize(("kept", "size", "inline"), [(100, 524_288, True), (100, 524_289, False), (0, 524_289, True)])
def test_a_large_result_is_in_the_event_only_if_it_is_nowhere_else(
    make_engine: MakeEngine, kept: int, size: int, inline: bool
) -> None:
    engine = make_engine(kept=kept)
    engine.add("a")
    result = b'"' + b"x" * (size - 2) + b'"'
    engine.complete(engine.take_one(), result=result)
    [done, *_] = engine.last_events()
    assert (done.raw_result == result, done.stored) == (inline, not inline)


def test_an_entry_carries_results_as_long_as_there_is_room(engine: Engine) -> None:
    engine.add("a", "b", "c", group=None)
    outcomes = [
        commands.completed(job.id, job.fence, b'"' + b"x" * (n - 2) + b'"')
        for job, n in zip(engine.take(3), (500_000, 100_000, 24_288), strict=True)
    ]
    engine.advance(*outcomes)
    assert [event.stored for event in engine.last_events() if event.kind == "completed"] == [False, True, False]


def test_what_is_not_kept_beyond_the_call_has_room(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=1)
    engine.add("a", "b", "c", group=None)
    engine.advance(*(commands.completed(job.id, job.fence, b'"' + b"x" * 300_000 + b'"') for job in engine.take(3)))
    assert [event.stored for event in engine.last_events() if event.kind == "completed"] == [False, False, False]


def test_a_retrying_event_has_delay_and_reason(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 2500, reason="boom")
    assert told(engine, "kind", "job_id", "attempt", "delay", "reason") == [("retrying", "a", 1, 2.5, "boom")]


def test_a_failed_event_has_reason_and_stack(engine: Engine) -> None:
    engine.add("a", "b")
    engine.fail_run(engine.take_one(), "boom")
    assert told(engine, "kind", "job_id", "attempt", "reason", "stacktrace") == [("failed", "a", 1, "boom", "stack")]
    engine.fail("b", "by hand")
    assert told(engine, "kind", "job_id", "reason") == [("failed", "b", "by hand"), ("drained", None, None)]


def test_a_release_publishes_nothing_and_the_next_run_is_active_again(engine: Engine) -> None:
    engine.add("a")
    engine.release(engine.take_one())
    assert engine.heard()[-1] == ("active", "a")
    engine.take_one()
    assert told(engine, "kind", "attempt") == [("active", 1)]


def test_a_stalled_event_shows_whether_it_was_the_last_attempt(engine: Engine) -> None:
    engine.add("a", max_attempts=2)
    engine.take_one()
    engine.stall()
    assert told(engine, "kind", "job_id", "attempt", "final") == [("stalled", "a", 1, False)]
    engine.take_one()
    engine.stall()
    assert told(engine, "kind", "final") == [("stalled", True), ("failed", None), ("drained", None)]


def test_removing_publishes_each_job_once_in_whatever_state(engine: Engine) -> None:
    engine.add("running", group="a")
    engine.add("waiting", group="b")
    engine.add("delayed", group="c", delay=60)
    taken = engine.take_one()
    engine.remove("running", "waiting", "delayed", "nobody", "waiting")
    assert told(engine, "kind", "job_id", "group_id") == [
        ("removed", "running", "a"),
        ("removed", "waiting", "b"),
        ("removed", "delayed", "c"),
    ]
    engine.end_run(taken)
    assert told(engine, "kind", "job_id", "group_id") == [("drained", None, None)]


def test_retrying_a_failed_job_adds_it_again(engine: Engine) -> None:
    engine.add("a")
    engine.fail_run(engine.take_one())
    engine.retry("a")
    assert told(engine, "kind", "job_id", "group_id") == [("added", "a", "g")]


def test_a_pause_or_resume_is_published_only_if_it_changed_something(engine: Engine) -> None:
    for _ in range(2):
        engine.pause()
    for _ in range(2):
        engine.resume()
    for _ in range(2):
        engine.pause("g")
    engine.limit("g", 3)
    engine.resume("g")
    found = [(e.kind, e.group_id) for entry in engine.entries() for e in entry.events]
    assert found == [("paused", None), ("resumed", None), ("paused", "g"), ("resumed", "g")]


def test_drained_is_published_once_when_the_last_live_job_has_ended(engine: Engine) -> None:
    engine.add("a", "b")
    engine.complete(engine.take_one())
    assert ("drained", None) not in engine.heard()
    engine.complete(engine.take_one())
    engine.advance(take=1)
    assert engine.heard()[-1] == ("drained", None)
    assert engine.heard().count(("drained", None)) == 1


@pytest.mark.parametrize("how", ["removed", "cancelled", "failed by hand", "expired", "stalled for good"])
def test_drained_is_published_however_the_last_live_job_went(make_engine: MakeEngine, how: str) -> None:
    engine = make_engine(max_attempts=1)
    engine.add("a", ttl=1)
    if how == "removed":
        engine.remove("a")
    elif how == "cancelled":
        engine.call(commands.cancel(["a"], engine.now))
    elif how == "failed by hand":
        engine.fail("a")
    elif how == "expired":
        engine.pass_time(2 * SECOND)
        engine.due()
    else:
        engine.take_one()
        engine.stall()
    assert engine.heard().count(("drained", None)) == 1
    assert engine.heard()[-1] == ("drained", None)


def test_a_refused_outcome_in_an_empty_queue_publishes_nothing(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.complete(taken)
    before = engine.heard()
    engine.complete(taken)
    assert engine.heard() == before


def test_a_delayed_job_keeps_the_queue_from_being_drained(engine: Engine) -> None:
    engine.add("later", delay=60)
    engine.add("a", group="h")
    engine.complete(engine.take_one())
    assert ("drained", None) not in engine.heard()


def test_a_call_however_many_jobs_it_concerns_writes_once(engine: Engine) -> None:
    drafts = [draft(engine.options, None, job_id=f"j{i}") for i in range(500)]
    assert xadds(engine, lambda: engine.call(commands.add(drafts, T0))) == 1
    taken: list[commands.Taken] = []
    assert xadds(engine, lambda: taken.extend(engine.take(500))) == 1
    outcomes = [commands.completed(t.id, t.fence, b"1") for t in taken]
    assert xadds(engine, lambda: engine.advance(*outcomes, take=500)) == 1
    assert len(engine.entries()) == 3


def test_a_call_that_does_nothing_writes_nothing(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()

    def nothing() -> None:
        engine.advance(take=5)
        engine.due()
        engine.heartbeat(taken)
        engine.remove("nobody")
        engine.cancel("nobody")
        engine.view("a")
        engine.fail("nobody")

    assert xadds(engine, nothing) == 0


def test_a_request_sent_again_is_published_once(engine: Engine) -> None:
    engine.add("a")
    for _ in range(2):
        engine.advance(take=1, request=1)
    assert engine.heard() == [("added", "a"), ("active", "a")]


def test_an_outcome_under_an_old_fence_publishes_nothing(engine: Engine) -> None:
    engine.add("a")
    old = engine.take_one()
    engine.stall()
    engine.take_one()
    before = engine.heard()
    engine.complete(old)
    engine.fail_run(old)
    assert engine.heard() == before


def test_a_queue_without_events_writes_none(make_engine: MakeEngine) -> None:
    engine = make_engine(events=False)

    def life() -> None:
        engine.add("a", "b", "c")
        taken = engine.take_one()
        engine.report_progress(taken, progress="1", line="x")
        engine.complete(taken, result=b"1")
        engine.pause()
        engine.resume()
        engine.cancel("b")
        engine.take_one()
        engine.pass_time(LEASE)
        engine.due()
        engine.remove("c")

    assert xadds(engine, life) == 0
    assert engine.client.exists(engine.key("events"), engine.key("segments")) == 0
    assert engine.counter("logged") == engine.counter("log_bytes") == 0


def test_the_log_is_bounded_in_bytes_and_counts_on(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    progress = '"' + "x" * 60_000 + '"'
    for _ in range(120):
        engine.report_progress(taken, progress=progress)
    entries = engine.entries()
    assert entries[-1].number == engine.counter("logged") == 122
    assert 6 * SEGMENT <= 60_000 * len(entries) <= 10 * SEGMENT
    assert [entry.number for entry in entries] == list(range(entries[0].number, 123))
    assert engine.client.llen(engine.key("segments")) <= 8


def test_an_entry_larger_than_a_segment_is_no_trouble(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    for _ in range(12):
        engine.report_progress(taken, progress='"' + "x" * (SEGMENT + 5) + '"')
    assert len(engine.entries()) <= 10
    assert engine.counter("log_bytes") == 0


def test_a_log_that_cannot_be_written_undoes_nothing(engine: Engine) -> None:
    engine.client.set(engine.key("events"), "not a stream")
    engine.add("a", "b")
    engine.complete(engine.take_one())
    assert (engine.state("a"), engine.state("b")) == ("completed", "waiting")
    engine.client.delete(engine.key("events"))
    engine.run_all()
    # The events in between are missing, and the number of the first entry shows it.
    assert engine.entries()[0].number == 4


def test_the_last_entry_and_those_after_another_can_be_asked_for(engine: Engine) -> None:
    assert engine.call(commands.log_end()) is None
    for name in "abc":
        engine.add(name)
    first, second, third = engine.entries()
    assert engine.call(commands.log_end())[0] == third.stream_id.encode()
    page = engine.call(commands.log(f"({first.stream_id}", 1))
    assert [raw[0] for raw in page] == [second.stream_id.encode()]
    assert engine.call(commands.log(first.stream_id, 10))[0][0] == first.stream_id.encode()
    assert engine.call(commands.log(f"({third.stream_id}", 10)) == []
