"""Failures that the state machine once found, as short tests. Each step is compared with the model."""

from __future__ import annotations

import pytest
import redis

from groupmq.core.limits import Debounce, Dedupe, Throttle
from groupmq.protocol import commands
from tests.model.machine import QueueMachine
from tests.model.strategies import KINDS, Item, Setup, Wish

REQUESTER, OTHER = ("w1", "w1:0"), ("w2", "w2:0")
LEASE = 1000


def item(job_id: str, group: int = 0, delay: int = 0, ttl: int = 0, dedupe: Dedupe | None = None) -> Item:
    return Item(job_id, group, 0, None, (delay, None), 0, b"{}", ttl, dedupe)


def wish(kind: str, which: int = 0, result: bytes | None = None, delay: int = 0) -> Wish:
    return Wish(which, kind, result, delay, "own")


def opened(client: redis.Redis, kind: str = "default", concurrency: int = 1) -> QueueMachine:
    machine = QueueMachine(client)
    (chosen,) = (known for known in KINDS if known.name == kind)
    machine.open(Setup(("a", "b", "c"), concurrency, 3, 3, 3, -1, chosen))
    return machine


@pytest.fixture
def machine(client: redis.Redis) -> QueueMachine:
    return opened(client)


def advance(machine: QueueMachine, *wishes: Wish, take: int = 0) -> None:
    machine.advance(REQUESTER, list(wishes), take, LEASE)
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
    assert machine.call(commands.update("job", b"", machine.now)) == machine.model.update("job", b"", machine.now)
    machine.stored_as_the_model_says()


def test_what_has_just_finished_can_be_cleaned(machine: QueueMachine) -> None:
    machine.add([item("job")])
    advance(machine, take=1)
    advance(machine, wish("complete"))
    machine.clean(which=0, detail=0)
    machine.stored_as_the_model_says()
    assert states(machine) == {}


def test_worker_that_keeps_nothing_leaves_what_others_keep(machine: QueueMachine) -> None:
    machine.add([item("first"), item("second")])
    advance(machine, take=1)
    advance(machine, wish("complete"), take=1)
    machine.a_worker_that_keeps_other_numbers_reports(completed=0, failed=0)
    machine.stored_as_the_model_says()
    assert states(machine) == {"first": "completed"}


def test_groups_behind_held_ones_are_found_after_the_clock_stepped_back(machine: QueueMachine) -> None:
    """Two groups that became ready are held again; the call that notices that leaves a marker for the third."""
    machine.add([item("a1", 0), item("b1", 1)])
    advance(machine, take=2)
    advance(machine, wish("retry", 0, delay=500), wish("retry", 1, delay=500))
    machine.add([item("c1", 2)])
    machine.go_to(machine.now + 500)
    machine.due(expire=True, promote=True, unpark=True, every=True)
    machine.stored_as_the_model_says()
    machine.go_to(machine.now - 1)
    for _ in range(2):
        machine.an_idle_worker_takes_the_marker_and_asks(REQUESTER, 1, LEASE)
        machine.stored_as_the_model_says()
    assert states(machine) == {"a1": "waiting", "b1": "waiting", "c1": "active"}


def test_group_behind_a_held_one_and_a_taken_one_is_not_forgotten(machine: QueueMachine) -> None:
    """After the clock stepped back, one page contains the held group and the one that is taken, but not the third."""
    machine.add([item("a1", 0)])
    advance(machine, take=1)
    advance(machine, wish("retry", delay=500))
    machine.add([item("b1", 1), item("c1", 2)])
    machine.go_to(machine.now + 500)
    machine.due(expire=True, promote=True, unpark=True, every=True)
    machine.go_to(machine.now - 1)
    machine.an_idle_worker_takes_the_marker_and_asks(REQUESTER, 1, LEASE)
    machine.stored_as_the_model_says()
    assert states(machine) == {"a1": "waiting", "b1": "active", "c1": "waiting"}


def test_retry_that_yields_keeps_its_place_when_it_is_promoted(machine: QueueMachine) -> None:
    machine.add([item("first"), item("second")])
    advance(machine, take=1)
    advance(machine, wish("yield", delay=500))
    machine.reschedule("first", 0, only_delayed=True)
    machine.stored_as_the_model_says()
    assert [job.id for job in machine.model.waiting("a")] == ["first", "second"]


def test_job_that_is_due_and_past_its_ttl_fails_and_joins_nothing(machine: QueueMachine) -> None:
    machine.add([item("job", delay=50, ttl=1)])
    machine.go_to(machine.now + 51)
    advance(machine, take=1)
    assert states(machine) == {"job": "failed"}


def test_throttle_and_debounce_with_the_same_key_are_not_the_same(machine: QueueMachine) -> None:
    machine.add([item("first", dedupe=Throttle("k", 0.5)), item("second", dedupe=Debounce("k", 0.5))])
    machine.stored_as_the_model_says()
    assert states(machine) == {"first": "waiting", "second": "delayed"}


