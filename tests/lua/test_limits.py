"""The bound on the live jobs of a group, and on the time for which a job may wait for its start."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.drafts import draft
from groupmq.core.errors import GroupFull
from groupmq.protocol import commands
from groupmq.protocol.commands import Expired
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine


@pytest.fixture
def small(make_engine: MakeEngine) -> Engine:
    """An engine whose groups have at most three live jobs."""
    return make_engine(max_group_size=3)


def expired(engine: Engine, job_id: str) -> bool:
    view = engine.view(job_id)
    return view.state == "failed" and view.stored.reason == "expired: not started within its ttl"


# The size of a group


def test_a_full_group_refuses_and_nothing_is_written(small: Engine) -> None:
    small.add("a", "b", "c")
    before = small.digest()
    with pytest.raises(GroupFull, match="group 'g' is full: it has 3 live jobs") as caught:
        small.run_now(small.operations.add(None, group_id="g"))
    assert (caught.value.group_id, caught.value.size) == ("g", 3)
    assert small.digest() == before


def test_waiting_running_and_delayed_jobs_count(small: Engine) -> None:
    small.add("running")
    taken = small.take_one()
    small.add("waiting")
    small.add("delayed", delay=60)
    assert small.add("x").full == [0]
    small.complete(taken)
    assert small.add("y").full == []
    assert small.add("z").full == [0]


@pytest.mark.parametrize("how", ["complete", "fail", "remove", "fail by hand"])
def test_room_is_made_by_every_way_out(small: Engine, how: str) -> None:
    small.add("a", "b", "c")
    if how in ("complete", "fail"):
        (small.complete if how == "complete" else small.fail_run)(small.take_one())
    elif how == "remove":
        small.remove("c")
    else:
        small.fail("c")
    assert small.add("d", "e").full == [1]


def test_a_retry_or_a_stall_of_a_full_group_is_not_refused(small: Engine) -> None:
    small.add("a", "b", "c")
    small.retry_run(small.take_one(), 0)
    small.take_one()
    small.stall()
    assert small.add("d").full == [0]
    assert small.run_all() == ["a", "b", "c"]


def test_within_one_call_the_jobs_before_count(small: Engine) -> None:
    assert small.add("a", "b", "c", "d", "e").full == [3, 4]
    assert small.run_all() == ["a", "b", "c"]


def test_neighbours_of_a_refused_job_in_a_shared_call_are_added(small: Engine) -> None:
    small.add("a", "b", "c")
    groups = ["g", "h", "g", None]
    jobs = [draft(small.options, i, group_id=group, job_id=f"n{i}") for i, group in enumerate(groups)]
    found = small.run_now(small.operations.add_drafts(jobs))
    assert [isinstance(job, GroupFull) for job in found] == [True, False, True, False]
    assert [small.state(f"n{i}") for i in range(4)] == [None, "waiting", None, "waiting"]


def test_a_call_of_one_caller_is_added_whole_or_not_at_all(small: Engine) -> None:
    small.add("a", "b")
    before = small.digest()
    items: list[dict[str, Any]] = [
        {"data": 1, "group_id": "h"},
        {"data": 2, "group_id": "g"},
        {"data": 3, "group_id": "g"},
    ]
    with pytest.raises(GroupFull, match="group 'g'"):
        small.run_now(small.operations.add_many(items))
    assert small.digest() == before
    assert len(small.run_now(small.operations.add_many(items[:2]))) == 2


def test_an_id_that_exists_is_a_duplicate_even_in_a_full_group(small: Engine) -> None:
    small.add("a", "b", "c")
    added = small.add("b")
    assert (added.duplicates, added.full) == ([0], [])


def test_groups_fill_up_on_their_own_and_jobs_without_a_group_never(small: Engine) -> None:
    small.add("a", "b", "c", group="g")
    assert small.add("x", "y", "z", group="h").full == []
    assert small.add(*(f"n{i}" for i in range(10)), group=None).full == []


# A time to start


def test_a_job_that_has_not_started_within_its_ttl_fails_at_that_very_millisecond(engine: Engine) -> None:
    engine.pause("g")
    engine.add("a", ttl=5)
    assert engine.advance(take=1).wait_ms == 5 * SECOND
    engine.pass_time(5 * SECOND - 1)
    engine.due()
    assert engine.state("a") == "waiting"
    engine.pass_time(1)
    engine.due()
    assert expired(engine, "a")


def test_a_job_at_its_ttl_is_not_started_by_the_call_that_finds_it(engine: Engine) -> None:
    engine.add("a", ttl=5)
    engine.add("b", "c")
    engine.pass_time(5 * SECOND)
    assert [job.id for job in engine.take(1)] == ["b"]
    assert expired(engine, "a")


def test_each_job_past_its_ttl_is_named_and_whether_it_blocks_its_group(make_engine: MakeEngine) -> None:
    engine = make_engine(on_failed="hold")
    engine.add("a", ttl=5)
    engine.add("b", group=None, ttl=5)
    engine.pass_time(5 * SECOND)
    assert engine.due().expired == [Expired("a", "g", blocks=True), Expired("b", None, blocks=False)]
    assert engine.due().expired == []


def test_a_reservation_that_is_sent_again_names_the_same_expired_jobs(engine: Engine) -> None:
    engine.add("a", ttl=5)
    engine.pass_time(5 * SECOND)
    first, again = engine.advance(take=1, request=5), engine.advance(take=1, request=5)
    assert first.expired == again.expired == [Expired("a", "g", blocks=False)]
    assert engine.advance(take=1, request=6).expired == []


def test_a_job_behind_the_head_expires_and_the_head_stays(engine: Engine) -> None:
    engine.add("a")
    engine.add("b", ttl=5)
    engine.add("c")
    engine.pass_time(5 * SECOND)
    engine.due()
    assert expired(engine, "b")
    assert engine.run_all() == ["a", "c"]


def test_the_last_job_of_a_group_expires_and_nothing_of_the_group_stays(engine: Engine) -> None:
    engine.add("a", ttl=5)
    engine.pass_time(5 * SECOND)
    engine.due()
    assert engine.counts() == {"active": 0, "waiting": 0, "delayed": 0, "completed": 0, "failed": 1, "groups": 0}
    assert engine.look().expiring == {}


def test_of_a_delayed_job_the_ttl_counts_from_when_it_may_start(engine: Engine) -> None:
    engine.add("a", delay=10, ttl=5)
    engine.pass_time(14_999)
    engine.due()
    assert engine.state("a") == "waiting"
    engine.pass_time(1)
    engine.due()
    assert expired(engine, "a")


@pytest.mark.parametrize("by", ["advance", "due"])
def test_a_delayed_job_that_nobody_promoted_in_time_expires_where_it_is(engine: Engine, by: str) -> None:
    engine.add("a", delay=10, ttl=5)
    engine.add("b", delay=10)
    engine.pass_time(60 * SECOND)
    if by == "due":
        engine.due()
    assert [job.id for job in engine.take(5)] == ["b"]
    assert expired(engine, "a")


def test_a_started_job_does_not_expire(engine: Engine) -> None:
    engine.add("a", ttl=5)
    taken = engine.take_one(lease_ms=60 * SECOND)
    assert engine.look().expiring == {}
    engine.pass_time(50 * SECOND)
    engine.due()
    assert engine.complete(taken) == [1]


@pytest.mark.parametrize("how", ["retry", "stall", "release", "limited", "yield"])
def test_a_job_that_started_once_does_not_expire_when_it_comes_back(engine: Engine, how: str) -> None:
    engine.add("a", ttl=5)
    taken = engine.take_one()
    if how == "stall":
        engine.stall()
    elif how == "release":
        engine.release(taken)
    elif how == "limited":
        engine.limit_run(taken, 20 * SECOND)
    else:
        engine.retry_run(taken, 20 * SECOND, yields=how == "yield")
    engine.pass_time(60 * SECOND)
    assert engine.take_one().id == "a"


def test_a_job_that_started_and_waits_outside_its_group_has_no_ttl_to_run_out(engine: Engine) -> None:
    engine.add("a", ttl=5)
    engine.retry_run(engine.take_one(), 60 * SECOND, yields=True)
    engine.change_delay("a", 90 * SECOND)
    assert engine.look().expiring == {}


@pytest.mark.parametrize("state", ["delayed", "waiting"])
def test_another_delay_moves_the_ttl_along(engine: Engine, state: str) -> None:
    engine.add("a", ttl=5, delay=10 if state == "delayed" else None)
    engine.pass_time(2 * SECOND)
    left = 5 * SECOND if state == "delayed" else 3 * SECOND
    engine.change_delay("a", 20 * SECOND)
    assert engine.look().expiring == {"a": T0 + 22 * SECOND + left}


def test_a_job_promoted_by_hand_has_its_whole_ttl_from_then_on(engine: Engine) -> None:
    engine.pause("g")
    engine.add("a", ttl=5, delay=60)
    engine.pass_time(SECOND)
    engine.promote("a")
    assert engine.look().expiring == {"a": T0 + 6 * SECOND}


@pytest.mark.parametrize("how", ["remove", "fail"])
def test_a_job_that_is_gone_has_no_ttl_to_run_out(engine: Engine, how: str) -> None:
    engine.add("a", ttl=5)
    (engine.remove if how == "remove" else engine.fail)("a")
    assert engine.look().expiring == {}


def test_an_expired_job_can_be_run_again_and_does_not_expire_at_once(engine: Engine) -> None:
    engine.add("a", ttl=5)
    engine.pass_time(5 * SECOND)
    engine.due()
    assert engine.retry("a") == ("failed", True)
    engine.due()
    assert engine.take_one().id == "a"


def test_expiry_is_a_failure_like_any_other_with_no_attempt_used(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=1)
    engine.add("a", "b", ttl=5)
    engine.pass_time(5 * SECOND)
    engine.due()
    assert (engine.counter("failed"), engine.counts()["failed"]) == (2, 1)
    [newest, *_] = engine.run_now(engine.operations.get_failures(10))
    assert (newest.final, newest.attempt) == (True, 0)


def test_expiry_opens_the_place_of_a_head_that_waits_for_its_back_off(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 60 * SECOND)
    engine.add("b", ttl=5)
    engine.pass_time(5 * SECOND)
    engine.due()
    assert expired(engine, "b")
    engine.pass_time(55 * SECOND)
    assert engine.run_all() == ["a"]


@pytest.mark.parametrize("n", [49, 50, 51, 100, 1200])
def test_however_many_expire_at_once_what_is_left_starts_without_a_pause(engine: Engine, n: int) -> None:
    drafts = [draft(engine.options, None, group_id=f"g{i % 400}", job_id=f"x{i}", ttl=1) for i in range(n)]
    for at in range(0, n, commands.CHUNK):
        engine.call(commands.add(drafts[at : at + commands.CHUNK], engine.now))
    engine.add("ok", group="other")
    engine.pass_time(LEASE)
    started: list[str] = []
    for _ in range(n):
        answer = engine.advance(take=1)
        started += [job.id for job in answer.jobs]
        if answer.wait_ms != 0:
            break
    assert started == ["ok"]
    assert engine.counter("failed") == n


def test_a_view_shows_when_a_ttl_ends_until_the_job_has_started(engine: Engine) -> None:
    engine.add("a", ttl=5)
    engine.add("b", ttl=5, delay=2)
    engine.add("c")
    assert [engine.view(job_id).expires for job_id in "abc"] == [T0 + 5 * SECOND, T0 + 7 * SECOND, 0]
    assert engine.take_one().id == "a"
    assert engine.view("a").expires == 0
