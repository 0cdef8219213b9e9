"""repair: damage by manual changes or evictions is found, named and mended. In a healthy queue it finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core.views import RepairReport
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import Engine
from tests.support import meta


def build(engine: Engine) -> None:
    """Store something in every key: g waits, h runs, p is in its back-off, d is delayed, and two jobs are finished."""
    engine.now = None
    engine.add("done", group="x")
    engine.complete(engine.take_one(), result=b"1")
    engine.add("broken", group="x")
    engine.fail_run(engine.take_one())
    engine.add("h1", "h2", group="h")
    engine.take_one(lease_ms=600_000)
    engine.add("p1", "p2", group="p")
    engine.retry_run(engine.take_one(), 600_000)
    engine.add("d1", group="d", delay=600)
    engine.add("g1", "g2", "g3", group="g")
    engine.add("u1", group=None)
    engine.add("r1", group="r")
    engine.add("r2", group="r")


def repair(engine: Engine) -> RepairReport:
    return engine.run(engine.operations.repair())


def member(engine: Engine, group: str, job_id: str) -> bytes:
    [found] = [one for one in engine.client.zrange(engine.keys.group(group), 0, -1) if one.endswith(job_id.encode())]
    return bytes(found)


def stale_group_value(engine: Engine) -> None:
    """Restore the value that group h had in `groups` while h1 ran, after h1 has ended."""
    raw = engine.client.hget(engine.key("groups"), "h")
    engine.remove("h1")
    engine.advance(*(commands.ended("h1", fence) for fence in engine.look().stopping))
    engine.client.hset(engine.key("groups"), "h", raw)


def moved_to_another_group(engine: Engine) -> None:
    one = member(engine, "g", "g2")
    engine.client.zrem(engine.keys.group("g"), one)
    engine.client.zadd(engine.keys.group("h"), {one: 0})


def forgotten_group(engine: Engine) -> None:
    engine.client.hdel(engine.key("groups"), "g")


def vanished_group(engine: Engine) -> None:
    forgotten_group(engine)
    engine.client.zrem(engine.key("ready"), "g")


Damage = Callable[[Engine], Any]
DAMAGE: dict[str, Damage] = {
    "the record of a waiting job": lambda e: e.client.hdel(e.key("jobs"), "g2"),
    "the record of the head of a group": lambda e: e.client.hdel(e.key("jobs"), "g1"),
    "the record of every job of a group": lambda e: e.client.hdel(e.key("jobs"), "g1", "g2", "g3"),
    "the record of an ungrouped job": lambda e: e.client.hdel(e.key("jobs"), "u1"),
    "the record of a running job": lambda e: e.client.hdel(e.key("jobs"), "h1"),
    "the record of a delayed job": lambda e: e.client.hdel(e.key("jobs"), "d1"),
    "the record of a completed job": lambda e: e.client.hdel(e.key("jobs"), "done"),
    "the record of a failed job": lambda e: e.client.hdel(e.key("jobs"), "broken"),
    "the record of a held job": lambda e: e.client.hdel(e.key("jobs"), "p1"),
    "all records": lambda e: e.client.delete(e.key("jobs")),
    "a ready entry": lambda e: e.client.zrem(e.key("ready"), "g"),
    "all ready entries": lambda e: e.client.delete(e.key("ready")),
    "the ready entry of ungrouped jobs": lambda e: e.client.zrem(e.key("ready"), ""),
    "a ready entry with a wrong score": lambda e: e.client.zadd(e.key("ready"), {"g": 10**15}),
    "a ready entry of a group that has nothing": lambda e: e.client.zadd(e.key("ready"), {"ghost": 1}),
    "a ready entry of a busy group": lambda e: e.client.zadd(e.key("ready"), {"h": 1}),
    "a ready entry of a parked group": lambda e: e.client.zadd(e.key("ready"), {"p": 1}),
    "a parked entry": lambda e: e.client.zrem(e.key("parked"), "p"),
    "a parked entry of a ready group": lambda e: e.client.zadd(e.key("parked"), {"g": 9e15}),
    "a parked entry of a group that has nothing": lambda e: e.client.zadd(e.key("parked"), {"ghost": 9e15}),
    "a group that is not listed": forgotten_group,
    "a group that is nowhere": vanished_group,
    "all of groups": lambda e: e.client.delete(e.key("groups")),
    "a listed group that has nothing": lambda e: e.client.hset(
        e.key("groups"), "ghost", e.client.hget(e.key("groups"), "g")
    ),
    "a wrong number of running jobs": stale_group_value,
    "a waiting job taken from its group": lambda e: e.client.zrem(e.keys.group("g"), member(e, "g", "g2")),
    "the head taken from its group": lambda e: e.client.zrem(e.keys.group("g"), member(e, "g", "g1")),
    "a whole group zset": lambda e: e.client.delete(e.keys.group("g")),
    "a member that is no job": lambda e: e.client.zadd(e.keys.group("g"), {bytes(16) + b"ghost": 0}),
    "a member at a second place": lambda e: e.client.zadd(e.keys.group("g"), {bytes(16) + b"g3": 0}),
    "a member in another group": moved_to_another_group,
    "a member also in another group": lambda e: e.client.zadd(e.keys.group("h"), {member(e, "g", "g2"): 0}),
    "a waiting job that is also delayed": lambda e: e.client.zadd(e.key("delayed"), {"g2": 9e15}),
    "a waiting job that is also completed": lambda e: e.client.zadd(e.key("completed"), {"g2": 1}),
    "a running job that is also failed": lambda e: e.client.zadd(e.key("failed"), {"h1": 1}),
    "a completed job that is also failed": lambda e: e.client.zadd(e.key("failed"), {"done": 1}),
    "a running job that waits too": lambda e: e.client.zadd(
        e.keys.group("h"), {bytes(e.client.hget(e.key("jobs"), "h1")[:16]) + b"h1": 0}
    ),
    "a lease without a deadline": lambda e: e.client.zrem(e.key("active"), "h1"),
    "a deadline without a lease": lambda e: e.client.hdel(e.key("leases"), "h1"),
    "a deadline of a job that does not exist": lambda e: e.client.zadd(e.key("active"), {"ghost": 9e15}),
    "a delayed job that does not exist": lambda e: e.client.zadd(e.key("delayed"), {"ghost": 9e15}),
    "a delayed job taken out": lambda e: e.client.zrem(e.key("delayed"), "d1"),
    "a completed job that does not exist": lambda e: e.client.zadd(e.key("completed"), {"ghost": 1}),
    "a state of a job that does not exist": lambda e: e.client.hset(
        e.key("state"), "ghost", b"\x97\0\0\0\0\xa0\xa0\xa0"
    ),
    "a result of a job that does not exist": lambda e: e.client.hset(e.key("results"), "ghost", b"1"),
    "a completed job taken out": lambda e: e.client.zrem(e.key("completed"), "done"),
    "a run being stopped that never ends": lambda e: (
        e.remove("h1"),
        e.client.delete(e.key("stopping")),
        meta.zero(e.client, e.key("meta"), "stopping"),
    ),
    "an end of a run being stopped that is not there": lambda e: e.client.zadd(e.key("stopping"), {"5": 9e15}),
    "delayed and its place in groups": lambda e: e.client.delete(e.key("delayed"), e.key("groups")),
}


def test_a_healthy_queue_has_no_damage(engine: Engine) -> None:
    build(engine)
    before = engine.digest()
    report = repair(engine)
    assert (report.mended, report.clean, report.jobs) == ({}, True, 13)
    assert engine.digest() == before


def test_an_empty_queue_has_no_damage(engine: Engine) -> None:
    engine.now = None
    assert repair(engine).clean


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_named_and_mended_at_once(engine: Engine, kind: str) -> None:
    build(engine)
    DAMAGE[kind](engine)
    assert engine.violations() != []
    report = repair(engine)
    assert report.total > 0
    assert engine.violations() == []
    second = repair(engine)
    assert second.mended == {}


@pytest.mark.parametrize("kind", DAMAGE)
def test_after_a_repair_every_job_that_still_exists_runs(engine: Engine, kind: str) -> None:
    build(engine)
    DAMAGE[kind](engine)
    repair(engine)
    found = engine.look()
    alive = set(found.jobs) - set(found.completed) - set(found.failed)
    engine.remove("h1")
    engine.advance(*(commands.ended("h1", fence) for fence in engine.look().stopping))
    for job_id in {*found.delayed, *(alive & {"p1"})}:
        engine.promote(job_id)
    started = engine.run_all()
    assert set(started) == alive - {"h1"}
    in_order = sorted(j for j in alive - set(found.delayed) if j.startswith("g"))
    assert [job_id for job_id in started if job_id in in_order] == in_order


def test_a_queue_in_use_may_be_repaired_at_any_time(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.now = None
    for i in range(250):
        engine.add(f"j{i}", group=f"g{i % 120}", delay=600 if i % 7 == 0 else None)
    engine.take(30, lease_ms=600_000)
    assert repair(engine).mended == {}
    assert engine.violations() == []


def test_names_that_mean_something_in_a_pattern_are_taken_literally(make_engine: MakeEngine) -> None:
    plain, pattern = make_engine(name="qax"), make_engine(name="q[a]*")
    for engine in (plain, pattern):
        engine.now = None
        engine.add("a", group="g*?[x]")
    vanished = "g*?[x]"
    pattern.client.hdel(pattern.key("groups"), vanished)
    pattern.client.zrem(pattern.key("ready"), vanished)
    assert repair(plain).clean
    assert not repair(pattern).clean
    assert pattern.run_all() == plain.run_all() == ["a"]