def test_debounce_without_a_ttl_ends_the_one_of_the_add_before(machine: QueueMachine) -> None:
    machine.add([item("first", ttl=1, dedupe=Debounce("k", 0.5)), item("second", dedupe=Debounce("k", 0.5))])
    machine.stored_as_the_model_says()
    machine.go_to(machine.now + 501)
    advance(machine, take=1)
    assert states(machine) == {"first": "active"}


def test_debounce_leaves_a_later_job_with_the_same_id_alone(machine: QueueMachine) -> None:
    machine.add([item("job", group=0, dedupe=Debounce("k", 0.5))])
    machine.remove_all(["job"], None)
    machine.add([item("job", group=1, delay=5000)])
    machine.add([item("other", group=0, dedupe=Debounce("k", 0.5))])
    machine.stored_as_the_model_says()
    assert states(machine) == {"job": "delayed", "other": "delayed"}


def test_late_report_ends_no_turn_that_has_another_lease(client: redis.Redis) -> None:
    machine = opened(client, "exclusive")
    machine.add([item("a1", 0), item("b1", 1)])
    advance(machine, take=1)
    machine.go_to(machine.now + LEASE // 2)
    advance(machine, take=1)
    machine.go_to(machine.now + LEASE // 2)
    advance(machine, wish("complete", 0))
    assert machine.model.turn is not None


def test_turn_that_an_operator_ends_leaves_no_marker_of_its_own(client: redis.Redis) -> None:
    machine = opened(client, "exclusive")
    machine.add([item("a1"), item("a2")])
    advance(machine, take=1)
    machine.remove_all(["a1"], None)
    machine.stored_as_the_model_says()


def test_worker_with_an_old_epoch_leaves_the_marker_to_others(client: redis.Redis) -> None:
    machine = opened(client, "exclusive")
    machine.add([item("job")])
    advance(machine, take=1)
    machine.go_to(machine.now + LEASE)
    machine.advance(OTHER, [], 0, LEASE)
    machine.an_idle_worker_takes_the_marker_and_asks(REQUESTER, 1, LEASE)
    machine.stored_as_the_model_says()
    assert states(machine) == {"job": "waiting"}


def test_group_that_was_served_and_has_the_same_head_goes_to_the_end_of_the_line(client: redis.Redis) -> None:
    machine = opened(client, "round robin", concurrency=2)
    machine.add([item("a1"), item("a2")])
    advance(machine, take=1)
    machine.add([item("b1", 1)])
    advance(machine, wish("retry"), take=1)
    advance(machine, take=1)
    assert states(machine) == {"a1": "active", "a2": "waiting", "b1": "active"}


def test_head_that_waits_for_its_back_off_and_then_for_the_rate_stands_in_one_place(client: redis.Redis) -> None:
    machine = opened(client, "round robin with rates")
    machine.add([item("job")])
    advance(machine, take=1)
    advance(machine, wish("retry", delay=1))
    machine.go_to(machine.now + 1)
    machine.for_damage()
    machine.stored_as_the_model_says()


def test_same_settings_of_a_group_again_change_nothing(machine: QueueMachine) -> None:
    for _ in range(2):
        machine.change_group(0, paused=True)
        machine.change_group(0, limit=4)
        machine.change_group(0, rate=(2, 500))
    machine.stored_as_the_model_says()


def granted(machine: QueueMachine, job: Item) -> None:
    """Add a job that is granted to a worker, which does not receive it."""
    machine.an_idle_worker_offers_a_slot_and_a_job_comes(REQUESTER, job, LEASE, reads=False, again=False)
    machine.stored_as_the_model_says()


def test_a_worker_that_gets_its_grant_again_passes_on_the_marker(machine: QueueMachine) -> None:
    """Its answer has only the granted job, so another worker has to be woken for the other one."""
    granted(machine, item("first"))
    machine.add([item("second", 1)])
    machine.an_idle_worker_takes_the_marker_and_asks(REQUESTER, 1, LEASE)
    machine.stored_as_the_model_says()
    assert states(machine) == {"first": "active", "second": "waiting"}


def test_a_heartbeat_that_refuses_a_grant_does_not_renew_it(machine: QueueMachine) -> None:
    granted(machine, item("first"))
    machine.beat(REQUESTER, None, LEASE, [(0, "own")], leaves=False)
    machine.stored_as_the_model_says()
    assert states(machine) == {"first": "waiting"}


def test_a_job_that_began_and_is_given_back_in_one_call_has_answered_its_recall(machine: QueueMachine) -> None:
    machine.add([item("job")])
    machine.requests += (-1 - machine.requests) % machine.confirming  # the next request confirms
    advance(machine, take=1)
    machine.remove_all(["job"], None)
    advance(machine, wish("begin"), wish("release", 1))  # 1: the report says that it has not begun
    assert states(machine) == {"job": "waiting"}


def test_a_prefetched_job_that_is_named_twice_is_cancelled_once(machine: QueueMachine) -> None:
    """Its lease is over, so it is released and removed; the second time it must not be asked to stop."""
    machine.add([item("first"), item("second")])
    machine.advance(REQUESTER, [], 1, LEASE, 2)
    machine.go_to(machine.now + LEASE)
    machine.cancel(["second", "second"])
    machine.stored_as_the_model_says()
    assert states(machine) == {"first": "active"}
