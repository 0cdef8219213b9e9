"""The two longest waits: of a job that could start now, and of the first job of a group that is held."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.client.queue.measures import longest_waits
from groupmq.core.limits import RateLimit
from groupmq.core.ordering import Ordering
from groupmq.protocol import commands
from groupmq.protocol.commands import HeldHead, Startable, Waits
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine
from tests.support.by_hand import asked

MINUTE = 60 * SECOND


def waits(engine: Engine) -> Waits:
    return engine.run_now(longest_waits(asked))


def startable(engine: Engine) -> Startable | None:
    return waits(engine).startable


def held(engine: Engine) -> HeldHead:
    found = waits(engine).held
    assert found is not None
    return found


def paused(engine: Engine) -> HeldHead:
    found = waits(engine).paused
    assert found is not None
    return found


def test_nothing_waits(engine: Engine) -> None:
    assert waits(engine)[1:4] == (None, None, None)
    engine.add("a")
    engine.take_one()
    assert waits(engine)[1:4] == (None, None, None), "a job that runs alone in its group holds no other job"


def test_the_job_that_could_start_and_has_waited_longest(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.pass_time(5)
    engine.add("b", group="b")
    engine.pass_time(10)
    assert startable(engine) == (15, "a", "a")
    engine.take_one()
    assert startable(engine) == (10, "b", "b")
    engine.take_one()
    assert startable(engine) is None


def test_a_job_of_a_lower_priority_that_starves_is_seen(engine: Engine) -> None:
    engine.add("starves", group="s", priority=7)
    engine.pass_time(MINUTE)
    for n in range(150):
        engine.add(f"j{n}", group=f"g{n}")
    assert startable(engine) == (MINUTE, "s", "starves")


def test_a_job_without_a_group_that_starves_behind_more_urgent_ones_is_seen(engine: Engine) -> None:
    engine.add("starves", group=None, priority=7)
    engine.pass_time(MINUTE)
    engine.add("urgent", group=None)
    assert startable(engine) == (MINUTE, "", "starves")


def test_more_priorities_than_one_call_looks_at_are_seen(engine: Engine) -> None:
    engine.add("starves", group="s", priority=99)
    engine.pass_time(MINUTE)
    for n in range(20):
        engine.add(f"j{n}", group=f"g{n}", priority=n)
    assert startable(engine) == (MINUTE, "s", "starves")


def test_a_job_that_was_delayed_waits_from_when_it_was_due(engine: Engine) -> None:
    for n in range(30):
        engine.add(f"late{n}", group=f"l{n}", delay=MINUTE / 1000)
    engine.add("now", group="n")
    engine.pass_time(MINUTE + 5)
    engine.due()
    assert startable(engine) == (MINUTE + 5, "n", "now")


def test_a_group_behind_a_running_job(engine: Engine) -> None:
    engine.add("runs", "waits1", "waits2")
    taken = engine.take_one()
    engine.pass_time(10 * MINUTE)
    assert held(engine) == (10 * MINUTE, "g", "running", "runs", 1, T0, 0, 2, 0)
    assert startable(engine) is None
    engine.retry_run(taken, 0)
    engine.take_one()
    assert held(engine)[3:5] == ("runs", 2)


def test_a_group_behind_a_job_in_its_back_off(engine: Engine) -> None:
    engine.add("fails", "waits")
    engine.retry_run(engine.take_one(), 5 * MINUTE)
    engine.pass_time(MINUTE)
    assert held(engine) == (MINUTE, "g", "backoff", "fails", 1, T0, T0 + 5 * MINUTE, 2, 0)


def test_a_paused_group(engine: Engine) -> None:
    engine.add("a", "b")
    engine.pause("g")
    engine.pass_time(MINUTE)
    assert paused(engine) == (MINUTE, "g", "paused", "", 0, T0, 0, 2, 0)
    assert waits(engine).held is None


def test_a_paused_group_with_a_running_job_is_paused(engine: Engine) -> None:
    engine.add("a", "b")
    engine.take_one()
    engine.pause("g")
    assert paused(engine).reason == "paused"


def test_a_group_that_was_paused_long_ago_does_not_hide_one_that_is_held(engine: Engine) -> None:
    engine.add("old", group="vacation")
    engine.pause("vacation")
    engine.pass_time(10 * MINUTE)
    engine.add("runs", "behind", group="customer")
    engine.take_one()
    engine.pass_time(MINUTE)
    assert held(engine)[:4] == (MINUTE, "customer", "running", "runs")
    assert paused(engine)[:2] == (11 * MINUTE, "vacation")


def test_no_number_of_paused_groups_hides_one_that_is_held(engine: Engine) -> None:
    for n in range(250):
        engine.add(f"old{n}", group=f"vacation{n}")
        engine.pause(f"vacation{n}")
    engine.pass_time(MINUTE)
    engine.add("fails", group="customer")
    engine.retry_run(engine.take_one(), 5 * MINUTE)
    assert held(engine)[:3] == (0, "customer", "backoff")
    assert paused(engine).waited_ms == MINUTE


def test_a_group_whose_handler_raised_rate_limited_is_held_until_its_rest_ends(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    engine.advance(commands.rate_limited(taken.id, taken.fence, MINUTE))
    assert held(engine) == (0, "g", "rate_limited", "", 0, T0, T0 + MINUTE, 2, 0)


@pytest.mark.parametrize(
    ("options", "reason", "until"),
    [
        ({"group_rate_limit": RateLimit(1, 60)}, "rate", T0 + MINUTE + 1),
        ({"ordering": Ordering.arrival(60)}, "window", T0 + MINUTE),
        ({"ordering": Ordering.event_time(60)}, "window", T0 + MINUTE),
    ],
)
def test_a_group_that_waits_for_its_rate_or_its_window(
    make_engine: MakeEngine, options: dict[str, Any], reason: str, until: int
) -> None:
    engine = make_engine(**options)
    if reason == "rate":
        engine.add("first")
        engine.complete(engine.take_one())
    engine.add("a", "b")
    assert held(engine) == (0, "g", reason, "", 0, T0, until, 2, 0)


def test_the_longest_of_many_held_groups_is_found_page_by_page(engine: Engine) -> None:
    for n in range(500):
        engine.add(f"run{n}", group=f"g{n}")
    engine.take(500)
    engine.add("first", group="g321")
    engine.pass_time(MINUTE)
    for n in range(500):
        engine.add(f"next{n}", group=f"g{n}")
    found = waits(engine)
    assert found.held is not None
    assert found.held[:5] == (MINUTE, "g321", "running", "run321", 1)
    assert sum(found.running.values()) == 500


def test_jobs_that_bring_an_order_of_their_own_wait_from_their_arrival(engine: Engine) -> None:
    for n in range(30):
        engine.add(f"j{n}", group=f"g{n}", order_ms=1000 - n)
        engine.pass_time(1)
    assert startable(engine) == (30, "g0", "j0")


def test_what_each_worker_runs_is_counted_from_its_leases(engine: Engine) -> None:
    for n in range(3):
        engine.add(f"j{n}", group=f"g{n}")
    engine.take(2)
    assert list(waits(engine).running.values()) == [2]


def test_a_group_that_needs_repair_harms_nobody(engine: Engine) -> None:
    engine.add("a", "b", group="broken")
    engine.add("c", "d", group="fine")
    engine.take(2)
    engine.client.hset(engine.keys.fixed("groups"), "broken", "?")
    assert held(engine).group_id == "fine"
    engine.client.hdel(engine.keys.fixed("groups"), "broken")
    engine.run(engine.operations.repair())
