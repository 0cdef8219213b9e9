"""When a worker calls the server, and how much it asks for: every state and every event, without a server."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from groupmq.worker.demand import APART, LARGE, LATER, TOO_SOON, AfterAnswer, Demand, LaneDemand, NextCall
from groupmq.worker.portions import HEADS
from groupmq.worker.prefetch import Prefetch

SLEEP = 30.0
NOTHING = -1
GO_ON = AfterAnswer()


@dataclass
class Room:
    """The slots of an executor."""

    slots: int
    waiting: int = 0

    def free(self) -> int:
        return self.slots

    def unstarted(self) -> int:
        return self.waiting


def demand(concurrency: int = 4, *, atomic: bool = True, exclusive: bool = False, short: bool = False) -> Demand:
    prefetch = Prefetch("auto")
    if short:
        prefetch.typical = 1e-5
    return Demand(prefetch, concurrency, SLEEP, atomic=atomic, exclusive=exclusive)


def call(
    of: Demand, room: Room, lane: int = 0, *, reports: int = 0, urgent: bool | None = None, now: float = 0.0
) -> NextCall | Literal["too soon"] | None:
    """Ask what now, and send what it says."""
    wanted = of.next_call(of.lanes[lane], room, reports, now, urgent=reports > 0 if urgent is None else urgent)
    if isinstance(wanted, NextCall):
        of.sent(now, large=wanted.large)
    return wanted


def answer(of: Demand, room: Room, brought: int, wait_ms: int = NOTHING, lane: int = 0, epoch: int = 0) -> AfterAnswer:
    """The call of a lane comes back with so many rows, which take their slots."""
    asked = of.ended(of.lanes[lane])
    room.slots -= brought
    return of.answered(of.lanes[lane], asked, brought, wait_ms, epoch, room.slots)


def asleep(concurrency: int = 4, **options: bool) -> tuple[Demand, Room]:
    """A worker that has asked and was told that nothing is ready."""
    made, room = demand(concurrency, **options), Room(concurrency)
    assert call(made, room) == NextCall(concurrency, 1, 0, large=False)
    assert answer(made, room, 0) == AfterAnswer(SLEEP, listen=True, dry=True)
    return made, room


def flowing(concurrency: int = 4, **options: bool) -> tuple[Demand, Room]:
    """A worker whose last call brought all that it asked for, and which has run it all."""
    made, room = demand(concurrency, **options), Room(concurrency)
    call(made, room)
    assert answer(made, room, concurrency) == GO_ON
    room.slots = concurrency
    return made, room


# Asking


def test_a_new_worker_asks_for_all_its_slots_with_one_lane() -> None:
    made, room = demand(), Room(4)
    assert call(made, room) == NextCall(4, 1, 0, large=False)
    assert call(made, room, lane=1) is None, "one call is enough to learn whether there is anything"


def test_a_lane_whose_call_is_under_way_makes_no_other() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert made.busy
    made.hint()
    assert call(made, room, reports=3) is None


def test_slots_that_a_call_may_fill_are_not_asked_for_twice() -> None:
    made, room = flowing()
    assert call(made, room) == NextCall(2, 1, 0, large=False), "its share"
    assert made.asked == 2
    room.slots = 3
    assert call(made, room, lane=1) == NextCall(1, 1, 0, large=False)
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
    second = call(fresh, Room(2, waiting=930), lane=1, reports=1, now=1.0)
    assert isinstance(second, NextCall)
    assert 930 + light.row - 1 + (second.row - 1) * second.take <= 1000


def test_a_worker_of_one_slot_has_one_lane() -> None:
    assert [len(demand(n).lanes) for n in (1, 2, 50)] == [1, 2, 2]
    assert len(demand(50, exclusive=True).lanes) == 1


# Answers


def test_a_full_answer_lets_both_lanes_ask() -> None:
    made, room = flowing()
    assert call(made, room) == NextCall(2, 1, 0, large=False)
    assert call(made, room, lane=1) == NextCall(2, 1, 0, large=False)


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
    """They may make a job ready."""
    made, room = flowing()
    call(made, room)
    call(made, room, lane=1, reports=2)
    assert answer(made, room, 0) == AfterAnswer(SLEEP, listen=True, dry=False)
    assert answer(made, room, 0, lane=1).dry


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
    """A paused queue answers like an empty one; its resumption sets the marker, and the timer is a hint as well."""
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


def test_a_worker_without_room_only_reports() -> None:
    made, room = demand(), Room(0)
    assert call(made, room, reports=2) == NextCall(0, 1, 0, large=False)
    assert made.lanes[0].reporting


def test_what_was_only_reported_may_have_made_work_ready() -> None:
    """Another lane may have asked before it, in vain."""
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
    assert made.wants, "the question is put off, not dropped"
    assert call(made, room, lane=1) == NextCall(4, 1, 0, large=False)
    answer(made, room, 0)
    answer(made, room, 0, lane=1)
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
    assert not made.wants, "a worker that waits for its end would never be idle"
    assert not made.uses_hint(room)
    made.hint()
    assert call(made, room) is None


def test_a_call_under_way_when_closing_begins_is_the_last_that_takes() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    made.stop_taking()
    assert answer(made, room, 4) == GO_ON, "its jobs are given back"
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


# Trouble


def test_while_the_connection_is_lost_its_lane_waits_and_the_other_works() -> None:
    made, room = flowing()
    call(made, room, reports=1)
    made.hint()
    for _ in range(3):
        assert call(made, room, reports=2) is None
    assert call(made, room, lane=1) == NextCall(2, 1, 0, large=False)
    answer(made, room, 2, lane=1)
    assert made.asked == 2, "what the lost call asked for may still come"
    assert answer(made, room, 2) == GO_ON


def test_a_call_that_ends_without_an_answer_frees_its_slots() -> None:
    made, room = demand(), Room(4)
    call(made, room)
    assert made.ended(made.lanes[0]) == 4
    assert (made.busy, made.asked) == (False, 0)
    assert made.uses_hint(room)


def test_after_a_hung_loop_it_asks_again_for_what_the_heartbeat_has_freed() -> None:
    """The heartbeat thread has reported in the loop's stead: no answer of a lane says that slots are free."""
    made, room = demand(), Room(4)
    call(made, room)
    answer(made, room, 3)
    room.slots = 4
    assert call(made, room) is None
    made.hint()
    assert call(made, room) == NextCall(4, 1, 0, large=False)


