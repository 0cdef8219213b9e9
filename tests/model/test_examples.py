"""What the state machine found once, told as short stories. Each step is compared with the model."""

from __future__ import annotations

import pytest
import redis

from groupmq import commands
from tests.model.machine import QueueMachine
from tests.model.strategies import Item, Setup, Wish

LANE = ("w1", "w1:0")
LEASE = 1000
NOW = (0, None)


def item(job_id: str, group: int = 0) -> Item:
    return Item(job_id, group, 0, None, NOW, 0, b"{}")


def wish(kind: str, which: int = 0, result: bytes | None = None, delay: int = 0) -> Wish:
    return Wish(which, kind, result, delay, "own")


@pytest.fixture
def machine(client: redis.Redis) -> QueueMachine:
    machine = QueueMachine(client)
    machine.open(Setup(("a", "b", "c"), 1, 3, 3, 3, -1))
    return machine


def advance(machine: QueueMachine, *wishes: Wish, take: int = 0) -> None:
    machine.advance(LANE, list(wishes), take, LEASE)
    machine.stored_as_the_model_says()


def states(machine: QueueMachine) -> dict[str, str]:
    return {job.id: job.state for job in machine.model.jobs.values()}


@pytest.mark.parametrize("kind", ["complete", "retry", "yield", "fail", "release"])
def test_report_after_the_deadline_counts_once_and_is_no_stall(machine: QueueMachine, kind: str) -> None:
    machine.add([item("job")])
    advance(machine, take=1)
    machine.go_to(machine.now + LEASE)
    advance(machine, wish(kind, delay=500))
    assert machine.model.counters["stalled"] == 0


def test_attempt_counts_when_the_job_is_taken_again_in_the_same_call(machine: QueueMachine) -> None:
    machine.add([item("job")])
    advance(machine, take=1)
    advance(machine, wish("retry"), take=1)
    machine.go_to(machine.now + LEASE)
    advance(machine, take=1)
    machine.go_to(machine.now + LEASE)
    advance(machine, take=1)
    assert states(machine) == {"job": "failed"}


def test_empty_results_and_data_are_stored(machine: QueueMachine) -> None:
    machine.add([item("job")])
    advance(machine, take=1)
    advance(machine, wish("complete", result=b""))
    assert machine.call(commands.update("job", b"")) == machine.model.update("job", b"")
    machine.stored_as_the_model_says()


def test_what_has_just_finished_can_be_cleaned(machine: QueueMachine) -> None:
    machine.add([item("job")])
    advance(machine, take=1)
    advance(machine, wish("complete"))
    machine.clean(which=0, detail=0)
    machine.stored_as_the_model_says()
    assert states(machine) == {}


def test_bound_lowered_to_nothing_reaches_the_jobs_kept_before(machine: QueueMachine) -> None:
    machine.add([item("first"), item("second")])
    advance(machine, take=1)
    advance(machine, wish("complete"), take=1)
    machine.a_worker_that_keeps_other_numbers_reports(completed=0, failed=0)
    machine.stored_as_the_model_says()
    assert states(machine) == {}


def test_groups_behind_held_ones_are_found_after_the_clock_stepped_back(machine: QueueMachine) -> None:
    """Two groups that became ready are held again; the call that finds that out leaves a hint for the third."""
    machine.add([item("a1", 0), item("b1", 1)])
    advance(machine, take=2)
    advance(machine, wish("retry", 0, delay=500), wish("retry", 1, delay=500))
    machine.add([item("c1", 2)])
    machine.go_to(machine.now + 500)
    machine.due(expire=True, promote=True, unpark=True, every=True)
    machine.stored_as_the_model_says()
    machine.go_to(machine.now - 1)
    for _ in range(2):
        machine.an_idle_worker_takes_the_marker_and_asks(LANE, 1, LEASE)
        machine.stored_as_the_model_says()
    assert states(machine) == {"a1": "waiting", "b1": "waiting", "c1": "active"}


def test_group_behind_a_held_one_and_a_taken_one_is_not_forgotten(machine: QueueMachine) -> None:
    """After the clock stepped back, one page shows the held group and the one that is taken, and not the third."""
    machine.add([item("a1", 0)])
    advance(machine, take=1)
    advance(machine, wish("retry", delay=500))
    machine.add([item("b1", 1), item("c1", 2)])
    machine.go_to(machine.now + 500)
    machine.due(expire=True, promote=True, unpark=True, every=True)
    machine.go_to(machine.now - 1)
    machine.an_idle_worker_takes_the_marker_and_asks(LANE, 1, LEASE)
    machine.stored_as_the_model_says()
    assert states(machine) == {"a1": "waiting", "b1": "active", "c1": "waiting"}


def test_retry_that_yields_keeps_its_place_when_it_is_promoted(machine: QueueMachine) -> None:
    machine.add([item("first"), item("second")])
    advance(machine, take=1)
    advance(machine, wish("yield", delay=500))
    machine.reschedule("first", 0, only_delayed=True)
    machine.stored_as_the_model_says()
    assert [job.id for job in machine.model.waiting("a")] == ["first", "second"]
