"""Batches: jobs of a group, or without one, that start at once in one call of a handler."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.limits import RateLimit
from groupmq.core.ordering import Ordering
from groupmq.protocol import commands
from groupmq.protocol.commands import Advanced, Policy, Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, T0, Engine

pytestmark = pytest.mark.usefixtures("nothing_to_mend")


def batches(engine: Engine, take: int = 1, size: int = 3, wait: int = 0, **how: Any) -> Advanced:
    return engine.advance(take=take, row=size, batch_wait_ms=wait, **how)


def ids(answer: Advanced) -> list[list[str]]:
    """The ids of each batch."""
    found, at = [], 0
    for length in answer.rows or [1] * len(answer.jobs):
        found.append([job.id for job in answer.jobs[at : at + length]])
        at += length
    return found


def other(engine: Engine, **how: Any) -> Advanced:
    """Let another worker, which runs jobs one by one, ask for jobs."""
    return engine.advance(take=5, worker="other", requester="other:0", **how)


def test_a_batch_is_the_next_jobs_of_a_group_and_all_of_them_run(engine: Engine) -> None:
    engine.add(*"abcde")
    answer = batches(engine)
    assert ids(answer) == [["a", "b", "c"]]
    assert engine.look().ahead == set()
    assert engine.counts()["active"] == 3
    assert [(event.kind, event.job_id) for event in engine.last_events()] == [("active", job) for job in "abc"]
    fences = [job.fence for job in answer.jobs]
    assert fences == list(range(fences[0], fences[0] + 3))


def test_the_group_is_busy_until_the_last_of_a_batch_has_ended(engine: Engine) -> None:
    engine.add(*"abcd")
    for job in batches(engine).jobs:
        assert (engine.group(), other(engine).jobs) == ("busy", [])
        engine.complete(job)
    assert [job.id for job in other(engine).jobs] == ["d"]


def test_each_slot_gets_a_batch_of_another_group(engine: Engine) -> None:
    engine.add("a1", "a2", group="a")
    engine.add("b1", "b2", "b3", "b4", group="b")
    assert ids(batches(engine, take=3)) == [["a1", "a2"], ["b1", "b2", "b3"]]


def test_jobs_without_a_group_make_batches_one_in_each_call(engine: Engine) -> None:
    engine.add("g1", group="g")
    engine.add("u1", "u2", "u3", "u4", "u5", group=None)
    first = batches(engine, take=4)
    assert (ids(first), first.wait_ms) == ([["g1"], ["u1", "u2", "u3"]], 0)
    second = batches(engine, take=4)
    assert ids(second) == [["u4", "u5"]]
    assert ids(batches(engine, take=4)) == []
    assert engine.complete(*first.jobs, *second.jobs) == [1] * 6


def test_jobs_without_a_group_that_are_left_can_be_taken_by_others(engine: Engine) -> None:
    engine.add("u1", "u2", "u3", "u4", group=None)
    engine.woken()
    batches(engine)
    assert engine.woken()
    assert [job.id for job in other(engine).jobs] == ["u4"]


def test_a_job_that_ran_before_is_a_batch_of_its_own(engine: Engine) -> None:
    engine.add(*"abcd")
    first, *rest = batches(engine).jobs
    engine.advance(
        commands.retried(first.id, first.fence, 0, False, "boom", ""),
        *(commands.released(job.id, job.fence) for job in rest),
    )
    answer = batches(engine)
    assert ids(answer) == [["a"]]
    engine.complete(*answer.jobs)
    assert ids(batches(engine)) == [["b", "c", "d"]]


def test_behind_a_prefix_the_rest_keeps_its_place_and_the_failed_one_holds_the_group(engine: Engine) -> None:
    engine.add(*"abcde")
    a, b, c = batches(engine).jobs
    engine.advance(
        commands.completed(a.id, a.fence, b"1"),
        commands.retried(b.id, b.fence, 5000, False, "boom", ""),
        commands.released(c.id, c.fence),
    )
    assert (engine.group(), engine.state("a")) == ("parked", "completed")
    engine.pass_time(5000)
    answer = batches(engine)
    assert (ids(answer), answer.jobs[0].stored.attempts) == ([["b"]], 1)
    engine.complete(*answer.jobs)
    last = batches(engine)
    assert (ids(last), [job.stored.attempts for job in last.jobs]) == ([["c", "d", "e"]], [0, 0, 0])


def test_a_job_that_may_run_once_is_alone(engine: Engine) -> None:
    engine.add("a", "b")
    engine.add("c", max_attempts=1)
    engine.add("d", "e")
    found = []
    while jobs := (answer := batches(engine, size=10)).jobs:
        found += ids(answer)
        engine.complete(*jobs)
    assert found == [["a", "b"], ["c"], ["d", "e"]]


def test_jobs_with_a_ttl_start_with_the_others_and_no_longer_expire(engine: Engine) -> None:
    engine.add("a")
    engine.add("b", "c", ttl=5)
    answer = batches(engine)
    assert ids(answer) == [["a", "b", "c"]]
    engine.pass_time(6000)
    engine.due()
    assert engine.complete(*answer.jobs) == [1, 1, 1]


def test_when_a_worker_dies_each_job_of_its_batch_is_charged_and_then_alone(engine: Engine) -> None:
    engine.add(*"abc")
    batches(engine)
    assert sorted(job.id for job in engine.stall()) == ["a", "b", "c"]
    found = []
    while jobs := (answer := batches(engine)).jobs:
        found += ids(answer)
        assert jobs[0].stored.attempts == 1
        engine.complete(*jobs)
    assert found == [["a"], ["b"], ["c"]]


def test_with_max_stalled_zero_a_dead_worker_fails_its_whole_batch(engine: Engine) -> None:
    never_again = Policy(3, 0, engine.options.keep)
    engine.add(*"abc")
    assert ids(batches(engine, policy=never_again)) == [["a", "b", "c"]]
    assert [job.final for job in engine.stall(policy=never_again)] == [True] * 3


def test_a_request_that_is_sent_again_gets_the_same_batches(engine: Engine) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", "b2", group="b")
    first = batches(engine, take=2, request=7)
    again = batches(engine, take=2, request=7)
    assert ids(again) == ids(first) == [["a1", "a2", "a3"], ["b1", "b2"]]
    assert [job.fence for job in again.jobs] == [job.fence for job in first.jobs]


@pytest.mark.parametrize(("gone", "left"), [("a1", ["a2", "a3"]), ("a2", ["a1", "a3"]), ("a3", ["a1", "a2"])])
def test_a_job_that_is_gone_meanwhile_is_missing_in_its_batch_and_moves_no_other(
    engine: Engine, gone: str, left: list[str]
) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", "b2", group="b")
    by_id = {job.id: job for job in batches(engine, take=2, request=7).jobs}
    engine.advance(commands.completed(gone, by_id[gone].fence, None), requester="w:1", request=1)
    assert ids(batches(engine, take=2, request=7)) == [left, ["b1", "b2"]]


def test_round_robin_gives_each_group_one_batch_a_round(make_engine: MakeEngine) -> None:
    engine = make_engine(fairness="round-robin")
    engine.add("a1", "a2", "a3", "a4", group="a")
    engine.add("b1", "b2", "b3", group="b")
    found = []
    while jobs := (answer := batches(engine, size=2)).jobs:
        found += ids(answer)
        engine.complete(*jobs)
    assert found == [["a1", "a2"], ["b1", "b2"], ["a3", "a4"], ["b3"]]


def test_a_group_with_a_rate_or_several_slots_has_batches_of_one(engine: Engine) -> None:
    engine.add("a1", "a2", group="a")
    engine.add("b1", "b2", group="b")
    engine.rate("a", RateLimit(5, 1))
    engine.limit("b", 2)
    assert ids(batches(engine, take=5)) == [["a1"], ["b1"], ["b2"]]


def test_the_rate_of_a_queue_counts_every_job_of_a_batch(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(2, 1))
    engine.add(*"abcde")
    answer = batches(engine)
    assert ids(answer) == [["a", "b"]]
    engine.complete(*answer.jobs)
    assert ids(batches(engine)) == []
    engine.pass_time(1001)
    assert ids(batches(engine)) == [["c", "d"]]


def test_of_event_time_only_jobs_whose_window_has_passed_are_in_a_batch(make_engine: MakeEngine) -> None:
    engine = make_engine(ordering=Ordering.event_time(1))
    for name, order in (("a", T0), ("b", T0 + 100), ("c", T0 + 5000)):
        engine.add(name, order_ms=order)
    engine.pass_time(1500)
    assert ids(batches(engine)) == [["a", "b"]]


def test_after_an_arrival_window_all_that_has_come_is_one_batch(make_engine: MakeEngine) -> None:
    engine = make_engine(ordering=Ordering.arrival(1))
    engine.add(*"abc")
    assert ids(batches(engine)) == []
    engine.pass_time(1000)
    assert ids(batches(engine)) == [["a", "b", "c"]]


def test_in_an_exclusive_queue_batches_have_one_job(make_engine: MakeEngine) -> None:
    engine = make_engine(exclusive=True)
    engine.add(*"abc")
    assert ids(batches(engine)) == [["a"]]


# Waiting for a full batch


def test_a_group_waits_until_its_batch_is_full(engine: Engine) -> None:
    engine.add("a", "b")
    answer = batches(engine, wait=200)
    assert (answer.jobs, answer.wait_ms) == ([], 200)
    assert engine.group() == "ready"
    engine.woken()
    engine.add("c")
    assert engine.woken()
    assert ids(batches(engine, wait=200)) == [["a", "b", "c"]]


def test_a_group_waits_no_longer_than_its_head_may(engine: Engine) -> None:
    engine.add("a")
    engine.pass_time(150)
    engine.add("b")
    assert batches(engine, wait=200).wait_ms == 50
    engine.pass_time(50)
    assert ids(batches(engine, wait=200)) == [["a", "b"]]


def test_of_a_delayed_job_the_wait_counts_from_its_due_time(engine: Engine) -> None:
    engine.add("a", delay=10)
    engine.pass_time(10_000)
    assert batches(engine, wait=200).wait_ms == 200


def test_a_group_that_waits_lets_those_behind_it_go_first(engine: Engine) -> None:
    engine.add("a1", group="a")
    engine.add("b1", "b2", "b3", group="b")
    assert ids(batches(engine, wait=200)) == [["b1", "b2", "b3"]]


def test_a_group_that_waits_wakes_nobody_by_itself(engine: Engine) -> None:
    """Otherwise workers would ask again and again until the batch is full."""
    engine.add("a")
    engine.woken()
    batches(engine, wait=200)
    assert not engine.woken()


def test_a_worker_that_takes_a_batch_leaves_the_waiting_groups_to_another(engine: Engine) -> None:
    """The first worker may be busy when the time of these groups has come, so it wakes another one."""
    engine.add("a1", group="a")
    engine.add("b1", "b2", "b3", group="b")
    engine.woken()
    batches(engine, wait=200)
    assert engine.woken()


def test_a_worker_without_batches_takes_jobs_of_a_group_that_waits(engine: Engine) -> None:
    engine.add("a", "b")
    batches(engine, wait=200)
    assert [job.id for job in other(engine).jobs] == ["a"]


def test_jobs_without_a_group_wait_for_a_full_batch_too(engine: Engine) -> None:
    engine.add("u1", "u2", group=None)
    assert batches(engine, wait=200).wait_ms == 200
    engine.add("u3", group=None)
    assert ids(batches(engine, wait=200)) == [["u1", "u2", "u3"]]


def test_a_group_that_has_batches_of_one_waits_for_nobody(engine: Engine) -> None:
    engine.add("a1", group="a")
    engine.add("b1", group="b")
    engine.rate("a", RateLimit(5, 1))
    engine.limit("b", 2)
    assert ids(batches(engine, take=5, wait=200)) == [["a1"], ["b1"]]


def test_jobs_that_the_same_call_has_taken_do_not_make_a_batch_full(engine: Engine) -> None:
    engine.add("u1", group=None)
    engine.add("u2", "u3", group=None, priority=1)
    answer = batches(engine, take=5, wait=200)
    assert (ids(answer), answer.wait_ms) == ([["u1"]], 200)


def test_a_job_that_may_run_once_waits_for_nobody(engine: Engine) -> None:
    engine.add("a", max_attempts=1)
    assert ids(batches(engine, wait=200)) == [["a"]]


def test_a_job_that_may_run_once_by_default_waits_for_nobody(engine: Engine) -> None:
    engine.add("a")
    assert ids(batches(engine, wait=200, policy=engine.policy._replace(max_attempts=1))) == [["a"]]


def test_a_job_that_has_run_before_waits_for_nobody(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(batches(engine).jobs[0], 0)
    assert ids(batches(engine, wait=200)) == [["a"]]


def test_more_groups_than_one_call_looks_at_do_not_make_workers_ask_without_end(engine: Engine) -> None:
    for n in range(150):
        engine.add(f"j{n}", group=f"g{n}")
    engine.woken()
    answer = batches(engine, wait=200)
    assert (answer.jobs, answer.wait_ms, engine.woken()) == ([], 200, False)
    engine.pass_time(200)
    assert len(batches(engine, take=10, wait=200).jobs) == 10


def test_jobs_of_a_batch_can_be_removed_and_cancelled_one_by_one(engine: Engine) -> None:
    engine.add(*"abc")
    a, b, c = batches(engine).jobs
    assert engine.remove("b") == [1]
    assert engine.cancel("c") == {"c": "active"}
    beat = engine.heartbeat(a, c)
    assert (beat.ended, beat.cancelled) == ([b.fence], [c.fence])
    engine.release(a)
    engine.fail_run(c, "cancelled")
    assert engine.group() == "busy"  # the handler has not ended
    engine.end_run(b)
    assert ids(batches(engine)) == [["a"]]


def test_leases_of_a_batch_are_renewed_one_by_one(engine: Engine) -> None:
    engine.add(*"abc")
    taken: list[Taken] = batches(engine).jobs
    engine.pass_time(LEASE - 1)
    assert engine.beat(*taken[:2]) == []
    engine.pass_time(1)
    assert [job.id for job in engine.due().stalled] == ["c"]
