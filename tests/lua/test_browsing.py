"""Pages, positions and groups: in the order in which jobs start, from positions that stay valid, at a bounded cost."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeVar

import pytest

from groupmq.core.limits import RateLimit
from groupmq.core.ordering import Ordering
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine
from tests.lua.test_cost import cost, fill
from tests.support.by_hand import Steps, carry

T = TypeVar("T")


def group_jobs(engine: Engine, group: str = "g", limit: int = 3) -> list[str]:
    """All pages of a group."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = engine.run_now(engine.operations.get_group_jobs(group, limit, cursor))
        ids += [job.id for job in page.jobs]
        assert len(page.jobs) <= limit
        cursor = page.cursor
        if cursor is None:
            return ids


def counted(engine: Engine, steps: Steps[T]) -> tuple[T, Counter[str]]:
    """Execute a method at the engine's time. Returns its result, and the number of its calls by script."""
    calls: Counter[str] = Counter()

    def answer(call: Call[Any]) -> Any:
        calls[call.script] += 1
        return engine.call(engine.at_now(call))

    return carry(steps, answer), calls


def fail_all(engine: Engine, *reasons: str, error: str = "") -> None:
    for reason in reasons:
        engine.pass_time(SECOND)
        job = engine.take_one()
        engine.advance(commands.failed(job.id, job.fence, reason, "stack", error))


def test_the_jobs_of_a_group_come_in_the_order_in_which_they_start(engine: Engine) -> None:
    engine.add("late", priority=9)
    engine.add("c", order_ms=3)
    engine.add("a", order_ms=-5)
    engine.add("x", "y", group="other")
    engine.add("b", order_ms=1)
    engine.add("urgent", priority=0, order_ms=-9)
    expected = ["urgent", "a", "b", "c", "late"]
    assert group_jobs(engine) == group_jobs(engine, limit=1) == group_jobs(engine, limit=100) == expected
    positions = [engine.run_now(engine.operations.get_position(job_id)) for job_id in expected]
    assert [(position.position, position.of, position.group_id) for position in positions if position] == [
        (n, 5, "g") for n in range(1, 6)
    ]
    assert [job_id for job_id in engine.run_all() if job_id in expected] == expected


def test_they_begin_with_what_runs_and_end_with_what_is_delayed(engine: Engine) -> None:
    engine.limit("g", 2)
    engine.add("a", "b", "c", "d")
    engine.add("later", delay=60)
    engine.add("sooner", delay=30)
    engine.add("elsewhere", group="other", delay=10)
    engine.take(1)
    engine.pass_time(1)
    engine.take(1)
    for limit in (1, 2, 3, 50):
        assert group_jobs(engine, limit=limit) == ["a", "b", "c", "d", "sooner", "later"]
    page = engine.run_now(engine.operations.get_group_jobs("g", 50, None))
    assert page.total == 6
    states = [job.state for job in page.jobs]
    assert states == ["active", "active", "waiting", "waiting", "delayed", "delayed"]


def test_a_group_without_jobs_has_none(engine: Engine) -> None:
    engine.add("a", group="other")
    page = engine.run_now(engine.operations.get_group_jobs("g", 50, None))
    assert (page.jobs, page.cursor, page.total) == ([], None, 0)


def test_a_job_that_is_retried_by_an_operator_stands_where_it_stood(engine: Engine) -> None:
    engine.add("a", "b", "c", max_attempts=1)
    fail_all(engine, "boom")
    assert group_jobs(engine) == ["b", "c"]
    engine.retry("a")
    assert group_jobs(engine) == ["a", "b", "c"]


def test_a_job_that_does_not_wait_has_no_position(engine: Engine) -> None:
    engine.add("a", "b")
    engine.add("later", delay=60)
    engine.take_one()
    positions = {i: engine.run_now(engine.operations.get_position(i)) for i in ("a", "b", "later")}
    told = {i: (position.position, position.of, position.state) for i, position in positions.items() if position}
    assert told == {"a": (0, 1, "active"), "b": (1, 1, "waiting"), "later": (0, 1, "delayed")}
    fail_all(engine)
    assert engine.run_now(engine.operations.get_position("nobody")) is None


