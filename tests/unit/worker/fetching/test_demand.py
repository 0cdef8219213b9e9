"""When a worker calls the server, and how much it asks for: every state and every event, without a server."""

from __future__ import annotations

import pytest

from groupmq.worker.fetching.demand import AfterAnswer, NextCall
from groupmq.worker.fetching.portions import HEADS
from tests.unit.worker.fetching.demands import GO_ON, NOTHING, SLEEP, Room, answer, asleep, call, demand, flowing

# Asking


def test_a_new_worker_asks_for_all_its_slots_with_one_requester() -> None:
    made, room = demand(), Room(4)
    assert call(made, room) == NextCall(4, 1, 0, large=False)
    assert call(made, room, requester=1) is None, "one call is enough to learn whether any job is ready"


def test_a_requester_whose_call_is_under_way_makes_no_other() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert made.busy
    made.hint()
    assert call(made, room, reports=3) is None


def test_slots_that_a_call_may_fill_are_not_asked_for_twice() -> None:
    made, room = flowing()
    assert call(made, room) == NextCall(2, 1, 0, large=False), "a requester asks for its share of the slots"
    assert made.asked == 2
    room.slots = 3
    assert call(made, room, requester=1) == NextCall(1, 1, 0, large=False)
    assert not made.uses_hint(room)


def test_no_slot_no_question() -> None:
    made = demand()
    assert call(made, Room(0)) is None
    assert made.wants, "it asks as soon as a slot is free"
    assert call(made, Room(1)) == NextCall(1, 1, 0, large=False)


def test_one_call_takes_from_a_bounded_number_of_groups() -> None:
    assert call(demand(1000), Room(1000)) == NextCall(HEADS, 1, 0, large=True)


def test_short_handlers_get_rows_and_a_reserve() -> None:
    made = demand(100, short=True)
    taken = call(made, Room(100))
    assert isinstance(taken, NextCall)
    assert taken.take == HEADS
    assert taken.row > 1
    assert taken.large


def test_jobs_that_have_not_started_or_are_to_come_count_as_taken() -> None:
    fresh, laden = demand(2, short=True), demand(2, short=True)
    light, heavy = call(fresh, Room(1)), call(laden, Room(1, waiting=990))
    assert isinstance(light, NextCall)
    assert isinstance(heavy, NextCall)
    assert heavy.row < light.row
    fresh.hint()
    second = call(fresh, Room(2, waiting=930), requester=1, reports=1, now=1.0)
    assert isinstance(second, NextCall)
    assert 930 + light.row - 1 + (second.row - 1) * second.take <= 1000


def test_a_worker_of_one_slot_has_one_requester() -> None:
    assert [len(demand(n).requesters) for n in (1, 2, 50)] == [1, 2, 2]
    assert len(demand(50, exclusive=True).requesters) == 1


# Answers


def test_a_full_answer_lets_both_requesters_ask() -> None:
    made, room = flowing()
    assert call(made, room) == NextCall(2, 1, 0, large=False)
    assert call(made, room, requester=1) == NextCall(2, 1, 0, large=False)


def test_an_answer_that_falls_short_means_sleep() -> None:
    made, room = flowing()
    call(made, room)
    room.slots = 2
    assert answer(made, room, 1) == AfterAnswer(SLEEP, listen=True, dry=True)
    assert not made.wants
    made, room = demand(), Room(4)
    call(made, room)
    assert answer(made, room, 3) == AfterAnswer(SLEEP, listen=True, dry=True)
    assert not made.wants
    assert call(made, room) is None


@pytest.mark.parametrize(("wait_ms", "sleep"), [(NOTHING, SLEEP), (250, 0.25), (10**7, SLEEP)])
def test_it_sleeps_until_something_is_due_but_not_for_too_long(wait_ms: int, sleep: float) -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert answer(made, room, 0, wait_ms).sleep == sleep


def test_an_answer_that_says_more_is_ready_is_followed_by_a_question() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert answer(made, room, 1, wait_ms=0) == GO_ON
    assert call(made, room) == NextCall(3, 1, 0, large=False)


def test_a_busy_worker_sleeps_without_watching_the_marker() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    room.slots = 1
    assert answer(made, room, 1) == AfterAnswer(SLEEP, listen=False, dry=True)


def test_nothing_is_dry_while_reports_are_under_way() -> None:
    """The reports may make a job ready."""
    made, room = flowing()
    call(made, room)
    call(made, room, requester=1, reports=2)
    assert answer(made, room, 0) == AfterAnswer(SLEEP, listen=True, dry=False)
    assert answer(made, room, 0, requester=1).dry


def test_nothing_is_dry_while_reports_wait_to_be_sent() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert answer(made, room, 0, reports_wait=True) == AfterAnswer(SLEEP, listen=True, dry=False)


# Hints


