"""Progress and log lines of handlers: accepted only under the fence of the run, bounded, and deleted with the job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import log_lines
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine


def progress(engine: Engine, job_id: str) -> Any:
    raw = engine.view(job_id).progress
    return raw if raw is None else msgspec.json.decode(raw)


def lines(engine: Engine, job_id: str) -> list[str]:
    raw = engine.view(job_id).log
    return [] if raw is None else [line.text for line in log_lines(raw)]


@pytest.mark.parametrize("value", ["null", "0.5", '{"ü":[1,null]}', "false", '""'])
def test_progress_is_stored_and_published(engine: Engine, value: str) -> None:
    engine.add("a")
    assert engine.report_progress(engine.take_one(), progress=value)
    assert engine.view("a").progress == value.encode()
    [event] = engine.last_events()
    assert (event.kind, event.job_id, event.group_id) == ("progress", "a", "g")
    assert event.progress == msgspec.json.decode(value)


def test_the_last_progress_is_stored_and_every_one_is_published(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    for n in range(3):
        engine.report_progress(taken, progress=str(n))
    assert progress(engine, "a") == 2
    told = [event.progress for entry in engine.entries() for event in entry.events if event.kind == "progress"]
    assert told == [0, 1, 2]


def test_log_lines_are_kept_in_order_with_their_times_and_publish_nothing(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    before = engine.heard()
    engine.report_progress(taken, line="first")
    engine.pass_time(SECOND)
    engine.report_progress(taken, line="zweite ü\n\x00")
    found = log_lines(engine.view("a").log or b"")
    assert [(line.at.timestamp() * 1000 - T0, line.text) for line in found] == [(0, "first"), (1000, "zweite ü\n\x00")]
    assert engine.heard() == before


def test_the_newest_hundred_lines_are_kept(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    for n in range(130):
        engine.report_progress(taken, line=str(n))
    assert lines(engine, "a") == [str(n) for n in range(30, 130)]


def test_an_empty_line_is_a_line(engine: Engine) -> None:
    engine.add("a")
    engine.report_progress(engine.take_one(), line="")
    assert lines(engine, "a") == [""]


@pytest.mark.parametrize("end", ["stalled", "completed", "removed", "failed by hand", "never taken"])
def test_an_old_fence_says_nothing(engine: Engine, end: str) -> None:
    engine.add("a", "b")
    old = engine.take_one()
    match end:
        case "stalled":
            engine.stall()
            engine.take_one()
        case "completed":
            engine.complete(old)
        case "removed":
            engine.remove("a")
        case "failed by hand":
            engine.fail("a")
        case "never taken":
            old = old._replace(fence=old.fence + 1)
    before = engine.heard()
    assert not engine.report_progress(old, progress="1", line="late")
    assert (engine.look().progress, engine.look().logs, engine.heard()) == ({}, {}, before)


def test_what_was_said_is_seen_after_the_end_and_over_the_next_attempt(engine: Engine) -> None:
    engine.add("a")
    first = engine.take_one()
    engine.report_progress(first, progress="50", line="one")
    engine.retry_run(first, 0)
    assert progress(engine, "a") == 50
    second = engine.take_one()
    engine.report_progress(second, line="two")
    engine.complete(second)
    assert (progress(engine, "a"), lines(engine, "a")) == (50, ["one", "two"])


@pytest.mark.parametrize("how", ["removed", "not kept", "too many", "cleaned"])
def test_nothing_said_outlives_its_job(make_engine: MakeEngine, how: str) -> None:
    engine = make_engine(kept={"not kept": 0, "too many": 1}.get(how, 100))
    engine.add("a", "b")
    taken = engine.take_one()
    engine.report_progress(taken, progress="1", line="x")
    if how == "removed":
        engine.remove("a")
    else:
        engine.complete(taken)
    match how:
        case "too many":
            engine.complete(engine.take_one())
        case "cleaned":
            engine.call(commands.clean("completed", 0, 10, engine.now))
    assert engine.state("a") is None
    assert (engine.look().progress, engine.look().logs) == ({}, {})


def test_an_id_used_again_starts_without_a_word(engine: Engine) -> None:
    engine.add("a")
    engine.report_progress(engine.take_one(), progress="1", line="x")
    engine.remove("a")
    engine.add("a")
    assert (engine.view("a").progress, engine.view("a").log) == (None, None)


def test_each_report_is_a_call_and_an_entry_of_its_own(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    one, two = engine.take(2)
    before = len(engine.entries())
    assert engine.report_progress(one, progress="1", line="x")
    assert not engine.report_progress(two._replace(fence=two.fence + 1), progress="2", line="y")
    assert engine.report_progress(one, progress="3", line="z")
    assert [event.progress for entry in engine.entries()[before:] for event in entry.events] == [1, 3]
    assert len(engine.entries()) == before + 2
    assert (progress(engine, "a"), lines(engine, "a"), engine.view("b").progress) == (3, ["x", "z"], None)


def test_repair_mends_what_is_left_of_jobs_that_were_lost(engine: Engine) -> None:
    for name in ("progress", "logs"):
        engine.client.hset(engine.key(name), "ghost", b"\x90" if name == "logs" else b"1")
    engine.client.hset(engine.key("interrupts"), "ghost", b"\x01" + bytes(6) + b"\x05w")
    engine.add("a")
    report = engine.run(engine.operations.repair())
    assert {name for names in report.mended.values() for name in names} == {"ghost"}
    look = engine.look()
    assert (look.progress, look.logs, look.cancels) == ({}, {}, {})
