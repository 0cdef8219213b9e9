"""The data of large jobs is stored beside their records, so that only calls that need the data pay for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core import record
from groupmq.core.drafts import draft
from groupmq.core.errors import ScriptError
from groupmq.core.limits import Debounce
from groupmq.core.schedule import Every
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, Engine

LARGE = "x" * 40_000
MOST = 8 * 1024
FIELDS: list[dict[str, Any]] = [
    {},
    {"group": None},
    {"group": "\xe4" * 300},
    {"order_ms": -5},
    {"order_ms": 7, "ttl": 60, "priority": 3, "max_attempts": 9},
    {"timeout": 3.5, "on_failed": "hold"},
]


def data_of(raw: bytes) -> Any:
    return json.loads(record.unpack(raw).data)


def bodies(engine: Engine) -> set[str]:
    """Jobs whose data stands beside their record."""
    return {name.decode() for name in engine.client.hkeys(engine.key("bodies"))}


def stored_sizes(engine: Engine) -> list[int]:
    return [len(raw) for raw in engine.client.hvals(engine.key("jobs"))]


@pytest.mark.parametrize("fields", FIELDS, ids=[str(list(fields)) for fields in FIELDS])
def test_a_large_job_is_as_it_would_be_if_it_were_small(engine: Engine, fields: dict[str, Any]) -> None:
    engine.add("large", data=LARGE, **fields)
    engine.add("small", data="", **fields)
    large, small = engine.view("large"), engine.view("small")
    assert bodies(engine) == {"large"}
    assert (data_of(large.record), data_of(small.record)) == (LARGE, "")
    one, other = record.unpack(large.record), record.unpack(small.record)
    assert one._replace(arrival=0, data=b"", options={}) == other._replace(arrival=0, data=b"", options={})
    assert {job.id: data_of(job.record) for job in engine.take(2)} | {"small": ""} == {"large": LARGE, "small": ""}


@pytest.mark.parametrize("size", [MOST - 2, MOST - 1])
def test_data_stands_beside_its_record_if_it_is_larger_than_8_kib(engine: Engine, size: int) -> None:
    """This holds for a single add, an add of several jobs and an update. The quotes of JSON are two bytes."""
    engine.add("a", data="x" * size)
    engine.add("b", "c", data="x" * size)
    engine.add("d")
    engine.update("d", json.dumps("x" * size).encode())
    assert bodies(engine) == (set("abcd") if size + 2 > MOST else set())
    assert [len(data_of(engine.view(name).record)) for name in "abcd"] == [size] * 4


def test_jobs_of_one_call_are_stored_as_if_each_had_come_alone(engine: Engine) -> None:
    names = ["a", "b", "c", "d"]
    drafts = [
        draft(engine.options, [name, LARGE if name in "bd" else ""], job_id=name, group_id="g", order_ms=None)
        for name in names
    ]
    engine.call(commands.add(drafts, engine.now))
    assert bodies(engine) == {"b", "d"}
    taken = engine.take(1, row=4)
    assert [data_of(job.record) for job in taken] == [[name, LARGE if name in "bd" else ""] for name in names]


def test_new_data_takes_the_place_of_the_old_whatever_their_sizes(engine: Engine) -> None:
    engine.add("a", data="small")
    for new in (LARGE, LARGE + "y", "small", "smaller", LARGE):
        engine.update("a", json.dumps(new).encode())
        assert data_of(engine.view("a").record) == new
        assert bodies(engine) == ({"a"} if len(new) > MOST else set())
        assert engine.violations() == []


def test_a_debounced_job_takes_the_data_of_the_last_add_whatever_their_sizes(engine: Engine) -> None:
    for name, new in (("a", "small"), ("b", LARGE), ("c", LARGE + "y"), ("d", "small again")):
        engine.add(name, data=new, dedupe=Debounce("key", 5))
        assert data_of(engine.view("a").record) == new
        assert bodies(engine) == ({"a"} if len(new) > MOST else set())


def test_a_job_that_is_replaced_in_the_call_that_adds_it_leaves_no_data(engine: Engine) -> None:
    drafts = [
        draft(engine.options, data, job_id=name, group_id="g", dedupe=Debounce("key", 5))
        for name, data in (("a", LARGE), ("b", "small"))
    ]
    engine.call(commands.add(drafts, engine.now))
    assert bodies(engine) == set()
    assert data_of(engine.view("a").record) == "small"


def test_nothing_of_a_large_job_is_left_when_it_is_gone(engine: Engine) -> None:
    engine.add("removed", "cancelled", "completed", "failed", data=LARGE)
    engine.remove("removed")
    engine.call(commands.cancel(["cancelled"], engine.now))
    assert bodies(engine) == {"completed", "failed"}
    forgets = commands.Policy(3, -1, {"completed": 0, "failed": 0})
    completed = engine.take_one()
    engine.advance(commands.completed(completed.id, completed.fence, b"1"), policy=forgets)
    assert bodies(engine) == {"failed"}
    failed = engine.take_one()
    engine.advance(commands.failed(failed.id, failed.fence, "no", ""), policy=forgets)
    assert bodies(engine) == set()


def test_kept_jobs_keep_their_data_and_lose_it_with_their_record(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=2)
    for n in range(4):
        engine.add(f"j{n}", data=LARGE)
        engine.complete(engine.take_one())
    assert bodies(engine) == {"j2", "j3"}
    assert data_of(engine.view("j3").record) == LARGE
    engine.run_now(engine.operations.obliterate())
    assert engine.client.keys(f"*{engine.options.name}*") == []


def test_a_tick_of_a_repeat_stores_large_data_beside_its_record(engine: Engine) -> None:
    engine.repeat(Every(1), data=LARGE)
    engine.pass_time(5 * SECOND)
    engine.tick()
    taken = engine.take_one()
    assert taken.id.encode() in engine.client.hkeys(engine.key("bodies"))
    assert data_of(taken.record) == LARGE
    assert max(stored_sizes(engine)) < 200
    assert [len(raw) < 1000 for raw in engine.client.hvals(engine.key("repeats"))] == [True]
    [shown] = engine.run_now(engine.operations.get_repeating_jobs())
    assert shown.data == LARGE


def test_a_repeat_gets_the_data_of_its_last_definition_whatever_the_sizes(engine: Engine) -> None:
    for data in ("small", LARGE, LARGE + "y", "small again", LARGE):
        engine.repeat(Every(1, key="same"), data=data)
        engine.pass_time(SECOND)
        engine.tick()
        taken = engine.take_one()
        assert data_of(taken.record) == data
        engine.complete(taken)
        assert engine.violations() == []
    engine.run_now(engine.operations.remove_repeating_job("g", "same"))
    assert [name for name in engine.client.hkeys(engine.key("bodies")) if name.startswith(b"\xff")] == []


def test_a_definition_is_another_one_when_only_its_large_data_changes(engine: Engine) -> None:
    """Of two processes that have read the same one, only the first may change it."""
    engine.repeat(Every(60, key="same"), data=LARGE)
    [rid] = engine.call(commands.repeats_page("0", now=engine.now)).found
    raw = engine.call(commands.repeats_of([rid], engine.now)).found[rid]
    engine.repeat(Every(60, key="same"), data=LARGE[:-1] + "y")
    assert not engine.call(commands.undefine(rid, raw, engine.now))


def test_ticks_of_large_repeats_come_in_several_calls(engine: Engine) -> None:
    for n in range(5):
        engine.repeat(Every(1, key=f"r{n}"), data="x" * 400_000, group=f"g{n}")
    engine.pass_time(SECOND)
    due = engine.call(commands.repeats_due(now=engine.now))
    ticks = [[rid, due.now, due.now + SECOND, due.now] for rid in due.found]
    assert [engine.call(commands.tick(ticks, engine.now)).added for _ in range(4)] == [2, 2, 1, 0]
    assert len(engine.run_all(5)) == 5


def test_repair_removes_a_repeat_whose_data_is_lost_and_data_of_no_repeat(engine: Engine) -> None:
    engine.repeat(Every(60, key="lost"), data=LARGE)
    [rid] = engine.call(commands.repeats_page("0", now=engine.now)).found
    engine.client.hdel(engine.key("bodies"), b"\xff" + rid.encode())
    engine.client.hset(engine.key("bodies"), b"\xffnobody", "x")
    assert engine.damage() == {"data of no job": ["nobody"], "repeat whose data is lost": [rid]}
    assert engine.damage() == {}
    assert engine.run_now(engine.operations.get_repeating_jobs()) == []


def test_an_answer_that_is_given_again_has_the_data(engine: Engine) -> None:
    engine.add("a", "b", "c", data=LARGE)
    first = engine.advance(take=1, row=3, request=100)
    again = engine.advance(take=1, row=3, request=100)
    assert [data_of(job.record) for job in again.jobs] == [LARGE] * 3
    assert again.jobs == first.jobs


def test_no_call_but_those_that_give_data_away_reads_any(engine: Engine) -> None:
    """The key with the data of all jobs is renamed, and none of these calls misses it."""
    names = [f"j{n}" for n in range(30)]
    engine.add(*names, data=LARGE, delay=1)
    engine.add("ttl", data=LARGE, ttl=2)
    key = engine.key("bodies")
    engine.client.rename(key, "elsewhere")
    engine.pass_time(SECOND)
    assert engine.due().promoted == 30
    assert engine.counts()["waiting"] == 31
    engine.call(commands.look_group("g", engine.now))
    engine.call(commands.look_groups(["g"], 5, engine.now))
    engine.call(commands.position("j7", engine.now))
    engine.call(commands.reschedule("j0", 5 * SECOND, only_delayed=False, now=engine.now))
    engine.pass_time(2 * SECOND)
    assert engine.due().overdue == 1
    engine.client.rename("elsewhere", key)
    [taken] = engine.take(1)
    engine.client.rename(key, "elsewhere")
    engine.retry_run(taken, 0)
    assert engine.view(taken.id).stored.attempts == 1
    engine.client.rename("elsewhere", key)
    [taken] = engine.take(1)
    engine.client.rename(key, "elsewhere")
    engine.pass_time(LEASE)
    assert [one.id for one in engine.due().stalled] == [taken.id]
    engine.client.rename("elsewhere", key)


@pytest.mark.parametrize("change", ["add", "update", "remove", "complete"])
def test_a_key_of_another_type_stops_a_call_before_it_writes(engine: Engine, change: str) -> None:
    engine.add("a", data=LARGE)
    engine.add("done", group="other")
    [done] = [job for job in engine.take(2) if job.id == "done"]
    key, before = engine.key("bodies"), engine.client.dump(engine.key("jobs"))
    kept = engine.client.dump(key)
    engine.client.set(key, "not a hash")
    forgets = commands.Policy(3, -1, {"completed": 0, "failed": 0})
    calls: dict[str, Callable[[], Any]] = {
        "add": lambda: engine.add("b", data=LARGE),
        "update": lambda: engine.update("a", b"1"),
        "remove": lambda: engine.remove("a"),
        "complete": lambda: engine.advance(commands.completed(done.id, done.fence, None), policy=forgets),
    }
    with pytest.raises(ScriptError, match="WRONGTYPE"):
        calls[change]()
    assert engine.client.dump(engine.key("jobs")) == before
    engine.client.restore(key, 0, kept, replace=True)


def test_a_job_whose_data_is_lost_is_skipped_and_counted(engine: Engine) -> None:
    engine.add("a", "b", data=LARGE)
    engine.client.hdel(engine.key("bodies"), "a")
    assert engine.take(1) == []
    assert engine.run_all() == ["b"]
    assert engine.counter("lost") == 1
    assert engine.client.hexists(engine.key("jobs"), "a") == 0


def test_a_row_ends_before_a_job_whose_data_is_lost(engine: Engine) -> None:
    engine.add("a", "b", "c", data=LARGE)
    engine.client.hdel(engine.key("bodies"), "b")
    taken = engine.take(1, row=3)
    assert [job.id for job in taken] == ["a"]
    engine.complete(*taken)
    assert engine.take(1) == []
    assert engine.run_all() == ["c"]


def test_repair_removes_data_of_no_job_and_jobs_without_their_data(engine: Engine) -> None:
    engine.add("a", "b", data=LARGE)
    engine.add("delayed", data=LARGE, delay=60, group="later")
    engine.add("small")
    engine.client.hdel(engine.key("bodies"), "a", "delayed")
    engine.client.hset(engine.key("bodies"), mapping={"small": "x", "nobody": "x"})
    found = {kind: sorted(names) for kind, names in engine.damage().items()}
    assert found == {"data of no job": ["nobody", "small"], "job whose data is lost": ["a", "delayed"]}
    assert engine.damage() == {}
    assert engine.run_all() == ["b", "small"]


def test_repair_finds_data_that_no_call_looks_for(engine: Engine) -> None:
    engine.add("a")
    engine.client.hset(engine.key("bodies"), "nobody", "x")
    assert engine.damage() == {
        "data of large jobs that no call looks for": ["large"],
        "data of no job": ["nobody"],
    }
    assert engine.damage() == {}


def test_repair_leaves_a_running_job_alone_whose_data_is_lost(engine: Engine) -> None:
    """Its worker has the data."""
    engine.add("a", data=LARGE)
    taken = engine.take_one()
    engine.client.hdel(engine.key("bodies"), "a")
    assert engine.damage() == {}
    assert engine.complete(taken) == [1]
    assert engine.damage() == {"job whose data is lost": ["a"]}
