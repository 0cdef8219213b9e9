"""Delayed jobs do not hold their group; they join it when due, at the position their order gives them."""

from __future__ import annotations

from groupmq.core import record
from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.engine import SECOND, T0, Engine


def test_a_delayed_job_starts_neither_early_nor_late(engine: Engine) -> None:
    engine.add("a", delay=5)
    assert (engine.state("a"), engine.view("a").score) == ("delayed", T0 + 5000)
    engine.pass_time(4999)
    assert engine.take() == []
    engine.pass_time(1)
    assert engine.take_one().id == "a"


def test_a_run_at_is_kept_to_the_millisecond(engine: Engine) -> None:
    engine.add("a", run_at=(T0 + 1234) / 1000)
    engine.pass_time(1233)
    assert engine.take() == []
    engine.pass_time(1)
    assert engine.take_one().id == "a"


def test_a_delayed_job_does_not_hold_its_group(engine: Engine) -> None:
    engine.add("later", delay=5)
    engine.add("now")
    assert engine.run_all() == ["now"]
    assert engine.group() == "idle"
    assert engine.counts() == {"active": 0, "waiting": 0, "delayed": 1, "completed": 1, "failed": 0, "groups": 1}


def test_the_order_of_a_delayed_job_is_its_due_time(engine: Engine) -> None:
    engine.add("due at 5", delay=5)
    engine.pass_time(4 * SECOND)
    engine.add("at 4")
    engine.pass_time(2 * SECOND)
    engine.add("at 6")
    assert record.unpack(engine.view("due at 5").record).order_ms == T0 + 5000
    assert engine.run_all() == ["at 4", "due at 5", "at 6"]


def test_delayed_jobs_start_in_the_order_of_their_due_times(engine: Engine) -> None:
    for delay in (30, 10, 20):
        engine.add(str(delay), delay=delay)
    engine.pass_time(60 * SECOND)
    assert engine.run_all() == ["10", "20", "30"]


def test_an_order_of_its_own_is_a_delayed_jobs_position(engine: Engine) -> None:
    engine.add("b", order_ms=20)
    engine.add("late but first", order_ms=10, delay=5)
    engine.add("c", order_ms=30)
    engine.pass_time(5 * SECOND)
    assert engine.run_all() == ["late but first", "b", "c"]


def test_a_delayed_job_that_is_due_does_not_overtake_a_running_one(engine: Engine) -> None:
    engine.add("a", order_ms=20)
    engine.add("x", order_ms=10, delay=1)
    running = engine.take_one()
    engine.pass_time(SECOND)
    assert engine.take(5) == []
    engine.complete(running)
    assert engine.run_all() == ["x"]


def test_a_delayed_job_of_a_paused_group_waits_on(engine: Engine) -> None:
    engine.add("a", delay=1)
    engine.pause("g")
    engine.pass_time(SECOND)
    assert engine.take() == []
    assert engine.state("a") == "waiting"
    engine.resume("g")
    assert engine.run_all() == ["a"]


def test_a_delayed_job_without_a_group_starts_when_due(engine: Engine) -> None:
    engine.add("a", delay=1, group=None)
    assert engine.take() == []
    engine.pass_time(SECOND)
    assert engine.take_one().id == "a"


def test_any_number_of_due_jobs_is_moved_in_bounded_steps(engine: Engine) -> None:
    drafts = [draft(engine.options, None, group_id=f"g{i % 7}", job_id=str(i), delay=1) for i in range(1000)]
    for _ in range(2):
        engine.call(commands.add(drafts, T0))
    more = [draft(engine.options, None, group_id="h", job_id=f"h{i}", delay=1) for i in range(700)]
    engine.call(commands.add(more, T0))
    engine.pass_time(SECOND)
    steps = []
    while True:
        due = engine.due()
        steps.append(due.promoted)
        if due.wait_ms != 0:
            break
    assert sum(steps) == 1700
    assert max(steps) <= 100
    assert engine.counts()["waiting"] == 1700


def test_a_reservation_says_at_once_that_more_is_due(engine: Engine) -> None:
    drafts = [draft(engine.options, None, job_id=str(i), delay=1) for i in range(600)]
    engine.call(commands.add(drafts, T0))
    engine.pass_time(SECOND)
    answer = engine.advance(take=1)
    assert (len(answer.jobs), answer.wait_ms) == (1, 0)


def test_only_the_duties_asked_for_are_done(engine: Engine) -> None:
    engine.add("delayed", delay=1, group="a")
    engine.add("held", group="b")
    engine.retry_run(engine.take_one(), 1000)
    engine.add("leased", group="c")
    engine.take_one(lease_ms=1000)
    engine.pass_time(SECOND)
    assert engine.due(promote=True, unpark=False, expire=False).promoted == 1
    assert engine.due(promote=False, unpark=True, expire=False).woken == 1
    assert [one.id for one in engine.due(promote=False, unpark=False, expire=True).stalled] == ["leased"]
    assert engine.due() == commands.Due(0, 0, [], [], -1)


def test_promotion_alone_makes_a_job_runnable(engine: Engine) -> None:
    engine.add("a", delay=1)
    engine.pass_time(SECOND)
    engine.due(promote=True, unpark=False, expire=False)
    assert engine.state("a") == "waiting"
    assert engine.woken()
    assert engine.run_all() == ["a"]


def test_a_delay_of_a_hundred_years_is_kept(engine: Engine) -> None:
    years = 99 * 366 * 86_400
    engine.add("a", delay=years)
    assert engine.advance(take=1).wait_ms == years * 1000
    engine.remove("a")
