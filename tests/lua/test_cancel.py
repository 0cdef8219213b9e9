"""Cancelling: a waiting job is removed at once; a running one is marked, its worker notified, and it ends as failed."""

from __future__ import annotations

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.engine import LEASE, T0, Engine


def mailed(engine: Engine, worker: str = "w") -> bool:
    """Whether the worker had mail, so that its heartbeat would come at once. Deletes the mail."""
    return bool(engine.client.delete(f"{engine.keys.base}mail:{worker}"))


def test_a_waiting_job_is_removed_and_its_group_goes_on(engine: Engine) -> None:
    engine.add("a", "b")
    assert engine.cancel("a") == {"a": "waiting"}
    assert engine.state("a") is None
    assert engine.last_events()[0].kind == "removed"
    assert engine.take_one().id == "b"


def test_a_delayed_job_is_removed(engine: Engine) -> None:
    engine.add("a", delay=60)
    assert engine.cancel("a") == {"a": "delayed"}
    assert engine.counts()["delayed"] == engine.counts()["groups"] == 0


def test_a_job_in_its_backoff_is_removed_and_holds_its_group_no_longer(engine: Engine) -> None:
    engine.add("a", "b")
    engine.retry_run(engine.take_one(), 60_000)
    assert engine.group() == "parked"
    assert engine.cancel("a") == {"a": "waiting"}
    assert engine.group() == "ready"


