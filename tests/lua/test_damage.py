"""If a record is missing or a key is of the wrong type, a script goes on without it, or fails without any write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from groupmq.core import record
from groupmq.core.drafts import Draft, draft
from groupmq.core.errors import ScriptError
from groupmq.core.limits import RateLimit, Throttle
from groupmq.core.schedule import Every
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, Engine


def lose(engine: Engine, *job_ids: str) -> None:
    engine.client.hdel(engine.key("jobs"), *job_ids)


def test_a_job_whose_record_is_missing_is_skipped_and_counted(engine: Engine) -> None:
    engine.add("a", "b", "c")
    lose(engine, "a")
    assert engine.take(1) == []
    assert engine.woken()
    assert engine.run_all() == ["b", "c"]
    assert engine.counter("lost") == 1
    assert engine.counts()["waiting"] == 0


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x01", b"\x90", b"\x98\0\0\0\0\0\0\0\0", b"\x94\0\0\0\0"])
def test_a_state_that_cannot_be_read_counts_as_none_and_stops_nothing(engine: Engine, raw: bytes) -> None:
    engine.now = None
    engine.add("failed", group="f")
    engine.fail_run(engine.take_one())
    engine.add("a", "b")
    engine.client.hset(engine.key("state"), mapping={"a": raw, "failed": raw})
    assert [job.attempts_made for job in engine.run(engine.operations.get_failed_jobs())] == [0]
    assert len(engine.run(engine.operations.get_failure_groups()).groups) == 1
    assert engine.run(engine.operations.get_attempts("failed")) == []
    [(damage, ids)] = engine.run(engine.operations.repair()).mended.items()
    assert (damage, sorted(ids)) == ("state that cannot be read", ["a", "failed"])
    engine.client.hset(engine.key("state"), mapping={"a": raw, "failed": raw})
    assert engine.run_all() == ["a", "b"]
    engine.run(engine.operations.retry("failed"))
    assert engine.run_all() == ["failed"]


def test_any_number_of_missing_records_does_not_stop_a_group(engine: Engine) -> None:
    ids = [f"j{i}" for i in range(50)]
    engine.add(*ids)
    lose(engine, *ids[:25], *ids[30:40])
    started = [job_id for _ in range(60) for job_id in engine.run_all(5)]
    assert started == [*ids[25:30], *ids[40:]]
    assert engine.counter("lost") == 35


def test_a_missing_record_takes_nothing_from_other_groups(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=3)
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", group="b")
    engine.add("u1", "u2", group=None)
    lose(engine, "a2", "u1")
    assert [job.id for job in engine.take(10)] == ["a1", "a3", "b1", "u2"]
    assert engine.counter("lost") == 2


def test_a_missing_record_of_a_delayed_job_is_dropped_when_due(engine: Engine) -> None:
    engine.add("a", "b", delay=1)
    lose(engine, "a")
    engine.pass_time(SECOND)
    assert engine.run_all() == ["b"]
    assert engine.client.zcard(engine.key("delayed")) == 0
    engine.run(engine.operations.repair())  # a record that is gone names no group: mend the counts


@pytest.mark.parametrize("outcome", ["retry", "release", "stall"])
def test_a_running_job_whose_record_is_missing_frees_its_group(engine: Engine, outcome: str) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    lose(engine, "a")
    if outcome == "retry":
        assert engine.retry_run(taken, SECOND) == [1]
    elif outcome == "release":
        assert engine.release(taken) == [1]
    else:
        engine.pass_time(LEASE)
    assert engine.run_all() == ["b"]
    assert engine.violations() == []


def test_a_completion_of_a_missing_record_is_mended_by_a_repair(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    lose(engine, "a")
    engine.complete(taken, result=b"1")  # reads no record: this is the common case, and must cost little
    assert engine.run_all() == ["b"]
    engine.run(engine.operations.repair())
    assert engine.counts() == {"active": 0, "waiting": 0, "delayed": 0, "completed": 1, "failed": 0, "groups": 0}


@pytest.mark.parametrize("outcome", ["fail", "stall"])
@pytest.mark.parametrize("attempts", [0, 1])
def test_the_end_of_a_run_of_a_missing_record_leaves_no_ghost(engine: Engine, outcome: str, attempts: int) -> None:
    engine.add("a", "b")
    for _ in range(attempts):
        engine.retry_run(engine.take_one(), 0)
    taken = engine.take_one()
    lose(engine, "a")
    if outcome == "fail":
        engine.fail_run(taken)
    else:
        engine.stall()
    assert engine.run_all() == ["b"]
    assert engine.violations() == []
    assert min(engine.counts().values()) == 0


Action = Callable[[Engine], Any]


def shared(engine: Engine) -> dict[str, Any]:
    taken: dict[str, Any] = engine.__dict__.setdefault("taken", {})
    return taken


def build(engine: Engine) -> None:
    """Groups first, bad and last; in each one job runs, one waits, one is delayed and one has failed."""
    engine.limit("none", 2)
    for group in ("first", "bad", "last"):
        engine.add(f"{group}-failed", group=group)
        engine.fail_run(engine.take_one())
        engine.add(f"{group}-runs", f"{group}-waits", group=group)
        shared(engine)[group] = engine.take_one()
        engine.add(f"{group}-due", group=group, delay=1)
        engine.add(f"{group}-later", group=group, delay=600)
    engine.add("idle", group="idle")


def spoil(engine: Engine) -> None:
    engine.client.delete(engine.keys.group("bad"))
    engine.client.set(engine.keys.group("bad"), "not a zset")


def new_job(engine: Engine, group: str) -> Draft:
    return draft(engine.options, 1, group_id=group, job_id=f"{group}-new")


GROUPS = ("first", "bad", "last")
ACTIONS: dict[str, Action] = {
    "add to a busy group": lambda e: e.call(
        commands.add([new_job(e, group) for group in (*GROUPS, "brand new")], e.now)
    ),
    "complete and take": lambda e: e.advance(
        *(commands.completed(shared(e)[g].id, shared(e)[g].fence, b"1") for g in GROUPS), take=5
    ),
    "retry": lambda e: e.advance(
        *(commands.retried(shared(e)[g].id, shared(e)[g].fence, 5000, False, "x", "") for g in GROUPS)
    ),
    "give back and take": lambda e: e.advance(
        *(commands.released(shared(e)[g].id, shared(e)[g].fence) for g in GROUPS), take=5
    ),
    "fail and take": lambda e: e.advance(
        *(commands.failed(shared(e)[g].id, shared(e)[g].fence, "x", "") for g in GROUPS), take=5
    ),
    "promote what is due": lambda e: e.stall(SECOND),
    "take expired leases back": lambda e: e.stall(),
    "remove waiting jobs": lambda e: e.remove(*(f"{g}-waits" for g in GROUPS)),
    "retry a failed job": lambda e: e.retry("bad-failed"),
    "promote a job": lambda e: e.promote("bad-later"),
    "delay a waiting job": lambda e: e.change_delay("bad-waits", 5000),
    "fail a waiting job": lambda e: e.fail("bad-waits"),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_a_wrong_type_in_the_middle_of_a_call_leaves_everything_as_it_was(make_engine: MakeEngine, action: str) -> None:
    engine = make_engine()
    build(engine)
    spoil(engine)
    before = engine.digest()
    with pytest.raises(ScriptError, match=r"WRONGTYPE.*\.lua:\d+"):
        ACTIONS[action](engine)
    assert engine.digest() == before
    engine.client.flushall()  # the check after the test would find the damage


def test_a_group_that_gets_its_set_and_whose_key_is_of_a_wrong_type_is_refused_whole(engine: Engine) -> None:
    engine.add("a", group="first")
    engine.add("alone", group="bad")  # a single job has no sorted set, so the key is not read
    engine.client.set(engine.keys.group("bad"), "not a zset")
    before = engine.digest()
    with pytest.raises(ScriptError, match="WRONGTYPE"):
        engine.call(commands.add([new_job(engine, group) for group in GROUPS], engine.now))
    assert engine.digest() == before
    engine.client.delete(engine.keys.group("bad"))


def next_minute(engine: Engine) -> None:
    """Go to the next minute: the next measurement closes the one before."""
    engine.add("x", "y", group=None)
    engine.take_one()
    engine.pass_time(60 * SECOND)


def begin_turn(engine: Engine) -> None:
    engine.add("runs", "waits", group=None)
    engine.advance(take=1, worker="w", turn_size=5, epoch=0)


Prepared = tuple[dict[str, Any], Action, Action]
KEYS: dict[str, Prepared] = {
    "expiring": ({}, Engine.counts, lambda e: e.add("x", ttl=5)),
    "dedupe": ({}, Engine.counts, lambda e: e.add("x", dedupe=Throttle("k", 5))),
    "deduped": ({}, Engine.counts, lambda e: e.add("x", dedupe=Throttle("k", 5))),
    "starts": ({"rate_limit": RateLimit(1, 1)}, lambda e: e.add("x"), Engine.take),
    "rated": ({"group_rate_limit": RateLimit(1, 1)}, lambda e: e.add("x"), Engine.take),
    "r:g": ({"group_rate_limit": RateLimit(1, 1)}, lambda e: e.add("x"), Engine.take),
    "series": ({}, next_minute, Engine.take),
    "labels": ({}, Engine.counts, lambda e: e.call(commands.put_mark("v1", None, e.now))),
    "holders": ({}, lambda e: e.add("x"), lambda e: e.take(0, fill=1)),
    "repeats": ({}, Engine.counts, lambda e: e.repeat(Every(5))),
    "ticks": ({}, Engine.counts, lambda e: e.repeat(Every(5))),
    "mail:w": (
        {},
        lambda e: e.call(commands.beat("w", "{}", LEASE, [], e.now)),
        lambda e: e.repeat(Every(5)),
    ),
    "wake:w": ({"exclusive": True}, begin_turn, lambda e: e.add("x", group=None)),
}


@pytest.mark.parametrize("name", KEYS)
def test_an_index_of_a_wrong_kind_leaves_everything_as_it_was(make_engine: MakeEngine, name: str) -> None:
    options, prepare, action = KEYS[name]
    engine = make_engine(**options)
    prepare(engine)
    engine.client.delete(engine.keys.base + name)
    engine.client.set(engine.keys.base + name, "of a wrong kind")
    before = engine.digest()
    with pytest.raises(ScriptError, match="WRONGTYPE"):
        action(engine)
    assert engine.digest() == before
    engine.client.flushall()  # the check after the test would find the damage


def test_an_error_of_a_script_names_the_lua_file_and_line(engine: Engine) -> None:
    engine.add("a")
    engine.client.set(engine.key("delayed"), "not a zset")
    with pytest.raises(ScriptError, match=r"^add: WRONGTYPE .*(lib/\w+|add)\.lua:\d+"):
        engine.add("b", delay=1)
    engine.client.delete(engine.key("delayed"))
    assert record.unpack(engine.view("a").record).group_id == "g"


DAMAGED_LEASES = [b"", b"12345678", b"x" * 19, b"x" * 40]


@pytest.mark.parametrize("damaged", DAMAGED_LEASES)
def test_a_damaged_lease_stops_no_other_job(engine: Engine, damaged: bytes) -> None:
    """It counts as missing. Otherwise every call that reads it would fail, and its worker would retry for ever."""
    engine.add("a", group="a")
    engine.add("b", group="b")
    one, other = engine.take(2)
    engine.client.hset(engine.key("leases"), one.id, damaged)
    assert engine.beat(one, other) == [one.id]
    assert engine.complete(one, other) == [0, 1]
    assert engine.retry_run(one, 0) == [0]
    engine.pass_time(LEASE)
    engine.add("c", group="c")
    assert "c" in [job.id for job in engine.take(10)]
    engine.run(engine.operations.repair())
    assert engine.violations() == []


@pytest.mark.parametrize("damaged", DAMAGED_LEASES)
def test_a_damaged_lease_stops_no_call_that_looks_at_all_leases(engine: Engine, damaged: bytes) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    one, other = engine.take(2)
    engine.client.hset(engine.key("leases"), one.id, damaged)
    for groups in (None, ["a", "b"]):
        assert [run.id for run in engine.call(commands.list_runs("0", groups)).found] == [other.id]
    for group in (None, "a", "b"):
        recalled = engine.call(commands.recall_page("0", group, engine.now))
        assert [*recalled.unsettled, *recalled.running] == ([] if group == "a" else [other.id])
    scanned = engine.call(commands.scan_groups("0", first=5, now=engine.now)).found
    assert [group.id for group in scanned] == ["b"]
    waits = engine.call(commands.waits(now=engine.now))
    assert waits.running == {"w": 1}
    engine.run(engine.operations.repair())


@pytest.mark.parametrize("damaged", DAMAGED_LEASES)
def test_repair_takes_back_a_job_whose_lease_is_damaged(engine: Engine, damaged: bytes) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    one, other = engine.take(2)
    engine.client.hset(engine.key("leases"), one.id, damaged)
    mended = engine.run(engine.operations.repair()).mended
    assert mended["lease that cannot be read"] == [one.id]
    assert engine.violations() == []
    assert engine.complete(one, other) == [0, 1]
    assert engine.run_all() == [one.id]


@pytest.mark.parametrize("damaged", DAMAGED_LEASES)
def test_repair_drops_a_damaged_lease_of_a_group_that_is_not_listed(engine: Engine, damaged: bytes) -> None:
    engine.add("a", "b", group="a")
    one = engine.take_one()
    engine.client.hset(engine.key("leases"), one.id, damaged)
    engine.client.hdel(engine.key("groups"), "a")
    engine.run(engine.operations.repair())
    assert engine.violations() == []
    assert engine.run_all() == ["a", "b"]


DAMAGED_TURNS = [b"", b"\xc1", b"\x01", b"\x90", b"\x94\0\0\0\0", b"\x92\xa1w\x01"]


@pytest.mark.parametrize("raw", DAMAGED_TURNS)
def test_a_turn_that_cannot_be_read_counts_as_none(make_engine: MakeEngine, raw: bytes) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", "b", group=None)
    taken = engine.advance(take=1, worker="v", turn_size=5, epoch=0).jobs
    engine.client.hset(engine.keys.meta, "turn", raw)
    assert engine.advance(take=1, worker="w", turn_size=5, epoch=0).jobs == []  # a job of the lost turn runs
    assert engine.complete(*taken) == [1]
    assert [job.id for job in engine.advance(take=1, worker="w", turn_size=5, epoch=0).jobs] == ["b"]
    engine.client.delete(engine.key("wake:v"))  # no call knows the worker of the lost turn: it goes with the queue


@pytest.mark.parametrize("raw", DAMAGED_TURNS)
def test_settings_of_a_queue_change_as_a_whole_beside_a_damaged_turn(make_engine: MakeEngine, raw: bytes) -> None:
    engine = make_engine(exclusive=True)
    engine.add("a", "b", group=None)
    engine.client.hset(engine.keys.meta, "turn", raw)
    parallel = replace(engine.options, exclusive=False, max_group_size=7)
    engine.call(commands.open_queue(parallel, engine.call(commands.look_at_queue())))
    assert engine.client.hget(engine.keys.meta, "turn") is None
    assert len(engine.take(2)) == 2


def test_settings_are_refused_whole_if_a_key_that_they_need_is_of_a_wrong_kind(engine: Engine) -> None:
    engine.add("a")
    read = engine.call(commands.look_at_queue())
    engine.client.set(engine.key("starts"), "of a wrong kind")
    before = engine.digest()
    with pytest.raises(ScriptError, match="WRONGTYPE"):
        engine.call(commands.open_queue(replace(engine.options, rate_limit=RateLimit(5, 1)), read))
    assert engine.digest() == before
    engine.client.delete(engine.key("starts"))
