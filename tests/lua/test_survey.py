"""The survey for a monitor: the groups, runs and failures that it reports, and the bounds of what it reads."""

from __future__ import annotations

from typing import Any

import pytest

from groupmq.core.drafts import draft
from groupmq.core.limits import RateLimit
from groupmq.protocol import commands
from groupmq.protocol.commands import Survey
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine


def survey(engine: Engine, cursor: str = "0", again: tuple[str, ...] = (), **most: int) -> Survey:
    asked = {"groups": 5, "runs": 5, "failures": 5} | most
    return engine.call(commands.survey(cursor, again, **asked, now=engine.now))


def fill(engine: Engine, sizes: dict[str, int]) -> None:
    drafts = [draft(engine.options, n, group_id=name) for name, size in sizes.items() for n in range(size)]
    for at in range(0, len(drafts), 1000):
        engine.call(commands.add(drafts[at : at + 1000], engine.now))


def test_an_empty_queue_has_nothing_to_tell(engine: Engine) -> None:
    assert survey(engine) == (T0, "0", [], [], [], [])


def test_the_largest_groups_come_first_and_no_more_than_asked_for(engine: Engine) -> None:
    fill(engine, {f"g{n}": n for n in range(1, 9)})
    assert [(group.id, group.waiting) for group in survey(engine).busiest] == [
        *(("g8", 8), ("g7", 7), ("g6", 6), ("g5", 5)),
        ("g4", 4),
    ]


def test_what_runs_counts_and_what_is_only_delayed_does_not(engine: Engine) -> None:
    engine.add("a", group="busy")
    engine.add("b", group="late", delay=60)
    engine.take(1)
    found = survey(engine)
    assert found.busiest == [("busy", "idle", 0, 1, 0, -1, -1)]
    assert found.most_delayed == []


def test_a_group_shows_why_and_how_long_its_head_waits(make_engine: MakeEngine) -> None:
    engine = make_engine(group_rate_limit=RateLimit(1, 60))
    for name in ("busy", "paused", "parked"):
        engine.add(name, group=name)
        engine.add(f"{name}-2", group=name)
        engine.pass_time(SECOND)
    engine.call(commands.switch(group_id="paused", paused=True, now=engine.now))
    busy, parked = engine.take(2)
    assert (busy.id, parked.id) == ("busy", "parked")
    engine.complete(parked)
    engine.pass_time(SECOND)
    told = {group.id: (group.state, group.waited_ms, group.held_ms) for group in survey(engine).most_delayed}
    assert told == {"busy": ("busy", 4000, -1), "paused": ("paused", 3000, -1), "parked": ("parked", 2000, 59_001)}


def test_jobs_without_a_group_are_a_group_without_a_name(engine: Engine) -> None:
    engine.add("a", group=None)
    engine.add("b", group=None)
    assert survey(engine).busiest == [("", "ready", 2, 0, 0, 0, -1)]


def test_every_group_is_seen_page_by_page_and_those_asked_for_each_time(engine: Engine) -> None:
    fill(engine, {f"g{n}": 1 for n in range(2000)} | {"large": 3})
    cursor, pages, found = "0", 0, []
    while cursor != "0" or not pages:
        page = survey(engine, cursor)
        cursor, pages = page.cursor, pages + 1
        found += [group.id for group in page.busiest]
        assert survey(engine, cursor, ("large", "nobody")).busiest[0].id == "large"
    assert 1 < pages <= 40
    assert "large" in found


@pytest.mark.parametrize("groups", [10, 3000])
def test_it_costs_no_more_in_a_deep_queue(engine: Engine, groups: int) -> None:
    fill(engine, {f"g{n}": 6000 // groups for n in range(groups)})
    survey(engine)
    engine.client.config_resetstat()
    survey(engine)
    stats: dict[str, Any] = engine.client.info("commandstats")
    assert sum(stat["calls"] for stat in stats.values()) < 1200


def test_the_longest_run_comes_first_whatever_its_lease(engine: Engine) -> None:
    fill(engine, {f"g{n}": 1 for n in range(8)})
    taken = []
    for _ in range(8):
        taken += engine.take(1, worker="shop")
        engine.pass_time(SECOND)
    engine.call(commands.beat("shop", None, LEASE, [(taken[0].id, taken[0].fence)], engine.now))
    runs = survey(engine).runs
    assert [run.id for run in runs] == [one.id for one in taken[:5]]
    assert runs[0] == (taken[0].id, "g0", 1, T0, "shop")


def test_failures_are_one_a_job_with_what_became_of_it(engine: Engine) -> None:
    for name in ("again", "dead", "gone"):
        engine.add(name, group=name)
    again, dead, gone = engine.take(3)
    engine.retry_run(again, 0)
    engine.fail_run(dead)
    engine.fail_run(gone)
    engine.remove("gone")
    (again,) = engine.take(1)
    engine.retry_run(again, SECOND)
    told = [(one.id, one.attempt, one.final, one.state) for one in survey(engine).failures]
    assert told == [("again", 2, False, "waiting"), ("gone", 1, True, ""), ("dead", 1, True, "failed")]
    assert survey(engine, failures=0).failures == []


def test_it_writes_nothing(make_engine: MakeEngine) -> None:
    engine = make_engine(fairness="round-robin")
    fill(engine, {f"g{n}": 3 for n in range(5)})
    engine.fail_run(engine.take(2)[0])
    before = engine.digest()
    survey(engine, again=("g1", "nobody"))
    assert engine.digest() == before
