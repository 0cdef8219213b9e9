"""When a call offers a slot, and how long a group waits for a full batch: without a server."""

from __future__ import annotations

from groupmq.worker.fetching.demand import BATCHED, NextCall
from tests.unit.worker.fetching.demands import BATCH_WAIT_MS, Room, answer, call, demand, holding

# Offers


def offer(of: object) -> bool | None:
    assert isinstance(of, NextCall)
    return of.offer


def test_a_call_that_asks_offers_a_slot_in_case_it_finds_nothing() -> None:
    assert offer(call(demand(offers=True), Room(4))) is True
    assert offer(call(demand(), Room(4))) is None


def test_a_call_that_only_reports_leaves_an_offer_as_it_is() -> None:
    assert offer(call(demand(offers=True), Room(0), reports=1)) is None
    assert offer(call(demand(offers=True, atomic=False), Room(4), reports=1)) is None, "the question is put off"


def test_a_draining_worker_withdraws_its_offer_with_each_call() -> None:
    made, room = demand(offers=True), Room(4)
    call(made, room)
    made.stop_taking()
    answer(made, room, 0)
    assert offer(call(made, room, reports=1)) is False


def test_a_worker_that_has_to_wait_for_its_jobs_withdraws_its_offer_at_once() -> None:
    """Leaving withdraws it as well, but only when these jobs have ended."""
    made, room = demand(offers=True), Room(3)
    call(made, room)
    answer(made, room, 0)
    holding(made, 1)
    made.stop_taking()
    assert call(made, room) == NextCall(0, 1, 0, large=False, offer=False)
    answer(made, room, 0)
    assert call(made, room) is None, "once"


def test_a_worker_without_jobs_or_offers_makes_no_call_to_withdraw_one() -> None:
    for offers, rows in ((True, 0), (False, 1)):
        made, room = demand(offers=offers), Room(4)
        holding(made, rows)
        made.stop_taking()
        assert call(made, room) is None


def test_closing_after_draining_withdraws_nothing_more() -> None:
    made, room = demand(offers=True), Room(4)
    made.close()
    holding(made, 1)
    made.stop_taking()
    assert call(made, room) is None


def test_a_burst_offers_nothing() -> None:
    """A job that is granted to it would be left behind if the burst is over before the job arrives."""
    made, room = demand(offers=True), Room(4)
    made.begin_burst()
    assert offer(call(made, room)) is None
    answer(made, room, 0)
    holding(made, 1)
    made.stop_taking()
    assert call(made, room) is None


# Batches


def test_a_call_for_batches_says_how_long_a_group_waits_for_a_full_one() -> None:
    made = demand(batch=10)
    assert call(made, Room(4)) == NextCall(4, 10, 0, large=True, batch_wait_ms=BATCH_WAIT_MS)


def test_a_burst_takes_batches_as_they_are() -> None:
    made = demand(batch=10)
    made.begin_burst()
    assert call(made, Room(1)) == NextCall(1, 10, 0, large=False, batch_wait_ms=0)


def test_rows_are_no_batches() -> None:
    made = demand(short=True)
    made.begin_burst()
    taken = call(made, Room(4))
    assert isinstance(taken, NextCall)
    assert taken.row > 1
    assert taken.batch_wait_ms is None


def test_one_call_takes_a_bounded_number_of_jobs_in_batches() -> None:
    taken = call(demand(100, batch=BATCHED // 4), Room(100))
    assert isinstance(taken, NextCall)
    assert (taken.take, taken.row) == (4, BATCHED // 4)
    largest = call(demand(100, batch=2 * BATCHED), Room(100))
    assert isinstance(largest, NextCall)
    assert (largest.take, largest.row) == (1, 2 * BATCHED)
