"""An idle worker offers a slot, and the next add of a single job grants the job to it at once."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Granted
from tests.lua.engine import LEASE, T0, Engine


@pytest.fixture
def granted(engine: Engine) -> Granted:
    """A job that was granted to worker `w` and has been popped."""
    engine.offer_slot()
    engine.add("a")
    found = engine.pop_grant()
    assert found is not None
    return found


def test_a_single_job_is_granted_to_the_worker_that_offers_a_slot(engine: Engine) -> None:
    engine.heartbeat()
    engine.offer_slot(lease_ms=5_000)
    engine.woken()
    engine.add("a", data={"n": 1})
    assert not engine.woken(), "the job is granted, so no worker has to ask for it"
    found = engine.pop_grant()
    assert found is not None
    assert (found.now, found.lease_ms, found.job.id) == (T0, 5_000, "a")
    view = engine.view("a")
    assert (view.state, view.fence, view.worker) == ("active", found.job.fence, "w")
    assert found.job.record == view.record
    assert engine.heard()[-2:] == [("added", "a"), ("active", "a")]
    assert engine.group() == "idle"
    assert engine.complete(found.job) == [1]
    assert engine.state("a") == "completed"


def test_an_offer_is_used_once(engine: Engine) -> None:
    engine.offer_slot()
    engine.add("a", group="g1")
    engine.add("b", group="g2")
    assert engine.state("b") == "waiting"
    assert engine.woken()


@pytest.mark.parametrize("later", ["its worker calls", "it ends"])
def test_the_next_offer_is_made_when_the_worker_is_known_to_have_the_job(
    engine: Engine, granted: Granted, later: str
) -> None:
    engine.offer_slot("other")
    assert engine.look().offer is None
    if later == "it ends":
        engine.complete(granted.job)
        engine.offer_slot("other")
        assert engine.look().offer == ("other", LEASE)
    else:
        engine.offer_slot(received=granted.job.fence)
        assert engine.look().offer == ("w", LEASE)


@pytest.mark.parametrize(
    "fields",
    [{"delay": 1}, {"ttl": 1}, {"data": "x" * 10_000}],
    ids=["delayed", "ttl", "large"],
)
def test_jobs_that_need_more_than_a_slot_are_not_granted(engine: Engine, fields: dict[str, Any]) -> None:
    engine.offer_slot()
    engine.add("a", **fields)
    assert engine.look().grant is None


def test_of_several_jobs_none_is_granted(engine: Engine) -> None:
    engine.offer_slot()
    engine.add("a", "b")
    assert engine.counts()["waiting"] == 2


def test_nothing_is_granted_in_a_paused_queue_or_group(engine: Engine) -> None:
    engine.offer_slot()
    engine.pause("g")
    engine.add("a")
    assert engine.state("a") == "waiting"
    engine.offer_slot()
    engine.pause()
    engine.add("b", group="h")
    assert engine.state("b") == "waiting"


def test_a_job_is_not_granted_before_one_of_its_group_that_is_due(engine: Engine) -> None:
    engine.add("first", delay=1)
    engine.offer_slot()
    engine.pass_time(1_000)
    engine.add("second")
    assert engine.state("second") == "waiting"
    assert engine.run_all() == ["first", "second"]


def test_an_offer_ends_when_another_job_becomes_ready(engine: Engine) -> None:
    engine.offer_slot()
    engine.add("a", "b", group="g1")
    engine.add("c", group="g2")
    assert engine.state("c") == "waiting", "jobs that were added earlier start first"
    assert engine.run_all() == ["a", "b", "c"]


def test_a_worker_that_takes_nothing_new_withdraws_its_offer(engine: Engine) -> None:
    engine.offer_slot()
    engine.advance(offers=False)
    engine.add("a")
    assert engine.state("a") == "waiting"


@pytest.mark.parametrize("read", [True, False], ids=["reply lost", "not popped"])
def test_a_grant_that_did_not_arrive_is_in_the_answer_to_the_next_call(engine: Engine, read: bool) -> None:
    engine.offer_slot()
    engine.add("a")
    found = engine.pop_grant() if read else None
    engine.pass_time(1_000)
    answer = engine.advance(take=1, confirms=True)
    [job] = answer.jobs
    assert (job.id, answer.again, answer.now, answer.wait_ms) == ("a", True, T0, 0)
    assert found is None or found.job.fence == job.fence
    assert engine.pop_grant() is None, "the grant is delivered only once"
    assert engine.look().active == {"a": T0 + 1_000 + LEASE}, "the worker counts its lease from this call"
    assert engine.complete(job) == [1]


def test_the_answer_with_a_grant_is_repeated_like_any_other(engine: Engine, granted: Granted) -> None:
    first = engine.advance(take=1, confirms=True, request=100)
    again = engine.advance(take=1, confirms=True, request=100)
    assert (again.jobs, again.again) == (first.jobs, True)
    assert first.jobs[0].fence == granted.job.fence


def test_a_grant_that_has_arrived_is_not_repeated(engine: Engine, granted: Granted) -> None:
    answer = engine.advance(take=1, confirms=True, received=granted.job.fence)
    assert (answer.jobs, answer.again) == ([], False)


def test_a_call_that_only_reports_leaves_a_grant_on_its_way(engine: Engine) -> None:
    engine.offer_slot()
    engine.add("a")
    assert engine.advance().jobs == []
    assert engine.pop_grant() is not None


def test_another_worker_gets_a_job_that_nobody_has_popped(engine: Engine) -> None:
    """The worker that made the offer was killed."""
    engine.offer_slot("killed")
    engine.add("a")
    answer = engine.advance(take=1, worker="other", requester="other:0")
    assert (answer.jobs, answer.wait_ms) == ([], 100), "the worker may not wait for it yet"
    engine.pass_time(100)
    answer = engine.advance(take=1, worker="other", requester="other:0")
    assert (answer.jobs, answer.wait_ms) == ([], 0), "it must ask again at once"
    [job] = engine.take(1, worker="other", requester="other:0")
    assert (job.id, job.stored.attempts) == ("a", 0)
    assert engine.pop_grant("killed") is None


def test_another_worker_does_not_get_a_job_that_was_popped(engine: Engine, granted: Granted) -> None:
    assert engine.advance(take=1, worker="other", requester="other:0").jobs == []
    assert engine.view("a").fence == granted.job.fence


@pytest.mark.parametrize("popped", [True, False])
def test_the_lease_of_a_grant_expires(engine: Engine, popped: bool) -> None:
    """A job that no worker has popped has not run, so its expired lease uses no attempt."""
    engine.offer_slot()
    engine.add("a")
    if popped:
        engine.pop_grant()
    assert [one.id for one in engine.stall()] == (["a"] if popped else [])
    assert engine.view("a").stored.attempts == int(popped)
    assert engine.pop_grant() is None
    assert engine.take_one().id == "a"


def test_a_worker_that_leaves_gives_back_what_has_not_arrived(engine: Engine, granted: Granted) -> None:
    engine.call(commands.leave(["w"], ["w:0"], 0, engine.now))
    assert (engine.state("a"), engine.view("a").stored.attempts) == ("waiting", 0)


def test_a_worker_that_leaves_keeps_what_has_arrived(engine: Engine, granted: Granted) -> None:
    engine.call(commands.leave(["w"], ["w:0"], granted.job.fence, engine.now))
    assert engine.state("a") == "active"


def test_a_worker_that_others_forget_gives_back_only_what_nobody_popped(engine: Engine) -> None:
    engine.offer_slot()
    engine.add("a")
    engine.call(commands.leave(["w"], ["w:0"], now=engine.now))
    assert engine.state("a") == "waiting"
    engine.remove("a")
    engine.offer_slot("v")
    engine.add("b")
    engine.pop_grant("v")
    engine.call(commands.leave(["v"], ["v:0"], now=engine.now))
    assert engine.state("b") == "active", "the worker may have begun it"


def test_a_worker_whose_loop_is_blocked_gives_back_what_the_loop_has_not_received(
    engine: Engine, granted: Granted
) -> None:
    beat = engine.call(commands.beat("w", None, LEASE, [], engine.now, refuses=0))
    assert beat.void >= granted.job.fence
    assert engine.state("a") == "waiting"
    engine.complete(engine.take_one())
    engine.offer_slot()
    assert engine.call(commands.beat("w", None, LEASE, [], engine.now, refuses=beat.void)).void
    engine.add("b")
    assert engine.state("b") == "waiting", "a worker whose loop is blocked offers no slot"


def test_a_worker_whose_loop_is_blocked_keeps_what_the_loop_has_received(engine: Engine, granted: Granted) -> None:
    engine.call(commands.beat("w", None, LEASE, [], engine.now, refuses=granted.job.fence))
    assert engine.state("a") == "active"


def test_the_supervisor_of_a_dead_process_takes_back_what_nobody_popped_without_an_attempt(engine: Engine) -> None:
    engine.offer_slot()
    engine.add("a")
    fence = engine.view("a").fence
    assert engine.call(commands.take_back("w", [("a", fence)], engine.policy, engine.now)) == []
    assert (engine.state("a"), engine.view("a").stored.attempts) == ("waiting", 0)


def test_an_obliterated_queue_leaves_no_grant(engine: Engine) -> None:
    engine.heartbeat()
    engine.offer_slot()
    engine.add("a")
    engine.run_now(engine.operations.obliterate())
    assert not engine.client.keys(engine.keys.base + "*")


def test_an_offer_ends_when_the_settings_change(engine: Engine) -> None:
    """Otherwise the job would be leased for the time of the old settings."""
    engine.offer_slot()
    engine.connection.reconfigure({"job_timeout": 1})
    engine.add("a")
    assert engine.state("a") == "waiting"


@pytest.mark.parametrize("damaged", [b"o", b"o123456", b"g", b"g1234567\xff\xffw", b"g1234567\x00\x01a", b"x", b"\xff"])
def test_a_damaged_offer_counts_as_none(engine: Engine, damaged: bytes) -> None:
    engine.add("a")
    engine.client.hset(engine.keys.meta, "offer", damaged)
    engine.complete(engine.take_one())
    engine.add("b")
    assert engine.state("b") == "waiting"
    assert engine.run_all() == ["b"]
    engine.offer_slot()
    engine.add("c")
    assert engine.state("c") == "active"
