"""Taking jobs: from which groups, in which order, and how many at once."""

from __future__ import annotations

from groupmq.protocol import commands
from tests.lua.conftest import MakeEngine
from tests.lua.engine import LEASE, SECOND, T0, Engine


def test_the_second_job_of_a_group_waits_for_the_first(engine: Engine) -> None:
    engine.add("a", "b")
    first = engine.take_one()
    assert (first.id, engine.take(5), engine.group()) == ("a", [], "busy")
    engine.complete(first)
    assert engine.take_one().id == "b"


def test_groups_run_beside_each_other(engine: Engine) -> None:
    for group in ("g1", "g2", "g3"):
        engine.add(f"{group}-1", f"{group}-2", group=group)
    assert [job.id for job in engine.take(10)] == ["g1-1", "g2-1", "g3-1"]


def test_across_groups_the_most_urgent_head_comes_first_then_the_oldest(engine: Engine) -> None:
    engine.add("lazy", group="a", priority=9)
    engine.add("first", group="b", priority=3)
    engine.add("second", group="c", priority=3)
    engine.add("urgent", group="d", priority=0)
    engine.add("ungrouped", group=None, priority=3)
    assert [job.id for job in engine.take(10)] == ["urgent", "first", "second", "ungrouped", "lazy"]


def test_an_old_order_gives_a_group_no_precedence_over_other_groups(engine: Engine) -> None:
    engine.add("a", group="a", order_ms=T0)
    engine.add("b", group="b", order_ms=-(2**63))
    assert [job.id for job in engine.take(2)] == ["a", "b"]


def test_a_group_is_not_drained_while_others_wait(engine: Engine) -> None:
    engine.add("a1", "a2", "a3", group="a")
    engine.add("b1", "b2", group="b")
    assert engine.run_all() == ["a1", "a2", "a3", "b1", "b2"]  # by arrival: all of a came before b
    engine.add("a4", group="a")
    engine.add("b3", group="b")
    engine.add("a5", group="a")
    engine.add("b4", group="b")
    assert engine.run_all() == ["a4", "b3", "a5", "b4"]


def test_no_number_of_busy_groups_hides_a_ready_one(engine: Engine) -> None:
    for i in range(100):
        engine.add(f"{i}-1", f"{i}-2", group=str(i))
    assert len(engine.take(100)) == 100
    engine.add("x", group="x")
    assert engine.take_one().id == "x"


def test_a_batch_takes_no_more_than_it_was_asked_for(engine: Engine) -> None:
    engine.add(*(f"j{i}" for i in range(10)), group=None)
    assert [len(engine.take(n)) for n in (0, 1, 3, 100, 1)] == [0, 1, 3, 6, 0]


def test_a_group_may_run_as_many_as_its_limit_at_once_in_order(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=3)
    engine.add(*(f"j{i}" for i in range(7)))
    first = engine.take(10)
    assert [job.id for job in first] == ["j0", "j1", "j2"]
    assert engine.take(10) == []
    engine.complete(first[1])
    assert [job.id for job in engine.take(10)] == ["j3"]
    engine.complete(first[0], first[2])
    assert [job.id for job in engine.take(1)] == ["j4"]
    assert [job.id for job in engine.take(10)] == ["j5"]


def test_a_group_with_room_for_more_stands_among_the_others(make_engine: MakeEngine) -> None:
    engine = make_engine(group_concurrency=2)
    engine.add("a1", group="a")
    engine.add("b1", group="b")
    engine.add("a2", group="a")
    engine.add("b2", group="b")
    assert [job.id for job in engine.take(10)] == ["a1", "b1", "a2", "b2"]


def test_a_taken_job_says_all_that_its_worker_needs(engine: Engine) -> None:
    engine.add("a", data={"x": 1})
    taken = engine.take_one(worker="w1")
    view = engine.view("a")
    assert (view.state, view.fence, view.started, view.worker) == ("active", taken.fence, T0, "w1")
    assert taken.record == view.record
    assert taken.stored == commands.FRESH


def test_fences_only_grow_even_if_the_clock_steps_back(engine: Engine) -> None:
    fences: list[int] = []
    for step in (0, 0, 5, -10 * SECOND, -(10**9), 1):
        engine.now = T0 + step
        engine.add(f"j{len(fences)}", group=None)
        fences.append(engine.take_one().fence)
    assert fences == sorted(set(fences))
    assert fences[0] >= T0 * 1000


def test_an_answer_says_when_something_is_due_next(engine: Engine) -> None:
    assert engine.advance(take=1).wait_ms == -1
    engine.add("a", delay=5)
    assert engine.advance(take=1).wait_ms == 5000
    engine.add("b", group="other")
    engine.take_one(lease_ms=2000)
    engine.pass_time(500)
    assert engine.advance(take=1).wait_ms == 1500


def test_a_report_and_the_next_reservation_are_one_call(engine: Engine) -> None:
    engine.add("a", "b", "c")
    first = engine.take_one()
    answer = engine.advance(commands.completed("a", first.fence, b"1"), take=1)
    assert (answer.accepted, [job.id for job in answer.jobs]) == ([1], ["b"])
    assert (engine.state("a"), engine.state("b"), engine.state("c")) == ("completed", "active", "waiting")


def test_a_completion_gives_its_group_no_precedence_over_a_more_urgent_one(engine: Engine) -> None:
    engine.add("a", "b", priority=5)
    first = engine.take_one()
    engine.add("x", group="other", priority=0)
    answer = engine.advance(commands.completed("a", first.fence, None), take=2)
    assert [job.id for job in answer.jobs] == ["x", "b"]


def test_a_worker_that_leaves_work_behind_wakes_another(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    engine.woken()
    engine.take(1)
    assert engine.woken()
    engine.take(1)
    assert not engine.woken()


def test_the_end_of_a_run_wakes_somebody_for_the_next_job_of_the_group(engine: Engine) -> None:
    engine.add("a", "b")
    taken = engine.take_one()
    engine.woken()
    engine.complete(taken)
    assert engine.woken()


def test_a_heartbeat_renews_what_is_held_and_names_what_is_lost(engine: Engine) -> None:
    engine.add("a", group="a")
    engine.add("b", group="b")
    a, b = engine.take(2)
    engine.pass_time(LEASE - 1)
    held = [("a", a.fence), ("b", b.fence - 1), ("ghost", 5)]
    assert engine.call(commands.beat("w", None, LEASE, held, engine.now)).lost == ["b", "ghost"]
    assert [one.id for one in engine.stall(1)] == ["b"]
    assert engine.state("a") == "active"
    assert [one.id for one in engine.stall(LEASE - 1)] == ["a"]


def test_presence_is_said_by_heartbeats_and_ends_with_leaving(engine: Engine) -> None:
    engine.call(commands.beat("w", "info", LEASE, [], engine.now))
    assert engine.call(commands.stats()).workers == {"w": f"{T0} info".encode()}
    engine.add("a")
    engine.take()
    engine.call(commands.leave(["w"], ["w:0"]))
    assert engine.call(commands.stats()).workers == {}
    assert engine.client.hlen(engine.key("requesters")) == 0
    assert engine.state("a") == "active"
