"""Reports of ended runs: completed, retried, failed, given back. A report with a stale fence changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from groupmq.protocol import commands
from groupmq.protocol.commands import Outcome, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine

OUTCOMES: dict[str, Callable[[str, int], Outcome]] = {
    "complete": lambda job_id, fence: commands.completed(job_id, fence, b"1"),
    "retry": lambda job_id, fence: commands.retried(job_id, fence, 500, False, "why", ""),
    "yield": lambda job_id, fence: commands.retried(job_id, fence, 500, True, "why", ""),
    "fail": lambda job_id, fence: commands.failed(job_id, fence, "why", ""),
    "release": commands.released,
}


def test_a_completed_job_keeps_its_result_and_its_times(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one(worker="w1")
    engine.pass_time(SECOND)
    assert engine.complete(taken, result=b'"done"') == [1]
    view = engine.view("a")
    assert (view.state, view.result) == ("completed", b'"done"')
    stored = view.stored
    assert (stored.attempts, stored.started, stored.finished, stored.worker) == (1, T0, T0 + SECOND, "w1")
    assert engine.counter("completed") == 1


def test_a_result_may_be_empty_or_absent(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    a, b = engine.take(2)
    engine.advance(commands.completed("a", a.fence, b""), commands.completed("b", b.fence, None))
    assert (engine.view("a").result, engine.view("b").result) == (b"", None)


def test_results_of_a_batch_are_not_mixed_up(engine: Engine) -> None:
    ids = [f"j{i}" for i in range(20)]
    engine.add(*ids, group=None)
    taken = engine.take(20)
    outcomes = [
        commands.failed(t.id, t.fence, "x", "")
        if i % 3 == 0
        else commands.completed(t.id, t.fence - (i % 3 == 1), t.id.encode() * i)
        for i, t in enumerate(taken)
    ]
    assert engine.advance(*outcomes).accepted == [1 if i % 3 != 1 else 0 for i in range(20)]
    for i, job_id in enumerate(ids):
        assert engine.view(job_id).result == (job_id.encode() * i if i % 3 == 2 else None)


def test_a_failed_attempt_holds_its_group_through_its_back_off(engine: Engine) -> None:
    engine.add("a", "b")
    assert engine.retry_run(engine.take_one(), 500) == [1]
    assert (engine.state("a"), engine.group(), engine.take(5)) == ("waiting", "parked", [])
    engine.pass_time(499)
    assert engine.take(5) == []
    engine.pass_time(1)
    again = engine.take_one()
    assert (again.id, again.stored.attempts, again.stored.reason) == ("a", 1, "boom")
    engine.complete(again)
    assert engine.run_all() == ["b"]


def test_the_answer_to_a_retry_says_when_its_back_off_ends(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    answer = engine.advance(commands.retried("a", taken.fence, 500, False, "x", ""), take=1)
    assert (answer.jobs, answer.wait_ms) == ([], 500)


def test_a_retry_without_delay_is_next_again(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    answer = engine.advance(commands.retried("a", taken.fence, 0, False, "x", ""), take=1)
    assert [job.id for job in answer.jobs] == ["a"]


def test_a_more_urgent_job_is_not_held_by_somebody_elses_back_off(engine: Engine) -> None:
    engine.add("a", "b", priority=5)
    engine.retry_run(engine.take_one(), 500)
    engine.add("urgent", priority=0)
    assert engine.group() == "ready"
    assert engine.run_all() == ["urgent"]
    assert engine.group() == "parked"
    engine.pass_time(500)
    assert engine.run_all() == ["a", "b"]


def test_a_retry_that_yields_lets_its_group_go_on_and_comes_back_to_its_position(engine: Engine) -> None:
    engine.add("a", "b", "c")
    assert engine.retry_run(engine.take_one(), 500, yields=True) == [1]
    assert engine.state("a") == "delayed"
    b = engine.take_one()
    assert b.id == "b"
    engine.pass_time(500)
    engine.complete(b)
    assert engine.run_all() == ["a", "c"]


def test_a_retry_without_a_group_waits_by_itself(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    a = engine.take_one()
    engine.retry_run(a, 500)
    assert engine.state("a") == "delayed"
    assert engine.run_all() == ["b"]
    engine.pass_time(500)
    assert engine.run_all() == ["a"]


def test_with_room_for_more_a_held_head_still_holds_its_group(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.add("a", "b", "c")
    a, b = engine.take(2)
    engine.retry_run(a, 500)
    assert engine.take(5) == []
    engine.complete(b)
    assert engine.take(5) == []
    engine.pass_time(500)
    assert [job.id for job in engine.take(5)] == ["a", "c"]


def test_two_jobs_of_a_group_may_be_in_their_back_off(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.add("a", "b", "c")
    a, b = engine.take(2)
    engine.retry_run(a, 300)
    engine.retry_run(b, 600)
    engine.pass_time(300)
    assert [job.id for job in engine.take(5)] == ["a"]
    engine.pass_time(300)
    assert [job.id for job in engine.take(5)] == ["b"]


def test_a_failed_job_ends_and_its_group_goes_on(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one(worker="w1")
    engine.fail_run(taken, "broken")
    view = engine.view("a")
    assert (view.state, view.stored.reason, view.stored.stack, view.stored.attempts) == ("failed", "broken", "stack", 1)
    assert engine.counter("failed") == 1
    assert engine.run_all() == ["b"]


def test_each_failed_attempt_leaves_one_record(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 0, reason="first")
    engine.fail_run(engine.take_one(worker="w2"), "second")
    last, first = engine.call(commands.stats(10)).failures
    assert first == ["a", 1, "first", "stack", T0, False, "w", "", "g"]
    assert last == ["a", 2, "second", "stack", T0, True, "w2", "", "g"]
    assert engine.counter("retried") == 1


def test_a_job_given_back_uses_no_attempt_and_keeps_its_position(engine: Engine) -> None:
    engine.add("a", "b")
    assert engine.release(engine.take_one()) == [1]
    assert engine.view("a").stored == commands.FRESH
    again = engine.take_one()
    assert (again.id, again.stored.attempts) == ("a", 0)


def test_a_job_given_back_keeps_the_attempts_it_had(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 0)
    engine.release(engine.take_one())
    assert engine.take_one().stored.attempts == 1


def test_given_back_and_taken_in_one_call_it_has_a_new_fence(engine: Engine) -> None:
    engine.add("a", "b")
    first = engine.take_one()
    answer = engine.advance(commands.released("a", first.fence), take=5)
    assert [job.id for job in answer.jobs] == ["a"]
    assert answer.jobs[0].fence > first.fence
    assert engine.violations() == []


def superseded(engine: Engine, how: str) -> Taken:
    """A run whose lease was lost in this way, while another worker runs a job of its group."""
    engine.add("a", "b")
    old = engine.take_one()
    if how == "expired":
        engine.stall()
        assert engine.take_one(worker="other").id == "a"
    elif how == "ended":
        engine.complete(old)
        engine.take_one(worker="other")
    elif how == "failed by hand":
        engine.fail("a")
        engine.end_run(old)
        engine.take_one(worker="other")
    elif how == "removed":
        engine.remove("a")
        engine.end_run(old)
        engine.take_one(worker="other")
    elif how == "removed and added again":
        engine.remove("a")
        engine.end_run(old)
        engine.complete(engine.take_one(worker="other"))
        engine.add("a")
        engine.take_one(worker="other")
    return old


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("how", ["expired", "ended", "failed by hand", "removed", "removed and added again"])
def test_an_outcome_with_a_stale_fence_changes_nothing_and_is_refused(engine: Engine, how: str, outcome: str) -> None:
    old = superseded(engine, how)
    before, told = engine.digest(), engine.meta()
    answer = engine.advance(OUTCOMES[outcome]("a", old.fence), requester="old:0")
    assert answer.accepted == [0]
    after = engine.digest()
    changed = {key.decode() for key in after.keys() | before.keys() if after.get(key) != before.get(key)}
    assert changed <= {engine.key("requesters"), engine.key("meta"), engine.key("series")}
    assert engine.meta() == told | {"lease_lost": "1"}
    assert engine.call(commands.beat("w", None, LEASE, [("a", old.fence)], engine.now)).lost == ["a"]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("fence", [0, 1, 2**51])
def test_a_fence_that_was_never_given_changes_nothing(engine: Engine, outcome: str, fence: int) -> None:
    engine.add("a")
    engine.take_one()
    assert engine.advance(OUTCOMES[outcome]("a", fence), OUTCOMES[outcome]("ghost", fence)).accepted == [0, 0]
    assert engine.state("a") == "active"


def test_a_refused_outcome_does_not_harm_its_neighbours(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    engine.add("c", group="c")
    a, b, c = engine.take(3)
    outcomes = (commands.completed("a", a.fence, b"1"), commands.failed("b", b.fence - 1, "x", ""))
    answer = engine.advance(*outcomes, commands.retried("c", c.fence, 0, False, "x", ""))
    assert answer.accepted == [1, 0, 1]
    assert [engine.state(job_id) for job_id in "abc"] == ["completed", "active", "waiting"]


def test_of_two_outcomes_for_one_run_the_first_counts(engine: Engine) -> None:
    engine.add("a")
    fence = engine.take_one().fence
    assert engine.advance(commands.completed("a", fence, b"1"), commands.failed("a", fence, "x", "")).accepted == [1, 0]
    assert engine.state("a") == "completed"


@pytest.mark.parametrize(
    ("outcome", "state", "attempts"),
    [("complete", "completed", 1), ("retry", "waiting", 1), ("yield", "delayed", 1), ("fail", "failed", 1)],
)
def test_a_report_in_the_moment_of_expiry_counts_and_is_no_stall(
    engine: Engine, outcome: str, state: str, attempts: int
) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    engine.pass_time(LEASE + 5)
    answer = engine.advance(OUTCOMES[outcome]("a", taken.fence))
    assert (answer.accepted, answer.stalled) == ([1], [])
    view = engine.view("a")
    assert (view.state, view.stored.attempts, view.stored.stalls) == (state, attempts, 0)
    assert engine.violations() == []


def test_given_back_in_the_moment_of_expiry_it_has_not_stalled(engine: Engine) -> None:
    engine.add("a")
    taken = engine.take_one()
    engine.pass_time(LEASE)
    answer = engine.advance(commands.released("a", taken.fence), take=1)
    assert (answer.accepted, answer.stalled) == ([1], [])
    assert [(job.id, job.stored.attempts) for job in answer.jobs] == [("a", 0)]


def test_reported_too_late_by_one_and_in_time_by_another_in_one_call(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    a, b = engine.take(2)
    engine.pass_time(LEASE)
    answer = engine.advance(commands.completed("a", a.fence, None), take=5)
    assert (answer.accepted, [one.id for one in answer.stalled]) == ([1], ["b"])
    assert [(job.id, job.fence > b.fence) for job in answer.jobs] == [("b", True)]


def test_a_request_sent_again_is_answered_the_same_and_does_nothing_twice(engine: Engine) -> None:
    engine.add("a", "b", "c")
    taken = engine.take_one()
    outcome = commands.completed("a", taken.fence, b"1")
    first = engine.advance(outcome, take=1, request=77)
    before = engine.digest()
    for _ in range(2):
        again = engine.advance(outcome, take=1, request=77)
        assert (again.accepted, again.jobs, again.stalled) == (first.accepted, first.jobs, [])
        assert engine.digest() == before
    assert engine.counter("completed") == 1


def test_a_request_sent_again_leaves_out_what_was_lost_meanwhile(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    first = engine.advance(take=2, request=7)
    engine.remove("a")
    assert [job.id for job in engine.advance(take=2, request=7).jobs] == ["b"]
    assert [job.id for job in first.jobs] == ["a", "b"]


def test_a_request_sent_again_says_when_its_jobs_were_taken(engine: Engine) -> None:
    """Found by chaos: a handler saw a start time that was seconds later than its lease."""
    engine.add("a")
    first = engine.advance(take=1, request=7)
    engine.pass_time(2000)
    assert engine.advance(take=1, request=7).now == first.now


def test_a_worker_that_was_silent_for_a_minute_gets_the_same_answer(engine: Engine) -> None:
    info = {"name": "w", "host": "h", "pid": 1, "concurrency": 1, "current_jobs": 1, "heartbeat": 1.0, "version": "0"}
    engine.add("a")
    taken = engine.take_one()
    engine.call(commands.beat("w", json.dumps(info), 3000, [("a", taken.fence)], engine.now))
    outcome = commands.completed("a", taken.fence, b"1")
    first = engine.advance(outcome, request=77)  # the reply is lost, and the process is frozen
    engine.pass_time(60_000)
    assert engine.forget_gone_workers() == []  # the clean-up of another worker
    assert engine.advance(outcome, request=77).accepted == first.accepted == [1]
    engine.pass_time(10_000)
    assert engine.forget_gone_workers() == ["w"]


def test_requests_of_different_requesters_are_different_requests(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    one = engine.advance(take=1, requester="w:0", request=1)
    two = engine.advance(take=1, requester="w:1", request=1)
    assert [job.id for job in one.jobs + two.jobs] == ["a", "b"]
    assert engine.advance(take=1, requester="w:0", request=1).jobs == one.jobs
