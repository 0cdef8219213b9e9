"""The demand of a worker while calls fail, jobs are recalled, calls are large or a turn ends, without a server."""

from __future__ import annotations

import math

from groupmq.worker.fetching.demand import APART, LARGE, LATER, TOO_SOON, AfterAnswer, Demand, EndedCall, NextCall
from groupmq.worker.fetching.portions import HEADS
from tests.unit.worker.fetching.demands import GO_ON, SLEEP, Room, answer, asleep, call, demand, flowing, holding

# Trouble


def test_while_the_connection_is_lost_its_requester_waits_and_the_other_works() -> None:
    made, room = flowing()
    call(made, room, reports=1)
    made.hint()
    for _ in range(3):
        assert call(made, room, reports=2) is None
    assert call(made, room, requester=1) == NextCall(2, 1, 0, large=False)
    answer(made, room, 2, requester=1)
    assert made.asked == 2, "the jobs of the lost call may still arrive"
    assert answer(made, room, 2) == GO_ON


def test_a_call_that_ends_without_an_answer_frees_its_slots() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert made.ended(made.requesters[0]) == EndedCall(asked=4, overdue=False)
    assert (made.busy, made.asked) == (False, 0)
    assert made.uses_hint(room)


def test_the_slots_of_an_overdue_call_are_left_to_others() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    made.hint()
    assert (made.asked_in_time, made.is_hungry) == (4, True)
    assert made.call_overdue(made.requesters[0])
    assert not made.call_overdue(made.requesters[0]), "it is known: others were told to look once"
    assert (made.asked, made.asked_in_time, made.is_hungry) == (4, 0, False), "its server may be away"
    assert made.ended(made.requesters[0]) == EndedCall(asked=4, overdue=True)
    assert made.is_hungry


def test_after_a_hung_loop_it_asks_again_for_what_the_heartbeat_has_freed() -> None:
    """The heartbeat thread has reported outcomes in place of the loop, so no answer to a requester shows free slots."""
    made, room = demand(), Room(4)
    call(made, room)
    answer(made, room, 3)
    room.slots = 4
    assert call(made, room) is None
    made.hint()
    assert call(made, room) == NextCall(4, 1, 0, large=False)


def test_outcomes_that_the_heartbeat_took_over_leave_a_call_that_is_harmless() -> None:
    """The call was decided for reports that are gone when it is sent. Its answer leads to a request for jobs."""
    made, room = asleep(atomic=False)
    assert call(made, room, reports=1) == NextCall(0, 1, 0, large=False)
    assert answer(made, room, 0) == GO_ON
    assert call(made, room) == NextCall(4, 1, 0, large=False)


def test_prefetched_jobs_that_are_recalled_go_out_at_once_and_make_room_for_others() -> None:
    made, room = demand(2, short=True), Room(0, waiting=200)
    holding(made, 2)
    assert call(made, room) is None
    room.waiting = 0
    assert call(made, room, reports=200) == NextCall(0, 1, 0, large=True), "no slot is free: it only reports"
    room.slots = 1
    answer(made, room, 0)
    taken = call(made, room, now=1.0)
    assert isinstance(taken, NextCall)
    assert taken.take == 1
    assert taken.row > 1


def test_a_reserve_that_is_asked_back_is_reported_without_taking_another_at_once() -> None:
    made, room = demand(2, short=True), Room(0, waiting=0)
    made.wants = False
    assert call(made, room, reports=80) == NextCall(0, 1, 0, large=True)


# Calls that wait for the end of rows


def with_rows_in_hand(waiting: int) -> tuple[Demand, Room]:
    made, room = flowing(100, short=True)
    holding(made, 3)
    room.waiting = waiting
    return made, room


def test_reports_wait_a_moment_for_the_other_rows_of_their_requester() -> None:
    made, room = with_rows_in_hand(waiting=200)
    assert call(made, room, reports=10, now=10.0) == TOO_SOON
    assert call(made, room, reports=20, now=10.0 + LATER / 2) == TOO_SOON
    for _ in range(3):
        made.requesters[0].row_ended()
    ended = call(made, room, reports=40, now=10.0 + LATER / 2)
    assert isinstance(ended, NextCall)
    assert ended.take > 0


