"""Blocked groups: a job that failed for good under `on_failed="hold"` stops its group until it is resolved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.client.duties.retention import AgeRetention
from groupmq.core.ordering import Ordering
from groupmq.protocol import commands
from groupmq.protocol.commands import DONE, LEFT
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine
from tests.support import meta
from tests.support.by_hand import asked

Ends = Callable[[Engine], Any]


@pytest.fixture
def holding(make_engine: MakeEngine) -> Engine:
    return make_engine(on_failed="hold")


def fail_next(engine: Engine, **how: Any) -> str:
    taken = engine.take_one(**how)
    engine.fail_run(taken)
    return taken.id


def stall_for_good(engine: Engine) -> None:
    engine.take_one()
    engine.pass_time(LEASE)
    engine.due(commands.Policy(1, -1, engine.options.keep))


FOR_GOOD: dict[str, Ends] = {
    "its last attempt failed": fail_next,
    "an operator failed it while it waited": lambda e: e.fail("a"),
    "an operator failed it while it ran": lambda e: e.end_run(_failed_by_hand(e)),
    "it stalled too often": stall_for_good,
}


def _failed_by_hand(engine: Engine) -> commands.Taken:
    taken = engine.take_one()
    assert engine.fail(taken.id) == ("active", DONE)
    return taken


@pytest.mark.parametrize("kind", FOR_GOOD)
def test_a_job_that_failed_for_good_blocks_its_group_and_no_other(holding: Engine, kind: str) -> None:
    holding.add("a", "b")
    FOR_GOOD[kind](holding)
    holding.add("c")
    holding.add("other", group="h")
    holding.add("alone", group=None)
    assert (holding.state("a"), holding.group()) == ("failed", "blocked")
    assert sorted(holding.run_all(5)) == ["alone", "other"]
    look = holding.look_group()
    assert (look.why, look.holder, look.blockers, look.next) == ("blocked", "a", 1, ["b", "c"])
    assert holding.blocked() == {"g": holding.now}
    assert holding.view("a").blocks == holding.now


def test_a_job_that_expired_blocks_its_group(holding: Engine) -> None:
    holding.add("a", ttl=1)
    holding.add("b")
    holding.pass_time(SECOND)
    assert holding.take(5) == []
    assert holding.look_group().holder == "a"
    assert holding.skip("a") == [("failed", DONE)]
    assert holding.run_all() == ["b"]


def test_a_cancelled_job_blocks_nothing(holding: Engine) -> None:
    holding.add("a", "b", "c")
    taken = holding.take_one()
    holding.cancel("a", "b")
    holding.advance(commands.failed(taken.id, taken.fence, "cancelled", ""))
    assert (holding.state("a"), holding.group()) == ("failed", "ready")


def test_a_job_without_a_group_blocks_nothing(holding: Engine) -> None:
    holding.add("a", "b", group=None)
    assert fail_next(holding) == "a"
    assert (holding.run_all(), holding.blocked()) == (["b"], {})


def test_a_job_says_itself_what_its_group_does(make_engine: MakeEngine) -> None:
    goes_on, holds = make_engine(on_failed="hold"), make_engine()
    goes_on.add("a", "b", on_failed="continue")
    holds.add("a", "b", on_failed="hold")
    for engine in (goes_on, holds):
        fail_next(engine)
    assert (goes_on.run_all(), holds.run_all()) == (["b"], [])


def test_a_retried_job_runs_first_again(holding: Engine) -> None:
    holding.add("a", "b", "c")
    fail_next(holding)
    assert holding.retry("a") == ("failed", DONE)
    assert [event.kind for event in holding.last_events()] == ["unblocked", "added"]
    assert holding.run_all() == ["a", "b", "c"]


def test_a_skipped_job_stays_failed_and_its_group_goes_on(holding: Engine) -> None:
    holding.add("a", "b")
    fail_next(holding)
    assert [(event.kind, event.job_id) for event in holding.last_events()] == [("failed", "a"), ("blocked", "a")]
    holding.woken()
    assert holding.skip("a", "b", "none") == [("failed", DONE), ("waiting", LEFT), ("", LEFT)]
    assert [(event.kind, event.job_id) for event in holding.last_events()] == [("unblocked", "a")]
    assert holding.woken()
    assert holding.skip("a") == [("failed", LEFT)]
    assert holding.run_all() == ["b"]
    assert holding.state("a") == "failed"


@pytest.mark.parametrize("end", ["remove", "skip group"])
def test_a_blocked_group_goes_on_when_its_job_is_removed_or_all_are_skipped(holding: Engine, end: str) -> None:
    holding.add("a", "b")
    fail_next(holding)
    if end == "remove":
        assert holding.remove("a") == [1]
    else:
        assert holding.skip_group() == ([("failed", DONE)], 0)
    assert (holding.group(), holding.blocked()) == ("ready", {})


def test_every_job_that_blocks_a_group_has_to_be_resolved(make_engine: MakeEngine) -> None:
    engine = make_engine(on_failed="hold", group_concurrency=3)
    engine.add("a", "b", "c", "d")
    taken = engine.take(3)
    engine.fail_run(taken[0])
    assert engine.take(3) == []
    engine.pass_time(1)
    engine.fail_run(taken[1])
    assert engine.complete(taken[2]) == [1]
    assert (engine.group(), engine.look_group().blockers) == ("blocked", 2)
    engine.skip("a")
    assert (engine.group(), engine.look_group().holder, engine.blocked()) == ("blocked", "b", {"g": T0})
    engine.retry("b")
    assert engine.run_all(1) == ["b", "d"]


def test_a_blocked_group_that_has_no_job_left_stays_blocked(holding: Engine) -> None:
    holding.add("a")
    fail_next(holding)
    assert (holding.group(), holding.counts()["groups"]) == ("blocked", 0)
    holding.add("b", delay=1)
    holding.pass_time(SECOND)
    assert holding.take(1) == []
    assert holding.group() == "blocked"


def test_pausing_and_blocking_are_independent(holding: Engine) -> None:
    holding.add("a", "b")
    taken = holding.take_one()
    holding.pause("g")
    holding.fail_run(taken)
    assert (holding.group(), holding.look_group().blocked) == ("paused", holding.now)
    holding.resume("g")
    assert holding.group() == "blocked"
    holding.pause("g")
    holding.skip("a")
    assert holding.group() == "paused"
    holding.resume("g")
    assert holding.run_all() == ["b"]


def test_the_rest_of_a_row_comes_back_to_a_blocked_group(holding: Engine) -> None:
    holding.add("a", "b", "c", "d")
    first, *rest = holding.take_row(3)
    holding.advance(
        commands.failed(first.id, first.fence, "no", ""), *(commands.released(t.id, t.fence) for t in rest), take=3
    )
    assert (holding.group(), holding.counts()["active"]) == ("blocked", 0)
    holding.retry("a")
    assert holding.run_all() == ["a", "b", "c", "d"]


def test_exclusive_queue_ends_its_turn_when_its_group_is_blocked(make_engine: MakeEngine) -> None:
    engine = make_engine(on_failed="hold", exclusive=True)
    engine.add("a", "b")
    engine.add("other", group="h")
    fail_next(engine, worker="w1")
    assert [job.id for job in engine.take(5, worker="w2")] == ["other"]


def test_arrivals_do_not_open_a_window_that_ends_a_block(make_engine: MakeEngine) -> None:
    engine = make_engine(on_failed="hold", ordering=Ordering.arrival(1))
    engine.add("a")
    engine.pass_time(SECOND)
    fail_next(engine)
    engine.add("b")
    engine.pass_time(SECOND)
    assert (engine.take(1), engine.group()) == ([], "blocked")
    engine.skip("a")
    assert engine.run_all() == ["b"]


def test_cancelling_a_group_does_not_unblock_it(holding: Engine) -> None:
    holding.add("a", "b")
    fail_next(holding)
    assert holding.run_now(holding.operations.cancel_group("g")) == 1
    assert holding.group() == "blocked"


# Retention


@pytest.mark.parametrize("kept", [0, 2])
def test_retention_never_forgets_a_blocking_job(make_engine: MakeEngine, kept: int) -> None:
    engine = make_engine(on_failed="hold", kept=kept)
    for n in range(5):
        engine.add(f"a{n}", group=f"g{n}")
        engine.add(f"b{n}", group=None)
    for _ in range(10):
        fail_next(engine)
    assert engine.counts()["failed"] == 5 + kept
    assert len(engine.blocked()) == 5
    assert engine.call(commands.clean("failed", 0, 100, engine.now)) == kept
    assert not engine.run_now(AgeRetention(asked, lambda: engine.options).run_once()).called
    engine.skip(*(f"a{n}" for n in range(5)))
    assert engine.counts()["failed"] == kept


def test_many_blocking_jobs_do_not_keep_others_from_being_forgotten(make_engine: MakeEngine) -> None:
    """Retention reads each blocking job once, not in every call."""
    engine = make_engine(on_failed="hold", kept=3)
    for first in range(0, 700, 100):
        engine.add(*(f"g{n}" for n in range(first, first + 100)), group=f"g{first}")
        engine.limit(f"g{first}", 100)
        taken = engine.take(100)
        engine.advance(*(commands.failed(t.id, t.fence, "no", "") for t in taken))
    engine.add(*(f"other{n}" for n in range(20)), group=None)
    for _ in range(20):
        fail_next(engine)
    assert engine.counts()["failed"] == 703
    assert engine.counter("spared") > 0
    assert engine.skip_group("g0", 40).left == 60
    assert sum(engine.call(commands.clean("failed", 0, 100, engine.now)) for _ in range(3)) == 3
    assert engine.counts()["failed"] == 700 - 40
    for group in engine.blocked():
        while engine.skip_group(group).left:
            pass
    assert (engine.counts()["failed"], engine.blocked()) == (3, {})


def test_nothing_of_a_block_outlives_its_queue(holding: Engine) -> None:
    holding.add("a", "b")
    fail_next(holding)
    holding.run_now(holding.operations.purge(["waiting", "failed"]))
    assert {name: n for name, n in holding.counts().items() if n} == {}
    assert not holding.client.exists(*(holding.key(name) for name in ("blocked", "blockers", "blocking")))
    holding.add("c")
    fail_next(holding)
    holding.run(holding.operations.obliterate())
    assert holding.client.keys(f"*{holding.options.name}*") == []


# Repair


DAMAGE: dict[str, Callable[[Engine], Any]] = {
    "no such group": lambda e: e.client.zrem(e.key("blocked"), "g"),
    "no such job": lambda e: e.client.hdel(e.key("blockers"), "a"),
    "not listed": lambda e: e.client.delete(e.key("blocking")),
    "a ghost": lambda e: e.client.hset(e.key("blockers"), "ghost", b"\0\0\0\0\0\1g"),
    "a short value": lambda e: e.client.hset(e.key("blockers"), "ghost", b"\0"),
    "a listed ghost": lambda e: e.client.zadd(e.key("blocking"), {b"\0\1g\0\0\0\0\0\1ghost": 0}),
    "a group that no job blocks": lambda e: e.client.zadd(e.key("blocked"), {"h": 5}),
    "the flag": lambda e: meta.zero(e.client, e.keys.meta, "blocks"),
    "the job": lambda e: e.client.hdel(e.key("jobs"), "a"),
    "its place": lambda e: e.client.zrem(e.key("failed"), "a"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_to_a_block_is_found_and_mended(holding: Engine, kind: str) -> None:
    holding.add("a", "b")
    holding.add("c", group="h")
    fail_next(holding)
    assert holding.damage() == {}
    DAMAGE[kind](holding)
    assert holding.damage() != {}
    assert holding.violations() == []
    assert holding.damage() == {}
    unblocked = kind in ("no such job", "the job")
    assert holding.group() == ("ready" if unblocked else "blocked")
    assert len(holding.run_all()) == (2 if unblocked else 1)
