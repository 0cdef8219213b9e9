"""Adds that share one job: a throttle keeps the first add, a debounce the last one."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core import record
from groupmq.core.drafts import draft, drafts_from
from groupmq.core.limits import Debounce, Throttle
from groupmq.protocol import commands
from groupmq.protocol.commands import Added
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine

TEN = 10 * SECOND


def together(engine: Engine, *jobs: dict[str, Any]) -> Added:
    """Add these jobs in one call."""
    drafts = drafts_from(engine.options, [{"data": None, "group_id": "g", **fields} for fields in jobs])
    return engine.call(commands.add(drafts, engine.now))


def data_of(engine: Engine, job_id: str) -> bytes:
    return record.unpack(engine.view(job_id).record).data


# Throttle


def test_within_the_ttl_only_the_first_add_makes_a_job_and_its_data_stay(engine: Engine) -> None:
    once = Throttle("k", 10)
    assert engine.add("a", data=1, dedupe=once).stood_for == {}
    engine.pass_time(TEN - 1)
    added = engine.add("b", data=2, dedupe=once)
    assert (added.stood_for, added.made) == ({0: "a"}, {0: T0})
    assert engine.state("b") is None
    assert data_of(engine, "a") == b"1"
    engine.pass_time(1)
    assert engine.add("c", data=3, dedupe=once).stood_for == {}


def test_further_adds_do_not_extend_a_throttle(engine: Engine) -> None:
    once = Throttle("k", 10)
    engine.add("a", dedupe=once)
    engine.pass_time(9 * SECOND)
    engine.add("b", dedupe=once)
    engine.pass_time(SECOND)
    assert engine.add("c", dedupe=once).stood_for == {}


@pytest.mark.parametrize("how", ["completed", "failed", "removed", "not kept"])
def test_a_throttle_outlives_its_job(make_engine: MakeEngine, how: str) -> None:
    engine = make_engine(kept=0 if how == "not kept" else 10)
    engine.add("a", dedupe=Throttle("k", 10))
    if how == "removed":
        engine.remove("a")
    else:
        taken = engine.take_one()
        (engine.fail_run if how == "failed" else engine.complete)(taken)
    assert engine.add("b", dedupe=Throttle("k", 10)).stood_for == {0: "a"}
    assert engine.state("b") is None


def test_the_caller_gets_the_job_that_stands_for_its_own_also_when_that_is_gone(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=0)
    once = Throttle("k", 10)

    def add(data: str) -> Any:
        [job] = engine.run_now(engine.operations.add_drafts([draft(engine.options, data, group_id="g", dedupe=once)]))
        return job

    first, second = add("one"), add("two")
    assert (second.id, second.data, second.duplicate, first.duplicate) == (first.id, "one", True, False)
    engine.run_all()
    third = add("three")
    assert (third.id, third.duplicate) == (first.id, True)


@pytest.mark.parametrize("kind", [Throttle, Debounce])
def test_keys_are_of_their_group(engine: Engine, kind: Any) -> None:
    for group in ("g", "h", None):
        for key in ("k", "l", "k ", "\0"):
            assert engine.add(f"{group}-{key}", group=group, dedupe=kind(key, 10)).stood_for == {}
    assert engine.add("x", group=None, dedupe=kind("k", 10)).stood_for == {0: "None-k"}


def test_a_group_and_a_key_cannot_be_mistaken_for_another_pair(engine: Engine) -> None:
    engine.add("one", group="ab", dedupe=Throttle("c", 10))
    assert engine.add("two", group="a", dedupe=Throttle("bc", 10)).stood_for == {}


def test_a_throttled_delayed_job_is_not_touched_by_further_adds(engine: Engine) -> None:
    engine.add("a", data=1, delay=5, dedupe=Throttle("k", 10))
    engine.add("b", data=2, delay=50, dedupe=Throttle("k", 10))
    engine.pass_time(5 * SECOND)
    assert engine.take_one().id == "a"
    assert data_of(engine, "a") == b"1"


# Debounce


def test_each_add_starts_the_delay_anew_and_the_last_data_win(engine: Engine) -> None:
    calm = Debounce("k", 10)
    engine.add("a", data=1, dedupe=calm)
    for data in (2, 3):
        engine.pass_time(9 * SECOND)
        assert engine.add(f"x{data}", data=data, dedupe=calm).stood_for == {0: "a"}
        assert engine.take() == []
    engine.pass_time(TEN - 1)
    assert engine.take() == []
    engine.pass_time(1)
    taken = engine.take_one()
    assert (taken.id, record.unpack(taken.record).data) == ("a", b"3")
    assert engine.counts()["delayed"] == 0


def test_the_last_add_brings_all_that_it_says_not_only_its_data(engine: Engine) -> None:
    engine.add("a", priority=5, max_attempts=1, dedupe=Debounce("k", 10))
    engine.add("b", priority=1, max_attempts=9, order_ms=77, dedupe=Debounce("k", 20))
    stored = record.unpack(engine.view("a").record)
    assert (stored.priority, stored.max_attempts, stored.order_ms, stored.order_given) == (1, 9, 77, True)
    assert engine.look().delayed == {"a": T0 + 20 * SECOND}


def test_the_delay_of_a_debounce_can_become_shorter(engine: Engine) -> None:
    engine.add("a", dedupe=Debounce("k", 60))
    engine.add("b", dedupe=Debounce("k", 5))
    engine.pass_time(5 * SECOND)
    assert engine.take_one().id == "a"


@pytest.mark.parametrize("how", ["due", "promoted by hand", "running", "removed", "failed"])
def test_once_its_job_has_left_the_delay_the_next_add_makes_a_new_job(engine: Engine, how: str) -> None:
    engine.add("a", data=1, dedupe=Debounce("k", 10))
    if how == "due":
        engine.pass_time(TEN)
        engine.due()
    elif how == "removed":
        engine.remove("a")
    elif how == "failed":
        engine.fail("a")
    else:
        engine.promote("a")
        if how == "running":
            engine.take_one()
    assert engine.add("b", data=2, dedupe=Debounce("k", 10)).stood_for == {}
    assert engine.state("b") == "delayed"
    if how in ("due", "promoted by hand", "running"):
        assert data_of(engine, "a") == b"1"


def test_a_job_that_is_due_and_not_yet_promoted_is_not_changed_any_more(engine: Engine) -> None:
    engine.add("a", data=1, dedupe=Debounce("k", 10))
    engine.pass_time(TEN)
    assert engine.add("b", data=2, dedupe=Debounce("k", 10)).stood_for == {}
    assert data_of(engine, "a") == b"1"
    assert engine.run_all() == ["a"]


def test_a_sooner_due_time_is_news_for_sleeping_workers(engine: Engine) -> None:
    engine.add("a", dedupe=Debounce("k", 60))
    engine.woken()
    engine.add("b", dedupe=Debounce("k", 5))
    assert engine.woken()


@pytest.mark.parametrize("first", [None, 3])
@pytest.mark.parametrize("second", [None, 7])
@pytest.mark.parametrize("one_call", [True, False])
def test_a_debounced_job_has_the_ttl_of_the_last_add(
    engine: Engine, first: int | None, second: int | None, one_call: bool
) -> None:
    adds: list[dict[str, Any]] = [
        {"job_id": name, "ttl": ttl, "dedupe": Debounce("k", 10)} for name, ttl in (("a", first), ("b", second))
    ]
    for call in [adds] if one_call else [adds[:1], adds[1:]]:
        together(engine, *call)
    assert engine.look().expiring == ({} if second is None else {"a": T0 + TEN + second * SECOND})
    engine.pass_time(TEN)
    assert engine.take_one().id == "a"
    assert engine.look().expiring == {}


# Within one call


def test_within_one_call_a_throttle_keeps_the_first_and_a_debounce_the_last(engine: Engine) -> None:
    for kind, name in ((Throttle, "t"), (Debounce, "d")):
        jobs = [{"job_id": f"{name}{i}", "data": i, "dedupe": kind(name, 10)} for i in range(4)]
        assert together(engine, *jobs).stood_for == {1: f"{name}0", 2: f"{name}0", 3: f"{name}0"}
    assert (data_of(engine, "t0"), data_of(engine, "d0")) == (b"0", b"3")
    assert (engine.state("t0"), engine.state("d0")) == ("waiting", "delayed")


@pytest.mark.parametrize("kinds", [(Throttle, Debounce), (Debounce, Throttle)])
@pytest.mark.parametrize("one_call", [True, False])
def test_a_throttle_and_a_debounce_of_one_key_know_nothing_of_each_other(
    engine: Engine, kinds: tuple[Any, Any], one_call: bool
) -> None:
    jobs = [{"job_id": name, "dedupe": kind("k", 10)} for name, kind in zip("ab", kinds, strict=True)]
    for call in [jobs] if one_call else [jobs[:1], jobs[1:]]:
        assert together(engine, *call).stood_for == {}
    engine.pass_time(TEN)
    assert sorted(engine.run_all()) == ["a", "b"]


def test_a_debounce_replaces_no_other_job_that_got_the_id_of_its_own(engine: Engine) -> None:
    engine.add("a", data="debounced", dedupe=Debounce("k", 60))
    engine.remove("a")
    engine.add("a", data="mine", delay=30)
    assert engine.add("b", data="new", dedupe=Debounce("k", 60)).stood_for == {}
    assert data_of(engine, "a") == b'"mine"'


def test_a_refused_add_of_a_full_group_claims_no_key(make_engine: MakeEngine) -> None:
    engine = make_engine(max_group_size=1)
    engine.add("a")
    for kind in (Throttle, Debounce):
        assert engine.add("b", dedupe=kind("k", 10)).full == [0]
    engine.run_all()
    assert engine.add("c", dedupe=Throttle("k", 10)).stood_for == {}


def test_a_full_group_still_lets_a_debounce_be_replaced(make_engine: MakeEngine) -> None:
    engine = make_engine(max_group_size=1)
    engine.add("a", data=1, dedupe=Debounce("k", 10))
    added = engine.add("b", data=2, dedupe=Debounce("k", 10))
    assert (added.full, added.stood_for) == ([], {0: "a"})


@pytest.mark.parametrize("kind", [Throttle, Debounce])
def test_an_add_sent_again_makes_no_second_job(engine: Engine, kind: Any) -> None:
    call = commands.add([draft(engine.options, 1, group_id="g", dedupe=kind("k", 10))], T0)
    first, again = engine.call(call), engine.call(call)
    assert (first.duplicates, again.duplicates) == ([], [0])
    counts = engine.counts()
    assert counts["waiting"] + counts["delayed"] == 1


@pytest.mark.parametrize("kind", [Throttle, Debounce])
def test_keys_that_are_over_are_swept(engine: Engine, kind: Any) -> None:
    engine.add("a", dedupe=kind("k", 10))
    engine.pass_time(TEN - 1)
    engine.due()
    assert len(engine.look().dedupe) == 1
    engine.pass_time(1)
    engine.due()
    assert engine.look().dedupe == {}
