"""Which group is served next: the oldest head first, or one after the other."""

from __future__ import annotations

import pytest

from groupmq.core.drafts import draft
from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import SECOND, T0, Engine


@pytest.fixture
def robin(make_engine: MakeEngine) -> Engine:
    return make_engine(fairness="round-robin")


def fill(engine: Engine, groups: int, deep: int) -> None:
    """Add `deep` jobs to each of many groups, one group after the other."""
    jobs = [
        draft(engine.options, None, group_id=f"g{g}", job_id=f"g{g}.{i}") for g in range(groups) for i in range(deep)
    ]
    for at in range(0, len(jobs), commands.CHUNK):
        engine.call(commands.add(jobs[at : at + commands.CHUNK], T0))


def test_the_oldest_head_goes_first_by_default(engine: Engine) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", group="b")
    assert engine.run_all() == ["a1", "a2", "a3", "b1"]


def test_in_a_round_each_group_starts_one_job(robin: Engine) -> None:
    robin.add("a1", "a2", "a3", group="a")
    robin.add("b1", "b2", group="b")
    robin.add("c1", group="c")
    assert robin.run_all() == ["a1", "b1", "c1", "a2", "b2", "a3"]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 50])
def test_the_round_is_the_same_however_many_are_taken_at_once(robin: Engine, n: int) -> None:
    fill(robin, 5, 4)
    assert [job_id.partition(".")[0] for job_id in robin.run_all(n)] == [f"g{g}" for g in range(5)] * 4


def test_a_newcomer_stands_at_the_end_of_the_line(robin: Engine) -> None:
    fill(robin, 3, 3)
    for group in range(2):
        taken = robin.take_one()
        assert taken.id == f"g{group}.0"
        robin.complete(taken)
    robin.add("new", group="new")
    assert robin.run_all() == ["g2.0", "g0.1", "g1.1", "new", "g2.1", "g0.2", "g1.2", "g2.2"]


def test_a_small_tenant_beside_a_thousand_deep_groups_starts_within_one_round(robin: Engine) -> None:
    fill(robin, 1000, 3)
    robin.run_all(limit=137)
    robin.add("mine", group="small")
    started = robin.run_all(limit=1001)
    assert "mine" in started


def test_with_the_oldest_first_the_same_tenant_waits_for_the_whole_backlog(engine: Engine) -> None:
    """The default keeps the order of arrival across groups to the end, which is why there is a choice."""
    fill(engine, 100, 3)
    engine.add("mine", group="small")
    assert engine.run_all()[-1] == "mine"


def test_a_group_that_grows_keeps_its_position(robin: Engine) -> None:
    robin.add("a1", group="a")
    robin.add("b1", group="b")
    robin.add("a2", "a3", group="a")
    robin.add("b0", group="b", order_ms=0)
    assert robin.run_all() == ["a1", "b0", "a2", "b1", "a3"]


def test_more_urgent_groups_have_a_round_of_their_own_in_front(robin: Engine) -> None:
    robin.add("a1", "a2", group="a", priority=1)
    robin.add("b1", "b2", group="b", priority=0)
    robin.add("c1", "c2", group="c", priority=0)
    assert robin.run_all() == ["b1", "c1", "b2", "c2", "a1", "a2"]


def test_a_group_that_may_run_several_at_once_takes_one_a_round(make_engine: MakeEngine) -> None:
    engine = make_engine(fairness="round-robin", group_concurrency=3)
    fill(engine, 3, 3)
    assert [job.id for job in engine.take(9)] == [f"g{g}.{i}" for i in range(3) for g in range(3)]


def test_a_group_that_was_held_joins_the_end_of_the_line(robin: Engine) -> None:
    robin.add("a1", "a2", group="a")
    taken = robin.take_one()
    robin.retry_run(taken, SECOND)
    robin.add("b1", "b2", group="b")
    robin.pass_time(SECOND)
    assert robin.run_all() == ["b1", "a1", "b2", "a2"]


def test_a_group_served_again_with_the_same_head_goes_to_the_end(make_engine: MakeEngine) -> None:
    """One call gives a job back and takes it again: the head behind it is the same, the position in the line is not."""
    engine = make_engine(fairness="round-robin", group_concurrency=2)
    fill(engine, 2, 3)
    taken = engine.take_one()
    jobs = engine.advance(commands.released(taken.id, taken.fence), take=2).jobs
    assert [job.id for job in jobs] == ["g1.0", "g0.0"]
    assert [job.id for job in engine.take(2)] == ["g1.1", "g0.1"]


def test_a_paused_group_does_not_stop_the_round(robin: Engine) -> None:
    fill(robin, 3, 2)
    robin.pause("g1")
    assert robin.run_all() == ["g0.0", "g2.0", "g0.1", "g2.1"]
    robin.resume("g1")
    assert robin.run_all() == ["g1.0", "g1.1"]


def test_jobs_without_a_group_stand_where_they_arrived(robin: Engine) -> None:
    robin.add("x1", "x2", group=None)
    robin.add("a1", "a2", group="a")
    assert robin.run_all() == ["x1", "x2", "a1", "a2"]


def test_order_inside_a_group_is_untouched_by_the_round(robin: Engine) -> None:
    for order in (5, 3, 4, 1, 2):
        robin.add(f"a{order}", group="a", order_ms=order)
        robin.add(f"b{order}", group="b", order_ms=-order)
    started = robin.run_all()
    assert [job_id for job_id in started if job_id[0] == "a"] == ["a1", "a2", "a3", "a4", "a5"]
    assert [job_id for job_id in started if job_id[0] == "b"] == ["b5", "b4", "b3", "b2", "b1"]


def test_the_place_in_the_round_is_not_damage_to_repair(robin: Engine) -> None:
    fill(robin, 20, 2)
    robin.run_all(limit=7)
    assert robin.run_now(robin.operations.repair()).clean
