"""add.lua: the stored record, the place where the job waits, and a resent add, which changes nothing."""

from __future__ import annotations

import pytest

from groupmq.core import record
from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine


def test_a_job_is_stored_with_all_its_options(engine: Engine) -> None:
    engine.add("a", data={"x": 1}, priority=7, order_ms=-5, max_attempts=9, timeout=2, on_retry="yield")
    stored = record.unpack(engine.view("a").record)
    assert (stored.priority, stored.order_ms, stored.max_attempts, stored.group_id) == (7, -5, 9, "g")
    assert (stored.created_ms, stored.arrival, stored.order_given, stored.data) == (T0, 1, True, b'{"x":1}')
    assert stored.options["t"] == 2000


def test_a_job_without_an_order_is_ordered_by_the_servers_time(engine: Engine) -> None:
    added = engine.add("a")
    assert (added.now, added.order_ms) == (T0, T0)
    assert record.unpack(engine.view("a").record).order_ms == T0


def test_a_group_with_a_waiting_job_is_ready(engine: Engine) -> None:
    assert engine.group() == "idle"
    engine.add("a")
    assert engine.group() == "ready"
    assert engine.counts() == {"active": 0, "waiting": 1, "delayed": 0, "completed": 0, "failed": 0, "groups": 1}


def test_a_job_without_a_group_belongs_to_none(engine: Engine) -> None:
    engine.add("a", group=None)
    assert record.unpack(engine.view("a").record).group_id is None
    assert engine.counts()["groups"] == 0
    assert engine.state("a") == "waiting"


def test_jobs_without_a_group_never_wait_for_each_other(engine: Engine) -> None:
    engine.add("a", "b", "c", group=None)
    assert [job.id for job in engine.take(5)] == ["a", "b", "c"]


def test_an_existing_id_adds_nothing_and_the_first_data_wins(engine: Engine) -> None:
    engine.add("a", data="first")
    before = engine.digest()
    assert engine.add("a", data="second", group="other", priority=3).duplicates == [0]
    assert record.unpack(engine.view("a").record).data == b'"first"'
    after = engine.digest()
    assert {key for key in after if after[key] != before.get(key)} <= {engine.keys.meta.encode()}


@pytest.mark.parametrize("state", ["waiting", "delayed", "active", "completed", "failed"])
def test_an_id_is_taken_in_whatever_state_its_job_is(engine: Engine, state: str) -> None:
    engine.add("a", delay=60 if state == "delayed" else None)
    if state in ("active", "completed", "failed"):
        taken = engine.take_one()
        if state == "completed":
            engine.complete(taken)
        elif state == "failed":
            engine.fail_run(taken)
    assert engine.add("a").duplicates == [0]
    assert engine.state("a") == state


def test_an_id_is_free_again_once_its_job_is_gone(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=0)
    for _ in range(3):
        assert engine.add("a").duplicates == []
        assert engine.run_all() == ["a"]
    engine.add("a")
    engine.remove("a")
    assert engine.add("a").duplicates == []


def test_the_same_id_twice_in_one_call_is_added_once(engine: Engine) -> None:
    assert engine.add("a", "b", "a", "b", "c").duplicates == [2, 3]
    assert engine.run_all() == ["a", "b", "c"]


def test_sending_an_add_again_changes_no_job(engine: Engine) -> None:
    call = commands.add([draft(engine.options, i, group_id="g", job_id=str(i)) for i in range(5)], T0)
    assert engine.call(call).duplicates == []
    assert engine.call(call).duplicates == [0, 1, 2, 3, 4]
    assert engine.run_all() == ["0", "1", "2", "3", "4"]


def test_a_thousand_jobs_of_as_many_groups_fit_in_one_call(engine: Engine) -> None:
    drafts = [draft(engine.options, i, group_id=f"g{i}", job_id=str(i)) for i in range(1000)]
    assert engine.call(commands.add(drafts, T0)).duplicates == []
    assert engine.counts()["groups"] == 1000
    assert [job.id for job in engine.take(1000)] == [str(i) for i in range(1000)]


def test_an_add_wakes_a_worker_only_if_something_may_start(engine: Engine) -> None:
    engine.add("a")
    assert engine.woken()
    engine.take()
    engine.woken()
    engine.add("b")
    assert not engine.woken()


def test_an_add_to_a_paused_queue_or_group_wakes_nobody(engine: Engine) -> None:
    engine.pause("g")
    engine.add("a")
    assert not engine.woken()
    engine.pause()
    engine.add("b", group="other")
    assert not engine.woken()


def test_a_delayed_add_wakes_a_worker_if_it_is_the_next_thing_due(engine: Engine) -> None:
    engine.add("a", delay=60)
    assert engine.woken()
    engine.add("b", delay=90)
    assert not engine.woken()
    engine.add("c", delay=30)
    assert engine.woken()


@pytest.mark.parametrize("run_at", [0, (T0 - SECOND) / 1000, T0 / 1000])
def test_a_time_that_has_passed_is_now(engine: Engine, run_at: float) -> None:
    engine.add("a", run_at=run_at)
    assert engine.state("a") == "waiting"


def test_an_empty_payload_is_a_payload(engine: Engine) -> None:
    engine.add("a", data="")
    assert record.unpack(engine.take_one().record).data == b'""'
