"""Ids that stay taken after their job has ended, and repeats that skip ticks while their last job lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from groupmq.core.drafts import draft
from groupmq.core.limits import Throttle
from groupmq.core.record import pack_body
from groupmq.core.schedule import Every
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import HOUR, SECOND, T0, Engine
from tests.support import meta

UNIQUE = 3600


@pytest.fixture
def forgetful(make_engine: MakeEngine) -> Engine:
    """An engine that keeps no finished job."""
    return make_engine(kept=0)


ENDS: dict[str, Callable[[Engine], Any]] = {
    "completed": lambda e: e.complete(e.take_one()),
    "failed": lambda e: e.fail_run(e.take_one()),
    "failed by hand": lambda e: e.fail("a"),
    "cancelled while it ran": lambda e: _cancel_run(e),
    "expired": lambda e: _expire(e),
}


def _expire(engine: Engine) -> None:
    engine.pass_time(5 * SECOND)
    engine.due()


def _cancel_run(engine: Engine) -> None:
    taken = engine.take_one()
    engine.cancel(taken.id)
    engine.fail_run(taken, "cancelled")


@pytest.mark.parametrize("end", ENDS)
def test_an_id_stays_taken_after_its_job_has_ended_and_is_gone(forgetful: Engine, end: str) -> None:
    forgetful.add("a", unique_for=UNIQUE, ttl=5)
    ENDS[end](forgetful)
    assert forgetful.state("a") is None
    forgetful.pass_time(HOUR - 1)
    again = forgetful.add("a", unique_for=UNIQUE)
    assert (again.duplicates, again.stood_for, again.made) == ([], {0: "a"}, {0: T0})
    forgetful.pass_time(1)
    assert forgetful.add("a", unique_for=UNIQUE).stood_for == {}
    assert forgetful.run_all() == ["a"]


def test_an_id_is_taken_while_its_job_lives_or_is_kept(engine: Engine) -> None:
    engine.add("a", unique_for=1)
    assert engine.add("a").duplicates == [0]
    engine.run_all()
    engine.pass_time(HOUR)
    assert engine.add("a", unique_for=1).duplicates == [0]  # it is kept
    engine.due()
    engine.call(commands.clean("completed", 0, 10, engine.now))
    assert engine.add("a").stood_for == {}


@pytest.mark.parametrize("how", ["remove", "cancel", "purge"])
def test_a_job_that_somebody_removes_frees_its_id(engine: Engine, how: str) -> None:
    engine.add("a", unique_for=UNIQUE)
    if how == "remove":
        engine.run_all()
        engine.remove("a")
    elif how == "cancel":
        engine.cancel("a")
    else:
        engine.run_now(engine.operations.purge(["waiting"]))
    assert engine.add("a").stood_for == {}
    assert engine.look().unique == {}


def test_retention_and_clean_do_not_free_an_id(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=1)
    engine.add("a", "b", unique_for=UNIQUE)
    engine.run_all()
    engine.call(commands.clean("completed", 0, 10, engine.now))
    assert engine.counts()["completed"] == 0
    assert engine.add("a", "b").stood_for == {0: "a", 1: "b"}


def test_a_redriven_job_takes_its_id_until_it_has_ended_again(engine: Engine) -> None:
    engine.add("a", unique_for=UNIQUE)
    engine.fail_run(engine.take_one())
    engine.pass_time(HOUR - 1)
    engine.retry("a")
    engine.pass_time(10 * HOUR)
    engine.due()
    engine.run_all()
    engine.call(commands.clean("completed", 0, 10, engine.now))
    assert engine.add("a").stood_for == {0: "a"}


def test_a_failed_job_that_is_redriven_after_that_time_takes_its_id_for_as_long_again(engine: Engine) -> None:
    engine.add("a", unique_for=UNIQUE)
    engine.fail_run(engine.take_one())
    engine.pass_time(2 * HOUR)
    engine.due()  # sweeps what has expired
    assert engine.damage() == {}
    engine.retry("a")
    engine.run_all()
    engine.call(commands.clean("completed", 0, 10, engine.now))
    engine.pass_time(HOUR - 1)
    engine.due()
    assert engine.add("a").stood_for == {0: "a"}
    engine.pass_time(1)
    assert engine.add("a").stood_for == {}


@pytest.mark.parametrize("how", ["clean", "retention", "remove"])
def test_a_failed_job_that_is_gone_after_that_time_leaves_nothing(make_engine: MakeEngine, how: str) -> None:
    engine = make_engine(kept=1)
    engine.add("a", unique_for=UNIQUE)
    engine.fail_run(engine.take_one())
    engine.pass_time(2 * HOUR)
    engine.due()
    if how == "clean":
        engine.call(commands.clean("failed", 0, 10, engine.now))
    elif how == "remove":
        engine.remove("a")
    else:
        engine.add("b")
        engine.fail_run(engine.take_one())
    assert engine.state("a") is None
    assert not engine.client.exists(engine.key("unique"), engine.key("uniques"))


def test_an_id_that_another_add_stands_for_is_not_taken(engine: Engine) -> None:
    engine.add("first", dedupe=Throttle("k", 60), unique_for=UNIQUE)
    assert engine.add("second", dedupe=Throttle("k", 60), unique_for=UNIQUE).stood_for == {0: "first"}
    assert set(engine.look().unique) == {"first"}


def test_ids_that_are_free_again_leave_nothing(forgetful: Engine) -> None:
    forgetful.add(*(f"a{n}" for n in range(150)), unique_for=UNIQUE)
    forgetful.run_all(50)
    forgetful.pass_time(HOUR)
    forgetful.due()
    forgetful.due()
    assert not forgetful.client.exists(forgetful.key("unique"), forgetful.key("uniques"))


def test_the_same_id_twice_in_one_call_is_one_job(forgetful: Engine) -> None:
    drafts = [draft(forgetful.options, n, group_id="g", job_id="a", unique_for=UNIQUE) for n in range(2)]
    assert forgetful.call(commands.add(drafts, forgetful.now)).duplicates == [1]
    forgetful.run_all()
    assert forgetful.call(commands.add(drafts, forgetful.now)).stood_for == {0: "a", 1: "a"}


DAMAGE: dict[str, Callable[[Engine], Any]] = {
    "no times": lambda e: e.client.delete(e.key("uniques")),
    "no ids": lambda e: e.client.delete(e.key("unique")),
    "a short value": lambda e: e.client.hset(e.key("unique"), "done", b"\1"),
    "an id that would never be free": lambda e: e.client.hset(e.key("unique"), "ghost", bytes(17) + b"\1"),
    "a time of a job that lives": lambda e: e.client.zadd(e.key("uniques"), {"waits": 5}),
    "the flag": lambda e: meta.zero(e.client, e.keys.meta, "uniques"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_to_taken_ids_is_found_and_mended(engine: Engine, kind: str) -> None:
    engine.add("done", unique_for=UNIQUE)
    engine.run_all()
    engine.add("waits", unique_for=UNIQUE)
    assert engine.damage() == {}
    DAMAGE[kind](engine)
    assert engine.damage() != {}
    assert engine.violations() == []
    assert engine.damage() == {}


# Ticks that are skipped


def define(engine: Engine, **fields: Any) -> None:
    definition = {"group": "g", "key": "k", "priority": 0, "ttl": False, "next": T0, "last": 0, "count": 0}
    body = pack_body(0, True, b"g", None, b"1")
    call = commands.define("r", b"", definition | {"plan": "{}", "overlap": "skip"} | fields, body, now=engine.now)
    assert engine.call(call)


def tick(engine: Engine, expected: int, following: int, *run: int) -> int:
    return engine.call(commands.tick([["r", expected, following, *run]], engine.now)).added


def stored(engine: Engine) -> dict[str, Any]:
    raw = engine.client.hget(engine.key("repeats"), "r")
    found: dict[str, Any] = msgspec.msgpack.decode(raw[4 : 4 + int.from_bytes(raw[:4], "big")])
    return found


@pytest.mark.parametrize("state", ["waiting", "active", "delayed"])
def test_no_occurrence_is_added_while_the_last_one_lives(engine: Engine, state: str) -> None:
    define(engine)
    assert tick(engine, T0, T0 + 1, T0) == 1
    if state != "waiting":
        taken = engine.take_one()
        if state == "delayed":
            engine.retry_run(taken, HOUR, yields=True)
    assert tick(engine, T0 + 1, T0 + 2, T0 + 1) == 0
    found = stored(engine)
    assert (found["next"], found["last"], found["count"], found["skipped"]) == (T0 + 2, T0, 1, 1)
    engine.remove(f"r:{T0}")
    assert tick(engine, T0 + 2, T0 + 3, T0 + 2) == 1


@pytest.mark.parametrize("kept", [0, 100])
def test_the_schedule_goes_on_when_the_last_occurrence_has_ended(make_engine: MakeEngine, kept: int) -> None:
    engine = make_engine(kept=kept)
    define(engine)
    for n in range(3):
        assert tick(engine, T0 + n, T0 + n + 1, T0 + n) == 1
        assert engine.take_one().id == f"r:{T0 + n}"
        engine.pass_time(30 * SECOND)
        engine.due(commands.Policy(1, -1, engine.options.keep))
    assert "skipped" not in stored(engine)


def test_ticks_that_were_missed_add_one_occurrence(engine: Engine) -> None:
    define(engine)
    assert tick(engine, T0, T0 + 9, T0, T0 + 1, T0 + 2) == 1
    assert stored(engine)["skipped"] == 2


def test_a_limit_counts_skipped_ticks(engine: Engine) -> None:
    engine.repeat(Every(1, limit=3, overlap="skip"))
    for _ in range(3):
        engine.pass_time(SECOND)
        engine.tick(engine.now)
    assert (engine.look().repeats, engine.counts()["waiting"]) == ({}, 1)


def test_the_count_of_skipped_ticks_is_kept_when_a_repeat_is_defined_again(engine: Engine) -> None:
    engine.repeat(Every(1, key="k", overlap="skip"))
    for _ in range(3):
        engine.pass_time(SECOND)
        engine.tick(engine.now)
    engine.repeat(Every(2, key="k"))
    [found] = engine.run_now(engine.operations.get_repeating_jobs())
    assert (found.count, found.skipped, found.overlap) == (1, 2, "allow")


def test_occurrences_overlap_by_default(engine: Engine) -> None:
    define(engine, overlap="allow")
    assert tick(engine, T0, T0 + 9, T0, T0 + 1, T0 + 2) == 3
