"""The history of a job's runs: which runs it keeps, for how long, in how many bytes, and at what cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from groupmq import JobNotFound
from groupmq.core.pages import Attempt
from groupmq.protocol import commands
from groupmq.protocol.commands import Taken
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine
from tests.lua.test_cost import cost

Told = list[tuple[int, str]]
LONG = "ä" * 8000


def attempts(engine: Engine, job_id: str = "a") -> list[Attempt]:
    return engine.run_now(engine.operations.get_attempts(job_id))


def told(engine: Engine, job_id: str = "a") -> Told:
    return [(one.number, one.outcome) for one in attempts(engine, job_id)]


def histories(engine: Engine) -> set[str]:
    """The jobs that have a stored history of runs."""
    return set(engine.look().history)


def test_a_job_that_has_not_run_has_no_attempts(engine: Engine) -> None:
    engine.add("a")
    assert attempts(engine) == []


def test_the_attempts_of_no_job_are_refused(engine: Engine) -> None:
    engine.add("b")
    with pytest.raises(JobNotFound, match="'a'"):
        attempts(engine)


def test_a_run_under_way_is_the_last_attempt(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 0)
    engine.pass_time(SECOND)
    engine.take_one(worker="w2")
    last = attempts(engine)[-1]
    assert (last.number, last.outcome, last.worker, last.ended_at, last.duration) == (2, "running", "w2", None, None)
    assert last.started_at is not None
    assert last.started_at.timestamp() * 1000 == T0 + SECOND


def test_a_prefetched_job_has_no_run_until_it_is_known_to_have_begun(engine: Engine) -> None:
    engine.add("a", "b")
    _, ahead = engine.take_row()
    assert told(engine, "b") == []
    engine.begin(ahead)
    assert told(engine, "b") == [(1, "running")]


def test_a_prefetched_job_that_is_given_back_has_not_run(engine: Engine) -> None:
    engine.add("a", "b")
    first, ahead = engine.take_row()
    engine.release(ahead)
    engine.release(first, begun=True)
    assert (told(engine, "a"), told(engine, "b")) == ([(1, "released")], [])


def test_a_job_that_is_given_back_before_its_handler_was_called_has_not_run(engine: Engine) -> None:
    engine.add("a")
    engine.release(engine.take_one(confirms=True))
    assert told(engine, "a") == []


def test_a_prefetched_job_that_is_given_back_while_it_runs_has_run(engine: Engine) -> None:
    engine.add("a", "b")
    first, ahead = engine.take_row()
    engine.complete(first)
    engine.release(ahead, begun=True)
    assert told(engine, "b") == [(1, "released")]


def limit_run(engine: Engine, job: Taken) -> None:
    engine.advance(commands.rate_limited(job.id, job.fence, 5, "slow down", "shop.TooMany"))


def cancel_run(engine: Engine, job: Taken) -> None:
    engine.cancel(job.id)
    engine.advance(commands.failed(job.id, job.fence, "cancelled", ""))


def fail_by_hand(engine: Engine, job: Taken) -> None:
    engine.fail(job.id)
    engine.end_run(job)


ENDS: dict[str, tuple[Callable[[Engine, Taken], object], Told]] = {
    "completed": (lambda engine, job: engine.complete(job), [(1, "completed")]),
    "retried": (lambda engine, job: engine.retry_run(job, 0), [(1, "retried")]),
    "failed": (lambda engine, job: engine.fail_run(job), [(1, "failed")]),
    "stalled": (lambda engine, job: engine.stall(), [(1, "stalled")]),
    "released": (lambda engine, job: engine.release(job, begun=True), [(1, "released")]),
    "rate-limited": (limit_run, [(1, "rate_limited")]),
    "cancelled": (cancel_run, [(1, "cancelled")]),
    "failed by hand": (fail_by_hand, [(1, "failed")]),
}


@pytest.mark.parametrize("end", ENDS)
def test_each_way_a_run_ends_has_its_word(engine: Engine, end: str) -> None:
    engine.add("a")
    action, expected = ENDS[end]
    action(engine, engine.take_one())
    assert told(engine) == expected


def test_an_attempt_that_stalled_for_good_is_recorded_as_stalled(engine: Engine) -> None:
    engine.add("a", max_attempts=1)
    engine.take_one()
    engine.stall()
    assert (engine.state("a"), told(engine)) == ("failed", [(1, "stalled")])


def test_a_run_that_uses_no_attempt_leaves_the_number_to_the_next(engine: Engine) -> None:
    engine.add("a")
    engine.release(engine.take_one(), begun=True)
    limit_run(engine, engine.take_one())
    engine.pass_time(SECOND)
    engine.retry_run(engine.take_one(), 0)
    engine.complete(engine.take_one())
    assert told(engine) == [(1, "released"), (1, "rate_limited"), (1, "retried"), (2, "completed")]
    limited = attempts(engine)[1]
    assert (limited.reason, limited.error) == ("slow down", "shop.TooMany")


def test_a_job_failed_by_hand_while_it_waits_has_no_run_more(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 60 * SECOND)
    engine.fail("a")
    assert told(engine) == [(1, "retried")]
    engine.retry("a")
    assert told(engine) == [(1, "retried")]


def test_a_retry_by_an_operator_keeps_what_was_and_counts_anew(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 0)
    failed = engine.take_one(worker="w2")
    engine.pass_time(3 * SECOND)
    engine.advance(commands.failed("a", failed.fence, "no such card", "stack", "shop.CardDeclined"))
    before = attempts(engine)
    engine.pass_time(60 * SECOND)
    engine.retry("a")
    assert attempts(engine) == before
    assert (before[1].error, before[1].reason, before[1].worker) == ("shop.CardDeclined", "no such card", "w2")
    assert before[1].duration == 3
    engine.complete(engine.take_one())
    assert told(engine) == [(1, "retried"), (2, "failed"), (1, "completed")]


def test_the_newest_twenty_runs_are_kept(engine: Engine) -> None:
    engine.add("a", max_attempts=100)
    for _ in range(30):
        engine.retry_run(engine.take_one(), 0)
    assert told(engine) == [(n, "retried") for n in range(11, 31)]


def test_runs_are_bounded_in_bytes_and_the_last_has_its_whole_stack(engine: Engine) -> None:
    engine.add("a", max_attempts=100)
    for n in range(30):
        job = engine.take_one()
        engine.advance(commands.retried("a", job.fence, 0, False, LONG, f"{LONG}{n}", "E"))
    raw = engine.client.hget(engine.key("state"), b"\xffa")
    assert 20_000 < len(raw) < 90_000
    *_, before, last = attempts(engine)
    assert (last.reason, last.stack) == (LONG, f"{LONG}29")
    assert before.reason is not None
    assert before.stack is not None
    assert before.reason.endswith("ä...")
    assert before.stack.startswith("...ä")
    assert before.stack.endswith("ä28")
    assert len(before.stack.encode()) < 3_100


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_the_runs_of_a_job_that_is_removed(engine: Engine, end: str) -> None:
    engine.add("a")
    ENDS[end][0](engine, engine.take_one())
    engine.retry_run(engine.take_one(), 0) if engine.state("a") == "waiting" and engine.group() == "ready" else None
    engine.remove("a")
    assert histories(engine) == set()


def test_runs_go_when_a_completed_job_is_not_kept(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=0)
    engine.add("a", "b", "c")
    engine.retry_run(engine.take_one(), 0)
    engine.complete(engine.take_one())
    engine.release(engine.take_one(), begun=True)
    assert histories(engine) == {"b"}
    engine.complete(engine.take_one())
    engine.complete(engine.take_one())
    assert (histories(engine), engine.look().state) == (set(), {})


def test_runs_of_a_retried_job_go_when_it_completes_and_is_not_kept(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=1)
    engine.add("a")
    engine.fail_run(engine.take_one())
    engine.retry("a")
    engine.policy = engine.policy._replace(keep={"completed": 0, "failed": 1})
    engine.complete(engine.take_one())
    assert histories(engine) == set()


def test_runs_go_with_the_oldest_jobs_beyond_the_bound(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=2)
    engine.add("a", "b", "c", max_attempts=2)
    for job_id in ("a", "b", "c"):
        job = engine.take_one()
        assert job.id == job_id
        engine.retry_run(job, 0)
        engine.fail_run(engine.take_one())
    assert histories(engine) == {"b", "c"}
    engine.call(commands.clean("failed", 0, 10, engine.now))
    assert histories(engine) == set()


def test_runs_of_a_job_whose_record_is_gone_are_found_by_repair(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 60 * SECOND)
    engine.client.hdel(engine.key("jobs"), "a")
    assert "a" in engine.damage()["entry of a job that does not exist"]
    assert histories(engine) == set()


def test_completing_at_the_first_attempt_costs_no_command_more_where_others_have_failed(
    make_engine: MakeEngine,
) -> None:
    costs = []
    for fails in (False, True):
        engine = make_engine(kept=1)
        engine.add(*(f"j{i}" for i in range(10)), group=None)
        engine.complete(engine.take_one())
        engine.complete(engine.take_one())  # one is kept and one deleted, so every further call does the same work
        if fails:
            engine.fail_run(engine.take_one())
            engine.retry_run(engine.take_one(), 60 * SECOND)
            engine.complete(engine.take_one())
        job = engine.take_one()
        costs.append(cost(engine, lambda engine=engine, job=job: engine.complete(job)))  # type: ignore[misc]
    assert costs[0] == costs[1]


def test_a_retried_attempt_costs_one_read_more_however_many_end_in_a_call(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(200)), group=None, max_attempts=9)
    jobs = engine.take(101)

    def retry(*some: Taken) -> None:
        engine.advance(*(commands.retried(job.id, job.fence, 0, False, "r", "s") for job in some))

    retry(jobs[0])
    few = cost(engine, lambda: retry(jobs[1]))
    many = cost(engine, lambda: retry(*jobs[2:]))
    assert many <= few + 5


def test_an_expired_lease_of_an_older_run_changes_nothing_of_what_is_known(engine: Engine) -> None:
    engine.add("a", max_attempts=5)
    old = engine.take_one(worker="w1")
    engine.stall()
    engine.take_one(worker="w2")
    assert engine.fail_run(old) == [0]
    assert told(engine) == [(1, "stalled"), (2, "running")]
    engine.pass_time(LEASE)