def test_a_finished_job_has_no_position(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    engine.complete(engine.take_one())
    engine.fail("b")
    for job_id in ("a", "b"):
        assert engine.run_now(engine.operations.get_position(job_id)) is None


def test_jobs_without_a_group_stand_among_themselves(engine: Engine) -> None:
    engine.add("a", "b", group=None)
    engine.add("first", group=None, order_ms=-1)
    position = engine.run_now(engine.operations.get_position("b"))
    assert position is not None
    assert (position.group_id, position.position, position.of) == (None, 3, 3)


def test_a_position_costs_the_same_however_many_jobs_wait(engine: Engine) -> None:
    engine.add("first", "second")
    few = cost(engine, lambda: engine.run_now(engine.operations.get_position("first")))
    fill(engine, 5000, 1)
    few_again = cost(engine, lambda: engine.run_now(engine.operations.get_position("j4999")))
    assert few_again <= few


def groups(engine: Engine, sort: str = "held", **how: Any) -> list[str]:
    given = {"match": None, "limit": 200, "behind": 0, **how}
    page = engine.run_now(engine.operations.get_groups(**{"sort": sort, **given}))
    assert page.complete
    return [lane.group.id for lane in page.groups]


def held(engine: Engine, group: str = "g") -> tuple[str, str | None, int | None, int | None] | None:
    """Why a group cannot start its head, by which job and attempt, and until when."""
    info = engine.run_now(engine.operations.get_group(group))
    if info.held is None:
        return None
    until = None if info.held.until is None else round(info.held.until.timestamp() * 1000)
    return info.held.reason, info.held.job_id, info.held.attempt, until


def test_a_group_says_what_holds_it_and_until_when(engine: Engine) -> None:
    engine.add("a", "b")
    assert held(engine) is None
    running = engine.take_one()
    assert held(engine) == ("running", "a", 1, None)
    engine.retry_run(running, 5 * SECOND)
    assert held(engine) == ("backoff", "a", 1, T0 + 5 * SECOND)
    engine.pass_time(5 * SECOND)
    assert held(engine) is None
    running = engine.take_one()
    engine.limit_run(running, 7 * SECOND)
    assert held(engine) == ("rate_limited", None, None, T0 + 12 * SECOND)
    engine.pause("g")
    assert held(engine) == ("paused", None, None, None)
    engine.resume("g")
    engine.pass_time(7 * SECOND)
    running = engine.take_one()
    engine.remove("a")
    assert held(engine) == ("stopping", None, None, None)
    engine.end_run(running)
    assert held(engine) is None


def test_a_group_in_an_ordering_window_is_held_until_it_has_passed(make_engine: MakeEngine) -> None:
    engine = make_engine(ordering=Ordering.arrival(2))
    engine.add("a")
    assert held(engine) == ("window", None, None, T0 + 2 * SECOND)


def test_a_group_with_a_rate_limit_says_which_and_until_when_it_waits(make_engine: MakeEngine) -> None:
    engine = make_engine(group_rate_limit=RateLimit(1, 10))
    engine.add("a", "b")
    engine.complete(engine.take_one())
    assert held(engine) == ("rate", None, None, T0 + 10 * SECOND + 1)
    assert engine.run_now(engine.operations.get_group("g")).rate_limit == RateLimit(1, 10.0)
    engine.rate("g", RateLimit(5, 1))
    assert engine.run_now(engine.operations.get_group("g")).rate_limit == RateLimit(5, 1.0)


def test_a_prefetched_job_does_not_hold_its_group_before_the_one_that_runs(engine: Engine) -> None:
    engine.add("a", "b", "c", "d")
    engine.take_row()
    assert held(engine) == ("running", "a", 1, None)


def states(engine: Engine) -> dict[str, str]:
    """The states under which a scan lists the groups."""
    return {group.id: group.state for group in engine.call(commands.scan_groups(now=engine.now)).found}


def test_groups_are_found_by_the_state_that_they_have(engine: Engine) -> None:
    engine.add("h", group="held")
    engine.retry_run(engine.take_one(), 5 * SECOND)
    engine.add("b", "b2", group="busy")
    engine.take_one()
    engine.add("r", "r2", group="ready")
    engine.add("alone", group="alone")
    expected = {"held": "parked", "busy": "busy", "ready": "ready", "alone": "ready"}
    assert states(engine) == expected
    engine.add("p", group="paused")
    engine.pause("paused")  # from here on, the stored values of groups do not tell their whole state
    assert states(engine) == expected | {"paused": "paused"}


def test_groups_that_the_rules_of_the_queue_make_wait_are_found_as_parked(make_engine: MakeEngine) -> None:
    engine = make_engine(ordering=Ordering.event_time(2))
    engine.add("a")
    assert states(engine) == {"g": "parked"}
    engine.pass_time(3 * SECOND)
    assert states(engine) == {"g": "ready"}


def test_groups_are_sorted_by_what_is_asked(engine: Engine) -> None:
    engine.add("deep1", "deep2", "deep3", group="deep")
    engine.pass_time(SECOND)
    engine.limit("busy", 3)
    engine.add("b1", "b2", group="busy")
    engine.pass_time(SECOND)
    engine.add("h1", "h2", group="held")
    engine.pause("deep")
    engine.take(3)
    engine.resume("deep")
    assert groups(engine, "name") == ["busy", "deep", "held"]
    assert groups(engine, "deepest") == ["deep", "held", "busy"]
    assert groups(engine, "busiest") == ["busy", "held", "deep"]
    assert groups(engine, "oldest") == ["deep", "held", "busy"]
    assert groups(engine, "held") == ["held", "deep", "busy"]
    assert groups(engine, "name", limit=2) == ["busy", "deep"]
    assert groups(engine, "name", match="E") == ["deep", "held"]
    assert groups(engine, "name", match="nobody") == []


def test_the_longest_held_group_comes_first_whatever_orders_its_jobs_bring(engine: Engine) -> None:
    for n in range(6):
        engine.add(f"own{n}", f"own{n}b", group=f"own{n}", order_ms=100 - n)
        engine.add(f"x{n}", f"x{n}b", group=f"x{n}")
        engine.pass_time(SECOND)
    engine.take(12)
    assert set(groups(engine, "held", limit=2)) == {"own0", "x0"}
    assert set(groups(engine, "held", limit=4)) == {"own0", "x0", "own1", "x1"}


def test_a_lane_has_what_runs_and_those_behind_it_in_their_order(engine: Engine) -> None:
    engine.add("a", "b", "c", "d")
    engine.add("free", group=None)
    job = engine.take_one()
    engine.report_progress(job, progress="50")
    page = engine.run_now(engine.operations.get_groups(sort="held", limit=10, behind=2))
    (lane,) = page.groups
    assert (page.total, page.scanned, page.matched, page.complete) == (1, 1, 1, True)
    assert ([one.id for one in lane.running], [one.id for one in lane.next]) == (["a"], ["b", "c"])
    assert (lane.running[0].progress, lane.running[0].state) == (50, "active")
    assert lane.held == lane.group.held
    assert lane.held is not None
    assert (lane.held.job_id, lane.held.waiting) == ("a", 3)


def test_prefetched_jobs_of_a_lane_come_next_and_do_not_run_yet(engine: Engine) -> None:
    engine.add("a", "b", "c", "d", "e")
    engine.take_row()
    (lane,) = engine.run_now(engine.operations.get_groups(sort="held", limit=10, behind=3)).groups
    assert ([one.id for one in lane.running], [one.id for one in lane.next]) == (["a"], ["b", "c", "d"])
    assert group_jobs(engine) == ["a", "b", "c", "d", "e"]


def test_groups_of_a_queue_whose_jobs_age_are_sorted_without_their_data(make_engine: MakeEngine) -> None:
    engine = make_engine(priority_ageing_ms=1000)
    for n in range(5):
        engine.add(f"j{n}", group=f"g{n}")
    engine.call(commands.scan_groups(now=engine.now))
    few = cost(engine, lambda: engine.call(commands.scan_groups(now=engine.now)))
    for n in range(5, 100):
        engine.add(f"j{n}", group=f"g{n}")
    assert cost(engine, lambda: engine.call(commands.scan_groups(now=engine.now))) == few


def test_two_hundred_lanes_of_ten_thousand_groups_take_fifty_calls(engine: Engine) -> None:
    fill(engine, 10_000, 10_000)
    for _ in range(10):
        engine.take(100)
    for sort in ("held", "oldest", "deepest", "busiest", "name"):
        page, calls = counted(engine, engine.operations.get_groups(sort=sort, limit=200, behind=0))
        assert (len(page.groups), page.total, page.scanned, page.complete) == (200, 10_000, 10_000, True)
        assert calls.total() <= 50, calls


def test_more_groups_than_anybody_looks_through_are_said_to_be_more(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groupmq.client.queue.groups.MOST_GROUP_PAGES", 1)
    fill(engine, 3000, 3000)
    engine.add("behind", group="g2999")
    engine.take(3)
    page = engine.run_now(engine.operations.get_groups(sort="busiest", limit=3, behind=0))
    assert not page.complete
    assert page.total == 3000
    assert page.scanned < 3000
    assert [lane.group.id for lane in page.groups] == ["g0", "g1", "g2"], "groups that run jobs are read first"


def test_lanes_of_jobs_with_much_data_are_read_in_a_bounded_number_of_calls(engine: Engine) -> None:
    for n in range(40):
        engine.add(f"j{n}", group=f"g{n}", data="x" * 900_000)
    page, calls = counted(engine, engine.operations.get_groups(sort="name", limit=200, behind=1))
    assert (len(page.groups), page.complete) == (40, False)
    assert 5 < sum(len(lane.next) for lane in page.groups) < 40
    assert calls["get"] <= 12
    assert calls["look_groups"] == 1
    waited = [lane.group.held for lane in page.groups]
    assert waited == [None] * 40


def test_one_group_of_many_jobs_costs_the_same_as_a_small_one(engine: Engine) -> None:
    engine.add("first", "second", group="small")
    few = cost(engine, lambda: engine.run_now(engine.operations.get_group_jobs("small", 1, None)))
    fill(engine, 20_000, 1)
    many = cost(engine, lambda: engine.run_now(engine.operations.get_group_jobs("g0", 1, None)))
    assert many <= few