def test_a_hint_wakes_a_sleeper_once() -> None:
    made, room = asleep()
    assert made.uses_hint(room)
    made.hint()
    assert call(made, room) == NextCall(4, 1, 0, large=False)
    assert answer(made, room, 0).sleep == SLEEP
    assert call(made, room) is None


def test_a_hint_that_comes_while_a_call_is_under_way_outlives_its_answer() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    made.hint()
    assert answer(made, room, 0) == GO_ON
    assert call(made, room) == NextCall(4, 1, 0, large=False)


def test_a_hint_is_of_no_use_without_a_free_slot() -> None:
    made, room = asleep()
    room.slots = 0
    assert not made.uses_hint(room)


def test_a_paused_queue_is_asked_again_when_it_resumes_and_each_longest_sleep() -> None:
    """A paused queue answers like an empty one. Resuming sets the marker, and the end of a sleep is a hint as well."""
    made, room = asleep()
    for _ in range(3):
        assert call(made, room) is None
        made.hint()
        assert call(made, room) is not None
        assert answer(made, room, 0) == AfterAnswer(SLEEP, listen=True, dry=True)
    made.hint()
    call(made, room)
    assert answer(made, room, 4) == GO_ON
    assert made.flowing


# Reports


def test_outcomes_go_out_with_a_question() -> None:
    made, room = asleep()
    assert call(made, room, reports=1) == NextCall(4, 1, 0, large=False)


def test_outcomes_that_can_wait_do_unless_there_is_a_question() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    answer(made, room, 4)
    assert call(made, room, reports=3, urgent=False) is None, "no slot is free"
    room.slots = 1
    assert call(made, room, reports=3, urgent=False) == NextCall(1, 1, 0, large=False)


def test_an_outcome_asks_for_one_call() -> None:
    """Outcomes that come later, or did not fit in the call, ask for another one."""
    made, room = demand(), Room(0)
    made.requesters[0].hurry()
    assert call(made, room, reports=5, urgent=False) == NextCall(0, 1, 0, large=False)
    answer(made, room, 0)
    assert call(made, room, reports=2, urgent=False) is None
    made.requesters[0].hurry()
    assert call(made, room, reports=2, urgent=False) == NextCall(0, 1, 0, large=False)


def test_an_outcome_that_comes_while_a_call_is_under_way_asks_for_the_next() -> None:
    made, room = demand(), Room(0)
    call(made, room, reports=1)
    made.requesters[0].hurry()
    assert call(made, room, reports=1, urgent=False) is None
    answer(made, room, 0)
    assert call(made, room, reports=1, urgent=False) == NextCall(0, 1, 0, large=False)


def test_a_worker_without_room_only_reports() -> None:
    made, room = demand(), Room(0)
    assert call(made, room, reports=2) == NextCall(0, 1, 0, large=False)
    assert made.requesters[0].reporting


def test_what_was_only_reported_may_have_made_work_ready() -> None:
    """Another requester may have asked before the report, when nothing was ready."""
    made, room = asleep()
    room.slots = 0
    call(made, room, reports=1)
    room.slots = 1
    assert answer(made, room, 0) == GO_ON
    assert made.wants
    assert call(made, room) == NextCall(1, 1, 0, large=False)


def test_without_atomic_completion_a_call_reports_or_asks() -> None:
    made, room = demand(atomic=False), Room(4)
    assert call(made, room, reports=2) == NextCall(0, 1, 0, large=False)
    assert made.wants, "the request for jobs is postponed, not dropped"
    assert call(made, room, requester=1) == NextCall(4, 1, 0, large=False)
    answer(made, room, 0)
    answer(made, room, 0, requester=1)
    assert call(made, room) == NextCall(4, 1, 0, large=False)


# Closing and draining


def test_a_draining_worker_reports_and_takes_nothing() -> None:
    made, room = flowing()
    made.stop_taking()
    assert made.phase == "draining"
    assert call(made, room) is None
    assert call(made, room, reports=1) == NextCall(0, 1, 0, large=False)
    made.wants = False
    assert answer(made, room, 0) == GO_ON
    assert not made.wants, "a draining worker would never become idle"
    assert not made.uses_hint(room)
    made.hint()
    assert call(made, room) is None


def test_a_call_under_way_when_closing_begins_is_the_last_that_takes() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    made.stop_taking()
    assert answer(made, room, 4) == GO_ON, "the jobs that it brings are given back"
    room.slots = 4
    assert call(made, room) is None
    assert call(made, room, reports=4) == NextCall(0, 1, 0, large=False)


def test_a_draining_worker_leaves_the_marker_to_others() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    made.stop_taking()
    assert answer(made, room, 0) == AfterAnswer(SLEEP, listen=False, dry=True)


def test_a_closed_worker_makes_no_call_and_does_not_open_again() -> None:
    made, room = demand(), Room(4)
    made.close()
    made.stop_taking()
    made.hint()
    assert made.phase == "closed"
    assert call(made, room, reports=5) is None
