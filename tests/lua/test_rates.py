"""Rate limits: no window of their length has more starts than they allow, and no start is later than necessary."""

from __future__ import annotations

import random

import pytest

from groupmq.core.limits import RateLimit
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine

PER = 10 * SECOND


@pytest.fixture
def queue(make_engine: MakeEngine) -> Engine:
    """An engine whose queue allows three starts in any ten seconds."""
    return make_engine(rate_limit=RateLimit(3, 10))


@pytest.fixture
def groups(make_engine: MakeEngine) -> Engine:
    """An engine that allows each group three starts in any ten seconds."""
    return make_engine(group_rate_limit=RateLimit(3, 10))


def busiest_window(starts: list[int], per: int) -> int:
    """The largest number of starts in any closed window of `per` ms: a start may be late in its millisecond."""
    return max(sum(at <= other <= at + per for other in starts) for at in starts)


# The whole queue


def test_a_queue_starts_as_many_as_it_may_and_says_when_the_next_may_come(queue: Engine) -> None:
    queue.add(*"abcde", group=None)
    answer = queue.advance(take=10)
    assert [job.id for job in answer.jobs] == ["a", "b", "c"]
    assert answer.wait_ms == PER + 1 or queue.woken()
    assert queue.advance(take=10).wait_ms == PER + 1


def test_the_next_start_comes_when_the_oldest_of_the_window_is_over_to_the_millisecond(queue: Engine) -> None:
    queue.add(*"abcde", group=None)
    queue.take(1)
    queue.pass_time(4 * SECOND)
    queue.take(2)
    queue.pass_time(6 * SECOND)
    assert queue.take(5) == []
    queue.pass_time(1)
    assert [job.id for job in queue.take(5)] == ["d"]
    queue.pass_time(4 * SECOND)
    assert [job.id for job in queue.take(5)] == ["e"]


def test_the_limit_is_of_the_queue_not_of_a_worker(queue: Engine) -> None:
    queue.add(*"abcde", group=None)
    started = [len(queue.take(1, worker=f"w{i}", requester=f"w{i}:0")) for i in range(5)]
    assert started == [1, 1, 1, 0, 0]


def test_the_end_of_a_job_frees_no_start(queue: Engine) -> None:
    queue.add(*"abcde", group=None)
    queue.complete(*queue.take(3))
    assert queue.take(3) == []


@pytest.mark.parametrize("how", ["retry", "release", "stall", "limited"])
def test_each_start_counts_also_of_a_job_that_started_before(make_engine: MakeEngine, how: str) -> None:
    engine = make_engine(rate_limit=RateLimit(2, 60))
    engine.add("a")
    for left in (1, 0):
        taken = engine.take_one(lease_ms=SECOND)
        if how == "retry":
            engine.retry_run(taken, 0)
        elif how == "release":
            engine.release(taken)
        elif how == "limited":
            engine.limit_run(taken, 0)
        else:
            engine.pass_time(SECOND)
            engine.due()
        assert len(engine.look().starts) == 2 - left
    assert engine.take() == []


def test_a_take_from_a_queue_below_its_limit_does_not_wait_for_the_rate(queue: Engine) -> None:
    queue.add("a", "b", group=None)
    assert queue.advance(take=5, lease_ms=LEASE).wait_ms == LEASE
    queue.add("c", group=None)
    assert queue.woken()
    assert queue.take_one().id == "c"


def test_no_more_than_the_last_starts_are_remembered(queue: Engine) -> None:
    for i in range(20):
        queue.add(f"j{i}", group=None)
        queue.pass_time(PER)
        queue.take(3)
    assert len(queue.look().starts) == 3


def test_starts_of_a_time_to_come_do_not_hold_a_queue_whose_clock_was_set_back(queue: Engine) -> None:
    queue.add(*"abcde", group=None)
    queue.take(3)
    assert queue.take(1) == []
    queue.pass_time(-1000 * SECOND)
    assert queue.take_one().id == "d"
    queue.add("f", group=None)
    assert queue.woken()


@pytest.mark.parametrize("seed", range(3))
def test_in_no_window_start_more_than_allowed_and_nobody_waits_without_need(make_engine: MakeEngine, seed: int) -> None:
    source = random.Random(seed)
    n, per = 5, 700
    engine = make_engine(rate_limit=RateLimit(n, per / 1000))
    for at in range(0, 300, 100):
        engine.add(*(f"j{i}" for i in range(at, at + 100)), group=None)
    starts: list[int] = []
    while len(starts) < 300:
        engine.pass_time(source.choice([0, 1, 3, 100, 350, 699, 700, 701]))
        assert engine.now is not None
        wanted = source.randint(1, 8)
        possible = n - sum(at >= engine.now - per for at in starts)
        taken = engine.take(wanted, lease_ms=3600 * SECOND)
        assert len(taken) == min(wanted, possible, 300 - len(starts))
        starts += [engine.now] * len(taken)
    assert busiest_window(starts, per) == n


# Groups


