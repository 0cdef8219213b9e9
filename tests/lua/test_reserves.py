"""Reserves: heads of further groups, and jobs without a group, that are taken before there is a slot for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from groupmq.core.limits import RateLimit
from groupmq.core.ordering import Ordering
from groupmq.protocol import commands
from groupmq.protocol.commands import Policy, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")
PAUSE, IDLE = 100, 5000
"""Milliseconds without new reserves after some were asked back, and for which a worker that found nothing counts as
idle."""


def ids(taken: Sequence[Taken]) -> list[str]:
    return [job.id for job in taken]


def add_each(engine: Engine, names: str, **options: Any) -> None:
    """Add each of these jobs to its own group."""
    for name in names:
        engine.add(name, group=name, **options)


def asked_for(engine: Engine, worker: str) -> bool:
    """Whether the worker had mail. Deletes it."""
    return bool(engine.client.delete(f"{engine.keys.base}mail:{worker}"))


def test_heads_of_further_groups_come_in_their_order_and_are_not_active_yet(engine: Engine) -> None:
    add_each(engine, "abcde")
    answer = engine.advance(take=2, fill=4)
    assert (ids(answer.jobs), answer.rows) == (list("abcd"), [])
    assert engine.look().ahead == {"c", "d"}
    assert [event.job_id for event in engine.last_events()] == ["a", "b"]
    assert set(engine.look().active.values()) == {T0 + LEASE}
    assert len({job.fence for job in answer.jobs}) == 4
    assert [engine.group(name) for name in "abcde"] == ["idle"] * 4 + ["ready"]


def test_without_a_free_slot_all_of_it_is_a_reserve(engine: Engine) -> None:
    add_each(engine, "ab")
    assert ids(engine.take(0, fill=5)) == ["a", "b"]
    assert engine.look().ahead == {"a", "b"}


def test_jobs_without_a_group_are_reserved_each_by_itself(engine: Engine) -> None:
    engine.add(*"abcde", group=None)
    answer = engine.advance(take=1, row=10, fill=4)
    assert (ids(answer.jobs), answer.rows) == (list("abcd"), [])
    assert engine.look().ahead == {"b", "c", "d"}
    assert ids(engine.take(1)) == ["e"]


def test_the_line_of_groups_and_of_jobs_without_a_group_is_kept(engine: Engine) -> None:
    engine.add("a1", "a2", group="a", priority=5)
    engine.add("u1", group=None, priority=5)
    engine.add("b1", "b2", group="b", priority=5)
    engine.add("u2", group=None, priority=5)
    engine.add("urgent", group="c", priority=1)
    engine.add("c2", group="c", priority=5)
    answer = engine.advance(take=1, row=2, fill=6)
    assert (ids(answer.jobs), answer.rows) == (["urgent", "a1", "a2", "u1", "b1", "b2"], [1, 2, 1, 2])
    assert engine.look().ahead == {"a1", "a2", "u1", "b1", "b2"}


def test_rows_that_bring_enough_leave_no_room_for_a_reserve(engine: Engine) -> None:
    for group in "abc":
        engine.add(f"{group}1", f"{group}2", f"{group}3", group=group)
    answer = engine.advance(take=1, row=3, fill=3)
    assert (ids(answer.jobs), answer.rows) == (["a1", "a2", "a3"], [3])
    assert engine.look().holders == {}
    answer = engine.advance(take=1, row=3, fill=5)
    assert (ids(answer.jobs), answer.rows) == (["b1", "b2", "b3", "c1", "c2"], [3, 2])


UNFIT: dict[str, dict[str, Any]] = {"ttl": {"ttl": 60}, "runs once": {"max_attempts": 1}}


@pytest.mark.parametrize("options", UNFIT.values(), ids=UNFIT)
def test_nothing_is_reserved_past_a_job_that_may_not_be(engine: Engine, options: dict[str, Any]) -> None:
    add_each(engine, "ab")
    engine.add("c", group="c", **options)
    add_each(engine, "d")
    assert ids(engine.take(1, fill=4)) == ["a", "b"]
    assert ids(engine.take(1, fill=4)) == ["c", "d"], "a head that starts at once need not be fit for a reserve"


def test_the_same_without_groups(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    engine.add("c", group=None, max_attempts=1)
    engine.add("d", group=None)
    assert ids(engine.take(1, fill=4)) == ["a", "b"]
    assert ids(engine.take(1, fill=4)) == ["c", "d"]


def test_a_job_that_ran_before_is_not_reserved(engine: Engine) -> None:
    add_each(engine, "abc")
    engine.retry_run(engine.take_one(), 0)
    engine.remove("b")
    add_each(engine, "d")
    first = engine.take(1, fill=4)
    assert ids(first) == ["a", "c", "d"]
    engine.release(*first[1:])
    engine.retry_run(first[0], 0)
    assert ids(engine.take(0, fill=4)) == []


def test_workers_that_run_jobs_once_or_allow_no_stall_take_none(engine: Engine) -> None:
    add_each(engine, "abcd")
    for policy in (Policy(1, -1, engine.options.keep), Policy(3, 0, engine.options.keep)):
        [taken] = engine.take(1, fill=4, policy=policy)
        engine.release(taken)


NONE: dict[str, dict[str, Any]] = {
    "two at once": {"group_concurrency": 2},
    "round robin": {"fairness": "round-robin"},
    "ageing": {"priority_ageing_ms": 10 * SECOND},
    "rate of groups": {"group_rate_limit": RateLimit(100, 1)},
    "rate": {"rate_limit": RateLimit(100, 1)},
    "exclusive": {"exclusive": True},
    "event time": {"ordering": Ordering.event_time(1)},
}


@pytest.mark.parametrize("options", NONE.values(), ids=NONE)
def test_where_more_than_order_counts_nothing_is_reserved(make_engine: MakeEngine, options: dict[str, Any]) -> None:
    engine = make_engine(**options)
    add_each(engine, "abc", order_ms=T0 - SECOND)
    assert ids(engine.take(1, fill=3)) == ["a"]


@pytest.mark.parametrize("what", ["queue", "group"])
def test_nothing_is_reserved_of_what_is_paused(engine: Engine, what: str) -> None:
    add_each(engine, "abc")
    engine.pause(None if what == "queue" else "b")
    assert ids(engine.take(0, fill=3)) == ([] if what == "queue" else ["a", "c"])


def test_large_jobs_are_reserved_as_far_as_they_have_room(engine: Engine) -> None:
    add_each(engine, "abcd", data="x" * 500_000)
    answer = engine.advance(take=1, fill=4)
    assert (ids(answer.jobs), engine.look().ahead) == (["a", "b"], {"b"})
    assert answer.wait_ms != 0, "the worker need not ask again at once"


def test_a_request_that_is_sent_again_gets_the_same_rows(engine: Engine) -> None:
    engine.add("u1", "u2", "u3", group=None)
    engine.add("a1", "a2", group="a")
    first = engine.advance(take=1, row=2, fill=5, request=1)
    again = engine.advance(take=1, row=2, fill=5, request=1)
    assert (ids(again.jobs), again.rows) == (ids(first.jobs), [1, 1, 1, 2])


def test_a_completed_job_of_a_reserve_is_published_as_active_and_counts_as_a_short_run(engine: Engine) -> None:
    add_each(engine, "ab")
    taken = engine.take(1, fill=2)
    engine.pass_time(7)
    engine.complete(*taken)
    assert engine.heard()[2:] == [
        ("active", "a"),
        ("completed", "a"),
        ("active", "b"),
        ("completed", "b"),
        ("drained", None),
    ]
    assert engine.look().run[0] == 7


def test_a_reserve_whose_lease_is_over_was_never_taken(engine: Engine) -> None:
    add_each(engine, "abc")
    engine.take(0, fill=3)
    assert engine.stall() == []
    assert [engine.state(name) for name in "abc"] == ["waiting"] * 3
    assert [job.stored for job in engine.take(3)] == [commands.FRESH] * 3


# Workers that are idle


def test_a_take_of_a_reserve_wakes_a_worker(engine: Engine) -> None:
    add_each(engine, "ab")
    engine.woken()
    engine.take(1)
    assert engine.woken(), "another job is ready"
    engine.take(0, fill=1)
    assert engine.woken()
    assert engine.take(0, fill=1) == []
    assert not engine.woken()


def test_a_worker_that_finds_nothing_asks_the_one_that_has_a_reserve(engine: Engine) -> None:
    for worker in ("w", "v", "other"):
        engine.heartbeat(worker=worker)
    add_each(engine, "abc")
    taken = engine.take(1, fill=3)
    engine.take(0, worker="v", requester="v:0")
    assert not asked_for(engine, "w"), "the worker v has no free slot"
    assert engine.take(1, worker="v", requester="v:0") == []
    assert (asked_for(engine, "w"), asked_for(engine, "v"), asked_for(engine, "other")) == (True, False, False)
    assert engine.heartbeat().wanted == taken[-1].fence == engine.advance().wanted
    engine.take(1, worker="v", requester="v:0")
    assert not asked_for(engine, "w"), "it has been asked already"


def test_a_worker_does_not_ask_itself(engine: Engine) -> None:
    engine.heartbeat()
    add_each(engine, "ab")
    engine.take(1, fill=3)
    answer = engine.advance(take=1, requester="w:1")
    assert (answer.jobs, answer.wanted, asked_for(engine, "w")) == ([], 0, False)


def test_after_a_worker_was_idle_nobody_takes_a_reserve_for_a_while(engine: Engine) -> None:
    add_each(engine, "abc")
    taken = engine.take(1, fill=3)
    engine.take(1, worker="v", requester="v:0")
    engine.release(*taken[1:])
    assert ids(engine.take(1, fill=3, worker="v", requester="v:0")) == ["b"]
    engine.pass_time(PAUSE - 1)
    assert engine.take(0, fill=3) == []
    engine.pass_time(1)
    assert ids(engine.take(0, fill=3)) == ["c"]
    assert engine.advance().wanted == 0


def test_a_worker_that_found_nothing_keeps_others_from_taking_a_reserve_until_it_has_found_something(
    engine: Engine,
) -> None:
    assert engine.take(1, worker="v", requester="v:0") == []
    add_each(engine, "abcdef")
    assert ids(engine.take(1, fill=3)) == ["a"]
    assert ids(engine.take(1, fill=3, worker="v", requester="v:0")) == ["b", "c", "d"], "its own idleness is no reason"
    assert ids(engine.take(0, fill=3)) == ["e", "f"]


@pytest.mark.parametrize("how", ["leaves", "is not heard of again"])
def test_a_worker_that_found_nothing_and_is_gone_keeps_nobody_from_anything(engine: Engine, how: str) -> None:
    engine.take(1, worker="v", requester="v:0")
    engine.take(1)
    add_each(engine, "ab")
    engine.take(1, worker="v", requester="v:0")
    assert engine.take(0, fill=3, worker="v", requester="v:0") == []
    if how == "leaves":
        engine.call(commands.leave(["w"], ["w:0"]))
    else:
        engine.pass_time(IDLE)
    assert ids(engine.take(0, fill=3, worker="v", requester="v:0")) == ["b"]


def test_a_worker_with_a_free_slot_is_idle_though_it_found_something(engine: Engine) -> None:
    engine.add("a", group=None)
    assert ids(engine.take(2, worker="v", requester="v:0")) == ["a"]
    add_each(engine, "bc")
    assert engine.take(0, fill=2) == []


def test_a_worker_that_stays_idle_writes_that_down_now_and_then(engine: Engine) -> None:
    engine.take(1)
    first = engine.meta()["idle"]
    engine.pass_time(IDLE // 2)
    engine.take(1)
    assert engine.meta()["idle"] == first
    engine.pass_time(1)
    engine.take(1)
    assert engine.meta()["idle"] == f"{T0 + IDLE // 2 + 1 + IDLE} w"


def test_what_was_reserved_long_ago_is_used_up(engine: Engine) -> None:
    engine.heartbeat()
    engine.add("a", group=None)
    engine.complete(*engine.take(0, fill=1))
    engine.pass_time(SECOND)
    engine.take(1, worker="v", requester="v:0")
    assert not asked_for(engine, "w")
    assert not engine.look().holders
    assert "held" not in engine.meta()


def test_a_worker_that_has_left_is_asked_for_nothing(engine: Engine) -> None:
    engine.heartbeat()
    add_each(engine, "ab")
    engine.take(0, fill=2)
    engine.call(commands.leave(["w"], ["w:0"]))
    engine.take(1, worker="v", requester="v:0")
    assert (asked_for(engine, "w"), engine.advance().wanted) == (False, 0)


def test_one_worker_asks_some_of_many_and_the_next_asks_others(engine: Engine) -> None:
    workers = [f"w{n}" for n in range(25)]
    for n, worker in enumerate(workers):
        engine.heartbeat(worker=worker)
        engine.add(f"j{n}", group=None)
    for worker in workers:
        engine.pass_time(1)
        engine.take(0, fill=1, worker=worker, requester=worker)
    engine.take(1, worker="v", requester="v")
    assert [asked_for(engine, worker) for worker in workers] == [False] * 5 + [True] * 20
    engine.take(1, worker="v", requester="v")
    assert [asked_for(engine, worker) for worker in workers] == [True] * 5 + [False] * 20
