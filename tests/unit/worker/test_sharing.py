"""Slots that several workers share: how many each may ask for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from groupmq.worker.sharing import SharedSlots


class Consumer:
    def __init__(self, *, hungry: bool = True, used: int = 0, asked: int = 0) -> None:
        self.hungry, self.used, self.asked = hungry, used, asked

    def slots_used(self) -> int:
        return self.used

    def slots_asked(self) -> int:
        return self.asked

    def is_hungry(self) -> bool:
        return self.hungry


def test_one_worker_alone_with_work_has_all_slots() -> None:
    pool = SharedSlots(8)
    busy, idle = pool.join(Consumer()), pool.join(Consumer(hungry=False))
    assert (busy.free(), idle.free()) == (8, 0)


def test_those_that_want_slots_leave_each_other_a_fair_part() -> None:
    pool = SharedSlots(8)
    first, second = pool.join(Consumer()), pool.join(Consumer())
    assert (first.free(), second.free()) == (4, 4)


def test_what_others_have_asked_for_is_taken() -> None:
    pool = SharedSlots(8)
    first, second = pool.join(Consumer()), pool.join(Consumer(used=3, asked=2, hungry=False))
    assert first.free() == 3
    assert second.free() == 1


def test_one_slot_goes_to_the_one_that_was_served_longest_ago() -> None:
    pool = SharedSlots(1)
    shares = [pool.join(Consumer()) for _ in range(3)]
    order = []
    for _ in range(6):
        [chosen] = [share for share in shares if share.free() == 1]
        order.append(shares.index(chosen))
        chosen.got_jobs()
    assert order == [0, 1, 2, 0, 1, 2]


def test_a_slot_that_becomes_free_goes_to_the_one_with_too_few() -> None:
    pool = SharedSlots(4)
    greedy, late = Consumer(used=3), Consumer()
    first, second = pool.join(greedy), pool.join(late)
    first.got_jobs()
    assert (first.free(), second.free()) == (0, 1)


def test_all_members_look_again_when_a_slot_moves() -> None:
    pool, consumers = SharedSlots(2), [Consumer(), Consumer()]
    shares = [pool.join(consumer) for consumer in consumers]
    looked: list[int] = []
    for number, share in enumerate(shares):
        share.on_room(partial(looked.append, number))
    shares[0].moved()
    assert looked == [0, 1]


def test_all_changes_of_a_moment_are_handled_once() -> None:
    later: list[Callable[[], None]] = []
    pool = SharedSlots(2, defer=later.append)
    share, looked = pool.join(Consumer()), []
    share.on_room(lambda: looked.append("consumer"))
    pool.on_room(lambda: looked.append("pool"))
    share.moved()
    share.moved()
    assert (len(later), looked) == (1, [])
    later[0]()
    assert looked == ["pool", "consumer"]
    share.moved()
    assert len(later) == 2


consumers = st.builds(
    lambda hungry, used, asked: (hungry, used, asked), st.booleans(), st.integers(0, 3), st.integers(0, 3)
)


@given(st.integers(1, 12), st.lists(consumers, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_no_slot_is_given_twice_and_somebody_who_wants_a_free_one_may_have_it(
    total: int, given: list[tuple[bool, int, int]], random: object
) -> None:
    pool, members, left = SharedSlots(total), [], total
    for hungry, used, asked in given:
        used = min(used, left)
        asked = min(asked, left - used)
        left -= used + asked
        consumer = Consumer(hungry=hungry, used=used, asked=asked)
        members.append((consumer, pool.join(consumer)))
        members[-1][1].got_jobs()
    wanting = [(consumer, share) for consumer, share in members if consumer.hungry]
    if left and wanting:
        assert any(share.free() > consumer.asked for consumer, share in wanting)
    for consumer, share in members:
        assert share.free() <= left + consumer.asked
        consumer.asked = max(consumer.asked, share.free())
        left = total - sum(consumer.used + consumer.asked for consumer, _ in members)
        assert left >= 0