def test_starts_of_a_time_to_come_do_not_hold_a_group_whose_clock_was_set_back(groups: Engine) -> None:
    groups.add(*"abcd")
    assert groups.run_all() == ["a", "b", "c"]
    groups.pass_time(-1000 * SECOND)
    groups.rate("g", RateLimit(3, 10))
    assert groups.take_one().id == "d"


def test_each_group_has_a_rate_of_its_own(groups: Engine) -> None:
    groups.limit("g", 10)
    groups.limit("h", 10)
    groups.add(*"abcde", group="g")
    groups.add(*"vwxyz", group="h")
    assert [job.id for job in groups.take(20)] == ["a", "b", "c", "v", "w", "x"]
    assert groups.group("g") == "parked"
    groups.pass_time(PER)
    assert groups.take(20) == []
    groups.pass_time(1)
    assert [job.id for job in groups.take(20)] == ["d", "e", "y", "z"]


def test_a_group_that_runs_one_at_a_time_waits_between_its_jobs(make_engine: MakeEngine) -> None:
    engine = make_engine(group_rate_limit=RateLimit(1, 1))
    engine.add("a", "b", "c")
    starts = []
    for _ in range(3):
        answer = engine.advance(take=1)
        while not answer.jobs:
            engine.pass_time(answer.wait_ms)
            answer = engine.advance(take=1)
        starts.append(engine.now)
        engine.pass_time(300)
        engine.complete(*answer.jobs)
    assert starts == [T0, T0 + 1001, T0 + 2002]


def test_jobs_without_a_group_have_no_rate_of_a_group(groups: Engine) -> None:
    groups.add(*"abcdefgh", group=None)
    assert len(groups.take(20)) == 8


def test_a_group_at_its_rate_does_not_hold_the_others(groups: Engine) -> None:
    groups.add(*"abcd", group="g")
    assert groups.run_all() == ["a", "b", "c"]
    groups.add("x", group="h")
    assert groups.run_all() == ["x"]


def test_a_rate_of_its_own_takes_the_place_of_the_queues(groups: Engine) -> None:
    groups.add(*"abcde")
    assert groups.rate("g", RateLimit(1, 60))
    assert not groups.rate("g", RateLimit(1, 60))
    assert groups.run_all() == ["a"]
    assert groups.rate("g", None)
    assert groups.run_all() == ["b", "c"]


def test_a_rate_can_be_set_for_one_group_of_a_queue_that_has_none(engine: Engine) -> None:
    engine.add("a", "b", group="g")
    engine.add("x", "y", group="h")
    engine.rate("g", RateLimit(1, 10))
    assert engine.run_all() == ["a", "x", "y"]
    engine.pass_time(PER + 1)
    assert engine.run_all() == ["b"]


def test_lifting_a_rate_lets_the_group_go_on_at_once(engine: Engine) -> None:
    engine.rate("g", RateLimit(1, 60))
    engine.add("a", "b")
    assert engine.run_all() == ["a"]
    engine.woken()
    assert engine.rate("g", None)
    assert engine.woken()
    assert engine.run_all() == ["b"]


def test_a_rate_of_one_group_survives_its_other_switches(engine: Engine) -> None:
    engine.rate("g", RateLimit(1, 60))
    engine.limit("g", 5)
    engine.pause("g")
    engine.resume("g")
    engine.add("a", "b")
    assert len(engine.take(5)) == 1


def test_a_longer_window_counts_the_starts_before_it_was_set(engine: Engine) -> None:
    engine.rate("g", RateLimit(1, 1))
    engine.add("a")
    assert engine.run_all() == ["a"]
    engine.pass_time(SECOND // 2)
    engine.rate("g", RateLimit(1, 60))
    engine.pass_time(2 * SECOND)
    engine.due()
    engine.add("b")
    assert engine.take() == []
    engine.pass_time(60 * SECOND)
    assert engine.take_one().id == "b"


def test_memories_of_starts_that_are_over_are_swept(groups: Engine) -> None:
    groups.add("a")
    groups.run_all()
    groups.pass_time(PER)
    groups.due()
    assert groups.look().rated
    groups.pass_time(1)
    groups.due()
    assert not groups.look().rated
    assert groups.client.exists(groups.keys.rate("g")) == 0


@pytest.mark.parametrize("concurrency", [1, 3])
def test_in_no_window_does_a_group_start_more_than_allowed(make_engine: MakeEngine, concurrency: int) -> None:
    source = random.Random(concurrency)
    engine = make_engine(group_rate_limit=RateLimit(4, 0.5), group_concurrency=concurrency)
    engine.add(*(f"j{i}" for i in range(120)))
    starts: list[int] = []
    outcomes: list[commands.Outcome] = []
    while len(starts) < 120:
        engine.pass_time(source.choice([1, 20, 100, 250, 500, 501]))
        assert engine.now is not None
        jobs = engine.advance(*outcomes, take=5).jobs
        starts += [engine.now] * len(jobs)
        outcomes = [commands.completed(job.id, job.fence, None) for job in jobs]
    assert busiest_window(starts, 500) <= 4
    if concurrency == 3:
        assert busiest_window(starts, 500) == 4
