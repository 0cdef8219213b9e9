"""Counts, lists and views are cheap, bounded, and equal to a brute-force reading of the keys."""

from __future__ import annotations

import random
from typing import Any

import pytest

from groupmq.client.queue.walks import WaitingWalk
from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine
from tests.support.by_hand import asked


def brute_force(engine: Engine) -> dict[str, int]:
    found = engine.look()
    groups = {job.group_id for job_id, job in found.jobs.items() if job_id not in found.completed | found.failed}
    return {
        "active": len(found.leases),
        "waiting": sum(len(members) for members in found.waiting.values()),
        "delayed": len(found.delayed),
        "completed": len(found.completed),
        "failed": len(found.failed),
        "groups": len(groups - {None}),
    }


def test_counts_equal_brute_force_after_every_step_of_a_random_life(make_engine: MakeEngine) -> None:
    engine = make_engine(kept=5)
    source = random.Random(4)
    held: list[commands.Taken] = []
    for step in range(400):
        match source.randrange(9):
            case 0 | 1 | 2:
                delay = source.choice([None, None, 2])
                engine.add(f"j{step}", group=source.choice([None, "a", "b", "c"]), delay=delay)
            case 3 | 4:
                held += engine.take(source.randrange(1, 4))
            case 5 if held:
                engine.complete(held.pop(source.randrange(len(held))))
            case 6 if held:
                taken = held.pop(source.randrange(len(held)))
                engine.retry_run(taken, source.choice([0, 1500]), yields=source.random() < 0.5)
            case 7 if held:
                engine.fail_run(held.pop(source.randrange(len(held))))
            case 8:
                engine.pass_time(source.choice([1, 500, 2000, LEASE]))
                engine.remove(f"j{source.randrange(step + 1)}")
        assert engine.counts() == brute_force(engine)


def test_counting_costs_the_same_however_many_there_are(engine: Engine) -> None:
    def cost() -> int:
        engine.client.config_resetstat()
        engine.call(commands.counts())
        return sum(stat["calls"] for stat in engine.client.info("commandstats").values())

    engine.add("a")
    engine.call(commands.counts())
    few = cost()
    engine.call(commands.add([draft(engine.options, 1, group_id=f"g{i}") for i in range(1000)], T0))
    assert cost() == few


@pytest.mark.parametrize(
    ("offset", "limit", "newest", "expected"),
    [
        (0, 3, False, ["j0", "j1", "j2"]),
        (8, 5, False, ["j8", "j9"]),
        (0, 3, True, ["j9", "j8", "j7"]),
        (9, 3, True, ["j0"]),
        (10, 3, False, []),
        (0, 0, False, []),
    ],
)
@pytest.mark.parametrize("kind", ["active", "delayed", "completed", "failed"])
def test_a_page_of_a_state_has_its_own_order(
    engine: Engine, kind: str, offset: int, limit: int, newest: bool, expected: list[str]
) -> None:
    for i in range(10):
        engine.add(f"j{i}", group=None, delay=1 + i if kind == "delayed" else None)
        if kind != "delayed":
            taken = engine.take_one(lease_ms=LEASE + i)
            if kind == "completed":
                engine.complete(taken)
            elif kind == "failed":
                engine.fail_run(taken)
    assert engine.call(commands.list_jobs(kind, offset, limit, newest=newest)) == expected


def waiting(engine: Engine, limit: int) -> list[str]:
    return engine.run(engine.operations._list_ids("waiting", limit))


def test_waiting_jobs_of_a_small_queue_are_listed_by_arrival(engine: Engine) -> None:
    ids = [f"j{i}" for i in range(30)]
    for i, job_id in enumerate(ids):
        engine.add(job_id, group=[None, "a", "b", "c"][i % 4])
    assert waiting(engine, 1000) == ids


def test_waiting_jobs_of_many_groups_are_all_listed_once_page_by_page(engine: Engine) -> None:
    drafts = [draft(engine.options, None, group_id=f"g{i % 300}", job_id=f"j{i}") for i in range(900)]
    engine.call(commands.add(drafts, T0))
    assert sorted(waiting(engine, 10_000)) == sorted(d.id for d in drafts)
    assert len(waiting(engine, 100)) == 100


