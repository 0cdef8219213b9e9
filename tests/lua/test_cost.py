"""The cost of a call at the server, in commands, does not depend on the length of the backlog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupmq.core.drafts import draft
from groupmq.core.limits import Debounce, RateLimit, Throttle
from groupmq.core.ordering import Ordering
from groupmq.core.schedule import Every
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine


def cost(engine: Engine, action: Callable[[], Any]) -> int:
    """The number of commands that the server ran for an action, including the script call itself."""
    engine.client.config_resetstat()
    action()
    stats = engine.client.info("commandstats")
    return sum(
        stat["calls"] for name, stat in stats.items() if name not in ("cmdstat_config|resetstat", "cmdstat_info")
    )


def fill(engine: Engine, n: int, groups: int) -> None:
    for at in range(0, n, 1000):
        drafts = [
            draft(engine.options, None, group_id=f"g{i % groups}", job_id=f"j{i}") for i in range(at, min(at + 1000, n))
        ]
        engine.call(commands.add(drafts, T0))


def costs(engine: Engine) -> dict[str, int]:
    """The cost of each common call, in a queue that is left as full as it was."""
    _costs(engine)  # loads the scripts
    return _costs(engine)


def _costs(engine: Engine) -> dict[str, int]:
    engine.remove("x", "z")
    found: dict[str, int] = {}
    jobs: list[commands.Taken] = []

    def completed() -> commands.Outcome:
        job = jobs.pop()
        return commands.completed(job.id, job.fence, b"1")

    def beat() -> None:
        engine.call(commands.beat("w", "info", LEASE, [(jobs[0].id, jobs[0].fence)], engine.now))

    found["add"] = cost(engine, lambda: engine.add("x", group="g0"))
    found["add delayed"] = cost(engine, lambda: engine.add("z", group="g0", delay=60))
    found["take"] = cost(engine, lambda: jobs.extend(engine.take(1)))
    found["heartbeat"] = cost(engine, beat)
    found["release"] = cost(engine, lambda: engine.release(jobs.pop()))
    jobs += engine.take(1)
    found["complete and take"] = cost(engine, lambda: jobs.extend(engine.advance(completed(), take=1).jobs))
    found["retry"] = cost(engine, lambda: engine.retry_run(jobs.pop(), 0))
    found["counts"] = cost(engine, lambda: engine.call(commands.counts()))
    found["get"] = cost(engine, lambda: engine.view("x"))
    found["remove"] = cost(engine, lambda: engine.remove("x"))
    return found


@pytest.mark.parametrize("groups", [1, 10])
def test_a_call_costs_the_same_with_ten_and_with_ten_thousand_waiting_jobs(engine: Engine, groups: int) -> None:
    fill(engine, 20, groups)
    few = costs(engine)
    fill(engine, 10_000, groups)
    many = costs(engine)
    assert many == few
    assert max(many.values()) < 40


def test_a_call_costs_the_same_with_ten_and_with_five_thousand_groups(engine: Engine) -> None:
    fill(engine, 20, 10)
    few = costs(engine)
    fill(engine, 5000, 5000)
    assert costs(engine) == few


def test_a_batch_costs_a_few_commands_a_job_and_less_than_one_by_one(engine: Engine) -> None:
    fill(engine, 1000, 1000)
    engine.take(1)
    one = cost(engine, lambda: engine.take(1))
    hundred = cost(engine, lambda: engine.take(100))
    assert hundred <= one + 2 * 100


def test_adding_a_batch_to_one_group_costs_no_more_than_adding_one(engine: Engine) -> None:
    engine.add("first")
    one = cost(engine, lambda: engine.add("a"))
    many = cost(engine, lambda: engine.add(*(f"j{i}" for i in range(500))))
    assert many <= one + 2


def test_completing_a_batch_of_ungrouped_jobs_costs_no_more_than_completing_one(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(600)), group=None)
    engine.complete(engine.take_one())
    one = cost(engine, lambda: engine.complete(*engine.take(1)))
    many = cost(engine, lambda: engine.complete(*engine.take(500)))
    # Two of these commands read the type of a key that a call for one job does not use.
    assert many <= one + 8


def test_an_idle_reservation_is_cheap(engine: Engine) -> None:
    fill(engine, 1000, 1)
    engine.take_one()
    engine.take()
    assert cost(engine, lambda: engine.take(10)) < 15


def test_what_is_not_due_costs_nothing(engine: Engine) -> None:
    engine.take()
    few = cost(engine, lambda: engine.take())
    for at in range(0, 3000, 1000):
        engine.call(commands.add([draft(engine.options, None, job_id=f"d{at + i}", delay=60) for i in range(1000)], T0))
    engine.pass_time(SECOND)
    assert cost(engine, lambda: engine.take()) <= few + 1


RULES: dict[str, dict[str, Any]] = {
    "event time": {"ordering": Ordering.event_time(0.001)},
    "arrival": {"ordering": Ordering.arrival(0.001)},
    "round-robin": {"fairness": "round-robin"},
    "rate": {"rate_limit": RateLimit(1000, 1)},
    "group rate": {"group_rate_limit": RateLimit(1000, 1)},
    "exclusive": {"exclusive": True},
    "group size": {"max_group_size": 2**31},
    "ageing": {"priority_ageing_ms": 1000},
}


@pytest.mark.parametrize("rules", RULES)
def test_under_every_rule_a_call_costs_the_same_with_few_and_with_many_jobs(
    make_engine: MakeEngine, rules: str
) -> None:
    engine = make_engine(**RULES[rules])
    fill(engine, 20, 10)
    engine.pass_time(SECOND)
    few = costs(engine)
    fill(engine, 5000, 10)
    assert costs(engine) == few
    assert max(few.values()) < 45


def test_a_job_with_a_ttl_or_a_key_costs_a_few_commands_more_however_many_there_are(engine: Engine) -> None:
    def add(name: str, **fields: Any) -> int:
        return cost(engine, lambda: engine.add(name, **fields))

    add("first")
    plain = add("plain")
    found = {}
    for size in (1, 1000):
        engine.call(
            commands.add(
                [
                    draft(engine.options, None, group_id="g", ttl=60 + i, dedupe=Throttle(f"{size}-{i}", 60))
                    for i in range(size)
                ],
                T0,
            )
        )
        found[size] = [
            add(f"ttl{size}", ttl=30),
            add(f"throttle{size}", dedupe=Throttle(f"t{size}", 9)),
            add(f"throttled{size}", dedupe=Throttle(f"t{size}", 9)),
            add(f"debounce{size}", dedupe=Debounce(f"d{size}", 9)),
            add(f"debounced{size}", dedupe=Debounce(f"d{size}", 9)),
        ]
    assert found[1] == found[1000]
    assert max(found[1]) <= plain + 8


def test_a_batch_of_jobs_with_a_ttl_costs_no_more_than_one(engine: Engine) -> None:
    engine.add("first", ttl=60)
    one = cost(engine, lambda: engine.add("a", ttl=60))
    many = cost(engine, lambda: engine.add(*(f"j{i}" for i in range(500)), ttl=60))
    assert many <= one + 2


def test_repeats_that_are_not_due_cost_nothing(engine: Engine) -> None:
    engine.tick()
    engine.take()
    look, ask = cost(engine, engine.tick), cost(engine, engine.take)
    for i in range(300):
        engine.repeat(Every(3600), group=f"g{i}")
    assert cost(engine, engine.tick) == look
    assert cost(engine, engine.take) == ask


def test_a_worker_at_the_rate_of_its_queue_asks_cheaply(make_engine: MakeEngine) -> None:
    engine = make_engine(rate_limit=RateLimit(100, 1))
    fill(engine, 1000, 1000)
    engine.take(100)
    engine.take(100)
    assert cost(engine, lambda: engine.take(100)) < 15


def test_removing_the_first_jobs_of_a_deep_group_costs_no_more_commands_than_removing_few(engine: Engine) -> None:
    fill(engine, 3000, 1)
    engine.remove("j0")
    few = cost(engine, lambda: engine.remove(*(f"j{i}" for i in range(1, 11))))
    many = cost(engine, lambda: engine.remove(*(f"j{i}" for i in range(11, 1011))))
    assert many <= few + 10


def test_cancelling_a_deep_group_costs_a_few_commands_a_call(engine: Engine) -> None:
    fill(engine, 3000, 1)
    engine.call(commands.cancel_group("g0", 1, engine.now))
    few = cost(engine, lambda: engine.call(commands.cancel_group("g0", 10, engine.now)))
    many = cost(engine, lambda: engine.call(commands.cancel_group("g0", 1000, engine.now)))
    assert many <= few + 10


def test_jobs_that_come_back_and_start_again_in_one_call_cost_a_few_commands(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(600)), group=None)
    taken = engine.take(500)
    again = engine.advance(*(commands.released(t.id, t.fence) for t in taken[:1]), take=1)
    one = cost(engine, lambda: engine.release(*again.jobs))
    released = [commands.released(t.id, t.fence) for t in taken[1:]]
    found: list[list[str]] = []
    many = cost(engine, lambda: found.append([t.id for t in engine.advance(*released, take=400).jobs]))
    assert found == [[f"j{i}" for i in range(400)]]
    assert many <= one + 15


@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "no groups"])
def test_a_reserve_costs_some_commands_for_each_group_and_none_for_a_job_without(engine: Engine, grouped: bool) -> None:
    for n in range(170):
        engine.add(f"j{n}", group=f"g{n}" if grouped else None)
    engine.complete(*engine.take(0, fill=5))  # loads the script
    taken: list[commands.Taken] = []
    taking = cost(engine, lambda: taken.extend(engine.take(1, fill=80)))
    ending = cost(engine, lambda: engine.complete(*taken))
    assert len(taken) == 80
    assert taking <= 35 + (2 * 80 if grouped else 0)
    assert ending <= 25


def test_a_worker_that_stays_idle_makes_no_more_commands_where_reserves_were_taken(make_engine: MakeEngine) -> None:
    found = []
    for reserves in (False, True):
        engine = make_engine()
        engine.add("a", group=None)
        engine.complete(*engine.take(0 if reserves else 1, fill=int(reserves), worker="v", requester="v:0"))
        engine.pass_time(SECOND)
        engine.take(1)
        found.append(cost(engine, lambda engine=engine: engine.take(1)))  # type: ignore[misc]
    assert found[0] == found[1]
