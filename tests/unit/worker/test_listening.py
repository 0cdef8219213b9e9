"""Whether a worker listens for markers, and what it does about each wait that is over."""

from __future__ import annotations

from groupmq.worker.demand import Demand
from groupmq.worker.listening import Listening
from groupmq.worker.outage import LONGEST_PAUSE
from tests.unit.worker.demands import Room, answer, asleep, call, demand


def listens(concurrency: int = 4, waits_until_asked: int = 1) -> tuple[Listening, Demand, Room]:
    """A worker that has learned that nothing is ready, and listens."""
    made, room = asleep(concurrency)
    listening = Listening(made, waits_until_asked)
    listening.begin()
    assert listening.is_on
    return listening, made, room


def test_a_worker_does_not_listen_before_an_answer_said_that_nothing_is_ready() -> None:
    assert not Listening(demand()).is_on


def test_a_marker_makes_it_ask_and_listen_no_more_until_the_answer() -> None:
    listening, made, room = listens()
    assert listening.popped(room) == "ask"
    assert not listening.is_on
    assert call(made, room) is not None, "no outcome has to wait to be sent along"
    assert answer(made, room, 0).listen
    listening.begin()
    assert listening.is_on


def test_a_busy_worker_passes_a_marker_on_and_asks_with_its_next_call() -> None:
    listening, made, room = listens()
    room.slots = 0
    assert listening.popped(room) == "pass on"
    assert not listening.is_on
    assert made.wants, "a slot that is shared with others may be free soon"


def test_a_closing_worker_passes_a_marker_on() -> None:
    listening, made, room = listens()
    made.stop_taking()
    assert listening.popped(room) == "pass on"


def test_a_worker_whose_calls_ask_for_every_slot_passes_a_marker_on() -> None:
    listening, made, room = listens()
    made.hint()
    call(made, room)
    assert listening.popped(room) == "pass on"


def test_a_worker_whose_turn_may_be_over_passes_a_marker_on() -> None:
    made, room = demand(exclusive=True), Room(4)
    call(made, room)
    answer(made, room, 2, epoch=1)
    made.hint()
    call(made, room)
    room.slots = 4  # more than the call asks for
    assert made.busy
    assert Listening(made).popped(room) == "pass on"


def test_a_closing_worker_does_not_listen_even_if_an_answer_found_nothing() -> None:
    listening, made, _ = listens()
    made.stop_taking()
    assert not listening.is_on
    listening.begin()
    assert not listening.is_on


def test_a_wait_without_a_marker_makes_it_ask_because_the_worker_that_popped_it_may_have_died() -> None:
    listening, made, _ = listens()
    assert listening.timed_out() == "ask"
    assert (listening.is_on, made.wants) == (False, True)


def test_one_of_many_that_listen_for_one_queue_asks_only_after_several_waits() -> None:
    listening, made, _ = listens(waits_until_asked=3)
    assert [listening.timed_out() for _ in range(2)] == ["go on", "go on"]
    assert (listening.is_on, made.wants) == (True, False)
    assert listening.timed_out() == "ask"
    listening.begin()
    assert [listening.timed_out() for _ in range(3)] == ["go on", "go on", "ask"]


def test_a_marker_begins_a_new_count_of_waits() -> None:
    listening, _, room = listens(waits_until_asked=2)
    assert listening.timed_out() == "go on"
    assert listening.popped(room) == "ask"
    listening.begin()
    assert [listening.timed_out() for _ in range(2)] == ["go on", "ask"]


def test_a_lost_connection_makes_it_ask_over_another_one_and_pause_longer_each_time() -> None:
    listening, made, _ = listens()
    pauses = []
    for _ in range(8):
        pauses.append(listening.failed())
        assert (listening.is_on, made.wants) == (False, True)
        listening.begin()
    assert pauses[0] == 0.1
    assert pauses[1] >= 1
    assert max(pauses) <= LONGEST_PAUSE
    assert pauses[-1] > pauses[1]


def test_pauses_are_short_again_once_a_wait_has_ended_well() -> None:
    listening, _, room = listens()
    ends_well = (
        lambda: listening.popped(room),
        listening.timed_out,
        lambda: listening.granted(room),
        listening.damaged,
    )
    for end in ends_well:
        listening.failed()
        listening.failed()
        end()
        assert listening.failed() == 0.1
        assert listening.failed() < 2


def test_a_granted_job_leaves_it_listening_while_a_slot_is_free() -> None:
    listening, made, room = listens(concurrency=2)
    room.slots = 1
    listening.granted(room)
    assert (listening.is_on, made.wants) == (True, False)
    room.slots = 0
    listening.granted(room)
    assert not listening.is_on


def test_a_damaged_grant_makes_it_ask_since_the_server_sends_the_job_again() -> None:
    listening, made, _ = listens()
    listening.damaged()
    assert (listening.is_on, made.wants) == (False, True)