def test_one_call_lists_no_more_waiting_jobs_than_asked_for_and_names_what_it_left_out(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(500)))
    engine.add("x", group="small")
    assert engine.call(commands.list_waiting("0", 10)) == ("0", ["x"], ["g"])


@pytest.mark.parametrize("page", [1, 7, 499, 500, 501])
def test_a_deep_group_is_listed_page_by_page_in_its_order(engine: Engine, page: int) -> None:
    ids = [f"j{i}" for i in range(500)]
    engine.add(*ids)
    engine.add("last", priority=9)
    engine.add("other", group="h")
    found, after = [], b""
    while True:
        listed, end = engine.call(commands.list_group("g", after, page))
        assert len(listed) <= page
        found += listed
        if end is None:
            break
        after = end
    assert found == [*ids, "last"]
    assert found == engine.run(engine.operations._list_waiting(1000, group_id="g"))


def test_what_waits_all_the_while_is_listed_though_others_come_and_go(engine: Engine) -> None:
    drafts = [draft(engine.options, None, group_id=f"g{i % 7}", job_id=f"j{i}") for i in range(700)]
    engine.call(commands.add(drafts, T0))
    walk, found = WaitingWalk(asked), []
    for n in range(10_000):
        page = engine.run(walk.next_page(30))
        if not page:
            break
        found += page
        engine.add(f"new{n}", group=f"g{n % 9}")
        engine.complete(engine.take_one())
    assert len(found) == len(set(found))
    assert set(engine.run(engine.operations._list_waiting(10_000))) & {d.id for d in drafts} <= set(found)


def test_groups_with_a_live_job_are_listed_once_and_without_the_nameless_one(engine: Engine) -> None:
    drafts = [draft(engine.options, None, group_id=f"g{i}") for i in range(1000)]
    engine.call(commands.add([*drafts[:-1], draft(engine.options, None)], T0))
    groups = engine.run(engine.operations.get_unique_groups(None))
    assert sorted(groups) == sorted(f"g{i}" for i in range(999))
    assert len(engine.run(engine.operations.get_unique_groups(10))) == 10


def look(engine: Engine, group: str = "g") -> list[Any]:
    return engine.call(commands.look_group(group, engine.now))


def test_a_group_shows_its_state_its_jobs_and_its_limit(engine: Engine) -> None:
    assert look(engine) == ["idle", 0, 0, 0, 1, 0, -1]
    engine.add("a", "b", "c")
    engine.add("d", delay=5)
    assert look(engine) == ["ready", 3, 0, 1, 1, 0, -1]
    taken = engine.take_one()
    assert look(engine) == ["busy", 2, 1, 1, 1, 0, -1]
    engine.retry_run(taken, 2 * SECOND)
    engine.pass_time(500)
    assert look(engine) == ["parked", 3, 0, 1, 1, 0, 1500]
    engine.limit("g", 4)
    engine.pause("g")
    assert look(engine)[0:2] == ["paused", 3]
    assert look(engine)[4:6] == [4, 1]


def test_looking_changes_nothing(engine: Engine) -> None:
    engine.add("a", "b")
    engine.retry_run(engine.take_one(), 5 * SECOND)
    engine.add("x", group="h")
    engine.take_one()
    before = engine.digest()
    engine.pass_time(60 * SECOND)
    calls: tuple[commands.Call[Any], ...] = (
        commands.counts(),
        commands.series(60, now=engine.now),
        commands.stats(10),
        commands.get(["a", "b", "x", "ghost"], engine.now),
        commands.look_group("g", engine.now),
        commands.list_groups("0"),
        commands.list_waiting("0", 10),
        commands.list_group("g", b"", 10),
        commands.list_jobs("active", 0, 10),
    )
    for call in calls:
        engine.call(call)
    assert engine.digest() == before


def test_views_come_in_the_order_asked_for_with_gaps_where_nothing_is(engine: Engine) -> None:
    engine.add("a", "b", data="x")
    views = engine.call(commands.get(["b", "ghost", "a", "b"], engine.now))
    assert [None if view is None else view.state for view in views] == ["waiting", None, "waiting", "waiting"]
    assert engine.call(commands.get([], engine.now)) == []


def test_a_job_in_its_back_off_shows_until_when(engine: Engine) -> None:
    engine.add("a")
    engine.retry_run(engine.take_one(), 5 * SECOND)
    assert engine.view("a").hold == T0 + 5 * SECOND