def test_a_cancelled_running_job_stays_active_and_its_worker_gets_mail_at_once(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    assert engine.heartbeat(taken).cancelled == []
    assert not mailed(engine)
    assert engine.cancel("a") == {"a": "active"}
    assert engine.look().cancels == {"a": taken.fence}
    assert mailed(engine)
    assert engine.heartbeat(taken).cancelled == [taken.fence]
    assert (engine.state("a"), engine.group()) == ("active", "busy")
    assert engine.take(1) == []


def test_every_heartbeat_names_the_cancelled_job_until_its_run_has_ended(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.cancel("a")
    assert [engine.heartbeat(taken).cancelled for _ in range(2)] == [[taken.fence]] * 2


def test_a_heartbeat_names_a_cancelled_job_that_has_not_reached_its_worker_yet(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.cancel("a")
    assert engine.heartbeat().cancelled == [taken.fence]
    assert engine.heartbeat(worker="another").cancelled == []


def test_the_report_of_a_stopped_run_ends_the_job_and_the_mark(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    engine.cancel("a")
    assert engine.fail_run(taken, "cancelled") == [1]
    assert (engine.state("a"), engine.view("a").stored.reason) == ("failed", "cancelled")
    assert engine.look().cancels == {}
    assert engine.take_one().id == "b"


@pytest.mark.parametrize("how", ["complete", "release", "retry", "remove", "fail"])
def test_however_a_run_ends_nothing_remains_of_its_mark(engine: Engine, how: str) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.cancel("a")
    match how:
        case "complete":
            engine.complete(taken)
        case "release":
            engine.release(taken)
        case "retry":
            engine.retry_run(taken, 0)
        case "remove":
            engine.remove("a")
        case "fail":
            engine.fail("a")
    assert engine.look().cancels == {}


def test_a_run_that_was_faster_than_its_cancelling_is_completed(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.cancel("a")
    assert engine.complete(taken, result=b"1") == [1]
    assert engine.state("a") == "completed"


@pytest.mark.parametrize("how", ["release", "retry", "limited"])
def test_a_cancelled_job_never_runs_again_whatever_its_worker_asks_for(engine: Engine, how: str) -> None:
    engine.add("a", max_attempts=5)
    taken = engine.take_one()
    engine.cancel("a")
    match how:
        case "release":
            assert engine.release(taken) == [1]
        case "retry":
            assert engine.retry_run(taken, 0) == [1]
        case "limited":
            assert engine.advance(commands.rate_limited(taken.id, taken.fence, 100)).accepted == [1]
    assert (engine.state("a"), engine.view("a").stored.reason) == ("failed", "cancelled")
    assert engine.group() == "idle"


def test_a_cancelled_job_that_is_retried_by_hand_runs_like_any_other(engine: Engine) -> None:
    engine.add("a")
    engine.heartbeat()
    first = engine.take_one()
    engine.cancel("a")
    engine.fail_run(first, "cancelled")
    engine.retry("a")
    assert engine.heartbeat(engine.take_one()).cancelled == []


@pytest.mark.parametrize("attempts", [1, 5])
def test_a_cancelled_job_of_a_dead_worker_fails_when_its_lease_expires(engine: Engine, attempts: int) -> None:
    engine.add("a", max_attempts=attempts)
    engine.add("b")
    engine.take_one()
    engine.cancel("a")
    engine.pass_time(LEASE - 1)
    assert engine.due().stalled == []
    engine.pass_time(1)
    [stalled] = engine.due().stalled
    assert (stalled.id, stalled.final) == ("a", True)
    assert (engine.state("a"), engine.view("a").stored.reason) == ("failed", "cancelled")
    told = [(e.kind, e.final, e.reason) for e in engine.last_events()]
    assert told == [("stalled", True, None), ("failed", None, "cancelled")]
    assert engine.take_one().id == "b"


def test_a_worker_that_has_never_said_that_it_lives_gets_no_mail(engine: Engine) -> None:
    engine.add("a")
    engine.take_one()
    engine.cancel("a")
    assert not mailed(engine)


def test_mail_goes_to_the_worker_of_the_run_alone_and_leaves_with_it(engine: Engine) -> None:
    engine.add("a")
    engine.heartbeat(worker="idle")
    taken = engine.take_one(worker="busy")
    engine.heartbeat(taken, worker="busy")
    engine.cancel("a")
    assert engine.look().mails == ["busy"]
    engine.call(commands.leave(["busy"], []))
    assert engine.look().mails == []


def test_finished_and_unknown_jobs_are_left_alone(engine: Engine) -> None:
    engine.add("done", group=None)
    engine.complete(engine.take_one())
    engine.add("bad", group=None)
    engine.fail_run(engine.take_one())
    before = engine.heard()
    assert engine.cancel("done", "bad", "nobody") == {"done": "completed", "bad": "failed", "nobody": ""}
    assert (engine.state("done"), engine.state("bad"), engine.look().cancels) == ("completed", "failed", {})
    assert engine.heard() == before


def test_many_are_cancelled_in_one_call_each_once(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(50)))
    taken = engine.take_one()
    found = engine.call(commands.cancel([f"j{i}" for i in range(50)] * 2, engine.now)).found
    assert len(found) == 100
    assert engine.counts() == {"active": 1, "waiting": 0, "delayed": 0, "completed": 0, "failed": 0, "groups": 1}
    assert len(engine.last_events()) == 49
    assert engine.look().cancels == {taken.id: taken.fence}


def test_a_group_is_cancelled_in_bounded_steps_and_others_are_left_alone(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(7)))
    engine.add("other", group="h")
    running = engine.take_one()
    left = []
    while True:
        answer = engine.call(commands.cancel_group("g", 4, engine.now))
        left.append(answer.left)
        if answer.left == 0:
            break
    assert left == [2, 0]
    assert engine.counts()["waiting"] == 1
    assert engine.run_now(engine.operations.cancel_group("g")) == 1
    assert (engine.state(running.id), engine.state("other")) == ("active", "waiting")
    assert engine.look().cancels == {running.id: running.fence}


def test_cancelling_a_group_counts_running_waiting_and_delayed_jobs(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(5)))
    engine.add("late", delay=60)
    engine.add("other", group="h", delay=60)
    engine.take_one()
    assert engine.run(engine.operations.cancel_group("g")) == 7 - 1
    assert engine.counts() == {"active": 1, "waiting": 0, "delayed": 1, "completed": 0, "failed": 0, "groups": 2}
    assert engine.run(engine.operations.cancel_group("nobody's")) == 0


def test_a_large_group_is_cancelled_whole(engine: Engine) -> None:
    for at in range(0, 2500, 500):
        drafts = [draft(engine.options, None, group_id="g", job_id=f"j{at + i}") for i in range(500)]
        engine.call(commands.add(drafts, T0))
    assert engine.run(engine.operations.cancel_group("g")) == 2500
    assert engine.counts()["groups"] == 0


def test_a_cancelled_job_with_a_ttl_leaves_nothing(engine: Engine) -> None:
    engine.add("a", ttl=60)
    engine.cancel("a")
    assert engine.look().expiring == {}
