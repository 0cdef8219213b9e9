"""The schedule of faults depends on its seed and on nothing else."""

from __future__ import annotations

import pytest

from tests.chaos.cast import QUEUES, actors, groups_of, targets
from tests.chaos.schedule import ALL, KINDS, LEASE, WAYS, chosen, gaps_of, plan

TARGETS = targets(actors(ALL))


def test_the_same_seed_makes_the_same_schedule() -> None:
    assert plan(7, 600, ALL, TARGETS) == plan(7, 600, ALL, TARGETS)


def test_another_seed_makes_another_schedule() -> None:
    assert plan(7, 60, ALL, TARGETS) != plan(8, 60, ALL, TARGETS)


def test_leaving_kinds_out_does_not_move_the_others() -> None:
    everything = plan(7, 300, ALL, TARGETS)
    assert plan(7, 300, ["kill", "cut"], TARGETS) == [f for f in everything if f.kind in ("kill", "cut")]


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    assert plan(7, 300, ALL, TARGETS)[:50] == [f for f in plan(7, 900, ALL, TARGETS) if f.at < 300][:50]


def test_every_kind_strikes_and_only_whom_it_may() -> None:
    faults = plan(1, 600, ALL, TARGETS)
    assert {fault.kind for fault in faults} == set(KINDS)
    for fault in faults:
        assert fault.target in TARGETS[KINDS[fault.kind].targets]
        assert 0 < fault.at < 600


def test_a_freeze_outlasts_the_lease() -> None:
    assert all(fault.length > LEASE for fault in plan(1, 600, ["freeze"], TARGETS))


def test_an_hour_has_thousands_of_faults() -> None:
    assert len(plan(1, 3600, ALL, TARGETS)) > 5000


def test_some_kinds_may_strike_more_often_and_the_others_do_not_move() -> None:
    usual, dense = plan(7, 300, ALL, TARGETS), plan(7, 300, ALL, TARGETS, {"failover": 1.0})
    assert sum(f.kind == "failover" for f in dense) > 3 * sum(f.kind == "failover" for f in usual)
    assert [f for f in dense if f.kind != "failover"] == [f for f in usual if f.kind != "failover"]


def test_intervals_of_faults_are_given_in_seconds() -> None:
    assert gaps_of(None) == {}
    assert gaps_of("failover=1.5, move=3") == {"failover": 1.5, "move": 3.0}
    for wrong in ("failover", "failover=0", "earthquake=1", "move=often"):
        with pytest.raises(ValueError, match=r"could not convert|not a fault with seconds"):
            gaps_of(wrong)


def test_kinds_are_chosen_by_their_names() -> None:
    assert chosen(None) == ALL
    assert chosen("freeze, kill") == ("kill", "freeze")
    assert set(WAYS) <= set(ALL)
    with pytest.raises(ValueError, match="unknown faults earthquake"):
        chosen("kill,earthquake")


def test_witnesses_are_spared() -> None:
    struck = {name for role in ("worker", "process", "wire") for name in TARGETS[role]}
    assert struck.isdisjoint({"recorder", "operator"})


def test_ways_to_run_can_be_left_out() -> None:
    names = [actor.name for actor in actors(())]
    assert "operator" not in names
    assert not any("skew" in a.settings or "release" in a.settings for a in actors(()))
    assert any("skew" in a.settings for a in actors(["skew"]))


def test_every_queue_has_workers_and_as_many_groups_as_it_says() -> None:
    served = {work["queue"] for a in actors(ALL) if a.role == "worker" for work in a.settings["works"]}
    assert served == {role.name for role in QUEUES}
    assert all(len(set(groups_of(role))) == role.groups for role in QUEUES)
