"""Whether a worker watches the marker, and what it does about each wait that is over."""

from __future__ import annotations

from groupmq.worker.fetching.demand import Demand
from groupmq.worker.fetching.marker_watch import MarkerWatch
from groupmq.worker.outage import LONGEST_PAUSE
from tests.unit.worker.fetching.demands import Room, answer, asleep, call, demand


def watching(concurrency: int = 4, waits_until_asked: int = 1) -> tuple[MarkerWatch, Demand, Room]:
    """A worker that has learned that nothing is ready, and watches the marker."""
    made, room = asleep(concurrency)
    watch = MarkerWatch(made, waits_until_asked)
    watch.begin()
    assert watch.is_on
    return watch, made, room


def test_a_worker_does_not_watch_before_an_answer_said_that_nothing_is_ready() -> None:
    assert not MarkerWatch(demand()).is_on


def test_a_marker_makes_it_ask_and_watch_no_more_until_the_answer() -> None:
    watch, made, room = watching()
    assert watch.popped(room) == "ask"
    assert not watch.is_on
    assert call(made, room) is not None, "no outcome has to wait to be sent along"
    assert answer(made, room, 0).listen
    watch.begin()
    assert watch.is_on


def test_a_busy_worker_passes_a_marker_on_and_asks_with_its_next_call() -> None:
    watch, made, room = watching()
    room.slots = 0
    assert watch.popped(room) == "pass on"
    assert not watch.is_on
    assert made.wants, "a slot that is shared with others may be free soon"


def test_a_closing_worker_passes_a_marker_on() -> None:
    watch, made, room = watching()
    made.stop_taking()
    assert watch.popped(room) == "pass on"


def test_a_worker_whose_calls_ask_for_every_slot_passes_a_marker_on() -> None:
    watch, made, room = watching()
    made.hint()
    call(made, room)
    assert watch.popped(room) == "pass on"


def test_a_worker_whose_turn_may_be_over_passes_a_marker_on() -> None:
    made, room = demand(exclusive=True), Room(4)
    call(made, room)
    answer(made, room, 2, epoch=1)
    made.hint()
    call(made, room)
    room.slots = 4  # more than the call asks for
    assert made.busy
    assert MarkerWatch(made).popped(room) == "pass on"


def test_a_closing_worker_does_not_watch_even_if_an_answer_found_nothing() -> None:
    watch, made, _ = watching()
    made.stop_taking()
    assert not watch.is_on
    watch.begin()
    assert not watch.is_on


def test_a_wait_without_a_marker_makes_it_ask_because_the_worker_that_popped_it_may_have_died() -> None:
    watch, made, _ = watching()
    assert watch.timed_out() == "ask"
    assert (watch.is_on, made.wants) == (False, True)


def test_one_of_many_that_watch_for_one_queue_asks_only_after_several_waits() -> None:
    watch, made, _ = watching(waits_until_asked=3)
    assert [watch.timed_out() for _ in range(2)] == ["go on", "go on"]
    assert (watch.is_on, made.wants) == (True, False)
    assert watch.timed_out() == "ask"
    watch.begin()
    assert [watch.timed_out() for _ in range(3)] == ["go on", "go on", "ask"]


def test_a_marker_begins_a_new_count_of_waits() -> None:
    watch, _, room = watching(waits_until_asked=2)
    assert watch.timed_out() == "go on"
    assert watch.popped(room) == "ask"
    watch.begin()
    assert [watch.timed_out() for _ in range(2)] == ["go on", "ask"]


def test_a_lost_connection_makes_it_ask_over_another_one_and_pause_longer_each_time() -> None:
    watch, made, _ = watching()
    pauses = []
    for _ in range(8):
        pauses.append(watch.failed())
        assert (watch.is_on, made.wants) == (False, True)
        watch.begin()
    assert pauses[0] == 0.1
    assert pauses[1] >= 1
    assert max(pauses) <= LONGEST_PAUSE
    assert pauses[-1] > pauses[1]


def test_pauses_are_short_again_once_a_wait_has_ended_well() -> None:
    watch, _, room = watching()
    ends_well = (
        lambda: watch.popped(room),
        watch.timed_out,
        lambda: watch.granted(room),
        watch.damaged,
    )
    for end in ends_well:
        watch.failed()
        watch.failed()
        end()
        assert watch.failed() == 0.1
        assert watch.failed() < 2


def test_a_granted_job_leaves_it_watching_while_a_slot_is_free() -> None:
    watch, made, room = watching(concurrency=2)
    room.slots = 1
    watch.granted(room)
    assert (watch.is_on, made.wants) == (True, False)
    room.slots = 0
    watch.granted(room)
    assert not watch.is_on


def test_a_damaged_grant_makes_it_ask_since_the_server_sends_the_job_again() -> None:
    watch, made, _ = watching()
    watch.damaged()
    assert (watch.is_on, made.wants) == (False, True)
