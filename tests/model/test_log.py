"""The event log is bounded: its oldest entries are deleted, one segment at a time, and no others."""

from __future__ import annotations

import pytest
import redis

from groupmq.protocol import functions
from tests.model.machine import QueueMachine
from tests.model.mutant import Mutant, loader
from tests.model.pair import same
from tests.model.running import MANY, find_defect, run
from tests.model.strategies import KINDS, Item, Setup, Wish

SEGMENT, KEPT = 400, 3
SMALL = Mutant("segments that are full soon", "= 524288, 8, ", f"= {SEGMENT}, {KEPT}, ")
DEFECTS = [
    Mutant("nothing is forgotten", "> KEPT then", "> 1000 then"),
    Mutant("all but the last segment forgotten", "redis.pcall('LPOP', K.segments)", "redis.pcall('RPOP', K.segments)"),
    Mutant("segments of any size", "meta.logged + 1, is_full and 0 or bytes", "meta.logged + 1, 0"),
]
EXAMPLES = 18
REQUESTER = "w1", "w1:0"


class SmallLogMachine(QueueMachine):
    def __init__(self, client: redis.Redis) -> None:
        super().__init__(client)
        self.sizes: dict[int, int] = {}

    def look_at_the_log(self) -> None:
        super().look_at_the_log()
        stored = self.stored.log_sizes()
        self.sizes |= stored
        same(list(stored), list(range(first_kept(list(self.sizes.values())), len(self.sizes) + 1)))


def first_kept(sizes: list[int]) -> int:
    """The number of the first entry that is kept after entries of these sizes were written."""
    first, used, ends = 1, 0, list[int]()
    for number, size in enumerate(sizes, 1):
        used += size
        if used >= SEGMENT:
            ends.append(number)
            used = 0
        if len(ends) > KEPT:
            first = ends.pop(0)
    return first


def test_the_newest_segments_are_kept_and_no_more(client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "load", loader(SMALL))
    run(SmallLogMachine, client, EXAMPLES, first=0)


@pytest.mark.parametrize("defect", DEFECTS, ids=[defect.defect.replace(" ", "-") for defect in DEFECTS])
def test_defect_is_caught(defect: Mutant, client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "load", loader(defect, loader(SMALL)))
    find_defect(SmallLogMachine, client, MANY)
    client.flushall()  # remove what the defect has left behind


@pytest.mark.parametrize("keep", [-1, 3, 2, 0])
def test_results_that_stay_with_their_jobs_share_the_room_of_an_entry(client: redis.Redis, keep: int) -> None:
    machine = QueueMachine(client)
    machine.open(Setup(("a", "b", "c"), 1, keep, 3, 3, -1, KINDS[0]))
    machine.add([Item(f"job-{n}", n, 0, None, (0, None), 0, b"{}") for n in range(3)])
    machine.advance(REQUESTER, [], 3, 1000)
    sizes = (300_000, 224_289, 224_288)
    machine.advance(REQUESTER, [Wish(n, "complete", b"r" * size, 0, "own") for n, size in enumerate(sizes)], 0, 1000)
    machine.stored_as_the_model_says()
