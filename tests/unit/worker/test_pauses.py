"""How long a worker pauses between two tries while its server is unreachable."""

from __future__ import annotations

from groupmq.worker.outage import Pauses


def test_pauses_grow_from_one_second_to_twenty_and_differ() -> None:
    runs = []
    for _ in range(200):
        pauses = Pauses()
        runs.append([pauses.next() for _ in range(8)])
    for least, column in zip([1, 2, 4, 8, 16, 16, 16, 16], zip(*runs, strict=True), strict=True):
        assert least <= min(column) < max(column) <= 1.25 * least <= 20
    pauses.reset()
    assert pauses.next() <= 1.25


def test_a_pause_that_must_be_shorter_does_not_make_the_next_one_longer() -> None:
    pauses = Pauses()
    assert [pauses.next(0.1) for _ in range(5)] == [0.1] * 5
    assert 1 <= pauses.next() <= 1.25
    assert pauses.next(2) == 2