def test_reports_do_not_wait_for_a_row_that_turns_out_long() -> None:
    made, room = with_rows_in_hand(waiting=200)
    assert call(made, room, reports=10, now=10.0) == TOO_SOON
    assert call(made, room, reports=10, now=10.0 + 2 * LATER) == NextCall(0, 1, 0, large=False)
    answer(made, room, 0)
    assert call(made, room, reports=10, now=20.0) == TOO_SOON, "each call starts a new wait"


def test_reports_do_not_wait_where_there_is_little_to_do_or_nothing_more_is_taken() -> None:
    made, room = with_rows_in_hand(waiting=10)
    asked = call(made, room, reports=10, now=10.0)
    assert isinstance(asked, NextCall)
    assert asked.take > 0
    made, room = with_rows_in_hand(waiting=200)
    made.stop_taking()
    assert call(made, room, reports=10, now=10.0) == NextCall(0, 1, 0, large=False)


# Large calls


def test_large_calls_keep_apart() -> None:
    made, room = flowing(200)
    assert call(made, room, now=10.0) == NextCall(HEADS, 1, 0, large=True)
    assert call(made, room, requester=1, now=10.0 + APART / 2) == TOO_SOON
    assert made.unsent == 0
    assert call(made, room, requester=1, now=10.0 + APART + LATER) == NextCall(HEADS, 1, 0, large=True)


def test_a_large_call_that_is_not_sent_yet_holds_the_other_back() -> None:
    made, room = flowing(200)
    first = made.next_call(made.requesters[0], room, 0, 10.0)
    assert isinstance(first, NextCall)
    assert (made.unsent, made.large_sent) == (1, math.inf)
    assert call(made, room, requester=1, now=20.0) == TOO_SOON
    made.sent(20.0, large=True)
    assert (made.unsent, made.large_sent) == (0, 20.0)


def test_small_calls_and_lone_ones_need_not_keep_apart() -> None:
    made, room = flowing(200)
    call(made, room, now=10.0)
    room.slots = HEADS + 5
    assert call(made, room, requester=1, now=10.0) == NextCall(5, 1, 0, large=False)
    alone = demand(200)
    call(alone, Room(200), now=10.0)
    answer(alone, Room(200), HEADS)
    assert call(alone, Room(200), now=10.0) == NextCall(HEADS, 1, 0, large=True)


def test_many_reports_are_a_large_call_as_well() -> None:
    made, room = demand(), Room(0)
    assert call(made, room, reports=LARGE - 1) == NextCall(0, 1, 0, large=False)
    answer(made, room, 0)
    assert call(made, room, reports=LARGE) == NextCall(0, 1, 0, large=True)


# Turns of an exclusive queue


def test_a_hint_during_a_turn_that_is_over_does_not_count() -> None:
    """Other workers are waiting for their turn."""
    made, room = demand(exclusive=True), Room(4)
    call(made, room)
    assert answer(made, room, 4, epoch=7) == GO_ON
    assert made.epoch == 7
    room.slots = 4
    call(made, room)
    made.hint()
    assert answer(made, room, 0, epoch=0) == AfterAnswer(SLEEP, listen=True, dry=True)
    assert made.epoch == 0


def test_a_hint_counts_as_long_as_the_turn_lasts_or_none_has_begun() -> None:
    for before, after in ((7, 7), (0, 0), (0, 7)):
        made, room = demand(exclusive=True), Room(4)
        made.epoch = before
        call(made, room)
        made.hint()
        assert answer(made, room, 0, epoch=after) == GO_ON


def test_an_exclusive_queue_gets_no_rows() -> None:
    made = demand(exclusive=True, short=True)
    assert call(made, Room(4)) == NextCall(4, 1, 0, large=False)


def test_a_marker_that_comes_during_a_call_of_its_turn_goes_to_another_worker() -> None:
    """The call may end the turn. Then the hint would not count, and the marker would be lost."""
    made, room = demand(exclusive=True), Room(4)
    call(made, room)
    assert made.uses_hint(room) is False  # every slot is asked for
    assert answer(made, room, 1, epoch=7) is not None
    assert made.uses_hint(room)
    call(made, room, reports=1)
    made.requesters[0].asked = 0  # even if slots are free
    assert not made.uses_hint(room)
    answer(made, room, 0, epoch=0)
    assert made.uses_hint(room)