def test_outcomes_that_the_heartbeat_took_over_leave_a_call_that_is_harmless() -> None:
    """It was decided for reports that are gone when it is sent; its answer leads to a question."""
    made, room = asleep(atomic=False)
    assert call(made, room, reports=1) == NextCall(0, 1, 0, large=False)
    assert answer(made, room, 0) == GO_ON
    assert call(made, room) == NextCall(4, 1, 0, large=False)


def test_prefetched_jobs_that_are_recalled_go_out_at_once_and_make_room_for_others() -> None:
    made, room = demand(2, short=True), Room(0, waiting=200)
    made.lanes[0].in_hand = 2
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


# Large calls


def test_large_calls_keep_apart() -> None:
    made, room = flowing(200)
    assert call(made, room, now=10.0) == NextCall(HEADS, 1, 0, large=True)
    assert call(made, room, lane=1, now=10.0 + APART / 2) == TOO_SOON
    assert made.unsent == 0
    assert call(made, room, lane=1, now=10.0 + APART + LATER) == NextCall(HEADS, 1, 0, large=True)


def test_a_large_call_that_is_not_sent_yet_holds_the_other_back() -> None:
    made, room = flowing(200)
    first = made.next_call(made.lanes[0], room, 0, 10.0, urgent=False)
    assert isinstance(first, NextCall)
    assert (made.unsent, made.large_sent) == (1, math.inf)
    assert call(made, room, lane=1, now=20.0) == TOO_SOON
    made.sent(20.0, large=True)
    assert (made.unsent, made.large_sent) == (0, 20.0)


def test_small_calls_and_lone_ones_need_not_keep_apart() -> None:
    made, room = flowing(200)
    call(made, room, now=10.0)
    room.slots = HEADS + 5
    assert call(made, room, lane=1, now=10.0) == NextCall(5, 1, 0, large=False)
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
    """Other workers wait for their turn."""
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


# Anything, in any order


class AnyOrder(RuleBasedStateMachine):
    """A worker, its server and its operators, in any order of events."""

    def __init__(self) -> None:
        super().__init__()
        self.demand = demand(6)
        self.running = 0
        self.reports = [0, 0]
        self.under_way: dict[int, NextCall] = {}
        self.now = 0.0

    def free(self) -> int:
        return 6 - self.running

    def unstarted(self) -> int:
        return 0

    @rule(lane=st.integers(0, 1))
    def pump(self, lane: int) -> None:
        self.now += 0.01
        state, waiting = self.demand.lanes[lane], self.reports[lane]
        before = self.demand.phase
        wanted = self.demand.next_call(state, self, waiting, self.now, urgent=waiting > 0)
        assert wanted != TOO_SOON
        if isinstance(wanted, NextCall):
            assert lane not in self.under_way
            assert wanted.take or waiting, "a call has a purpose"
            assert before == "taking" or not wanted.take
            self.demand.sent(self.now, large=wanted.large)
            self.under_way[lane], self.reports[lane] = wanted, 0
        elif lane not in self.under_way:
            assert not waiting, "an outcome never waits for a lane that is free"
            assert before != "taking" or not self.demand.wants or self.free() <= self.demand.asked

    @rule(lane=st.integers(0, 1), share=st.floats(0, 1), wait_ms=st.sampled_from([NOTHING, 0, 100]))
    def answers(self, lane: int, share: float, wait_ms: int) -> None:
        if lane not in self.under_way:
            return
        brought = int(self.under_way.pop(lane).take * share)
        self.running += brought
        asked = self.demand.ended(self.demand.lanes[lane])
        after = self.demand.answered(self.demand.lanes[lane], asked, brought, wait_ms, 0, self.free())
        if asked and not self.demand.wants:
            assert after.sleep is not None, "a worker that does not ask must have a timer"
            assert 0 < after.sleep <= SLEEP

    @rule(lane=st.integers(0, 1))
    def a_run_ends(self, lane: int) -> None:
        if self.running:
            self.running -= 1
            self.reports[lane] += 1

    @rule()
    def hint(self) -> None:
        self.demand.hint()
        assert self.demand.wants

    @rule()
    def stop_taking(self) -> None:
        self.demand.stop_taking()

    @invariant()
    def slots_are_never_promised_twice(self) -> None:
        assert self.running + self.demand.asked <= 6
        assert self.demand.busy == bool(self.under_way)
        assert self.demand.unsent == 0


TestAnyOrder = AnyOrder.TestCase


@given(st.integers(1, 300), st.booleans())
def test_lanes_share_all_slots(concurrency: int, exclusive: bool) -> None:
    made = demand(concurrency, exclusive=exclusive)
    assert made._share * len(made.lanes) >= concurrency
    assert all(isinstance(lane, LaneDemand) for lane in made.lanes)
