"""A demand in the states that tests begin from, and the calls and answers that lead there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from groupmq.worker.fetching.demand import AfterAnswer, Demand, NextCall
from groupmq.worker.fetching.prefetch import Prefetch

SLEEP = 30.0
NOTHING = -1
BATCH_WAIT_MS = 200
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


def demand(
    concurrency: int = 4,
    *,
    atomic: bool = True,
    exclusive: bool = False,
    short: bool = False,
    offers: bool = False,
    batch: int | None = None,
) -> Demand:
    prefetch = Prefetch("auto")
    if short:
        prefetch.typical = 1e-5
    made = Demand(
        prefetch,
        concurrency,
        SLEEP,
        atomic=atomic,
        exclusive=exclusive,
        batch=batch,
        batch_wait_ms=BATCH_WAIT_MS,
        offers=offers,
    )
    made.start()
    return made


def call(
    of: Demand, room: Room, requester: int = 0, *, reports: int = 0, urgent: bool | None = None, now: float = 0.0
) -> NextCall | Literal["too soon"] | None:
    """Ask for the next call of a requester, and send it if there is one.

    `urgent`: the reports ask for a call at once; by default they do.
    """
    mine = of.requesters[requester]
    if urgent or (urgent is None and reports):
        mine.hurry()
    wanted = of.next_call(mine, room, reports, now)
    if isinstance(wanted, NextCall):
        of.sent(now, large=wanted.large)
    return wanted


def answer(
    of: Demand,
    room: Room,
    brought: int,
    wait_ms: int = NOTHING,
    requester: int = 0,
    epoch: int = 0,
    *,
    reports_wait: bool = False,
) -> AfterAnswer:
    """Answer the call of a requester with this many rows, which take their slots."""
    mine = of.requesters[requester]
    asked = of.ended(mine).asked
    room.slots -= brought
    return of.answered(mine, asked, brought, wait_ms, epoch, room.slots, reports_wait=reports_wait)


def holding(of: Demand, rows: int) -> None:
    """The first requester has taken this many rows that have not ended."""
    for _ in range(rows):
        of.requesters[0].row_started()


def asleep(concurrency: int = 4, **options: bool) -> tuple[Demand, Room]:
    """The demand of a worker that has asked and learned that nothing is ready."""
    made, room = demand(concurrency, **options), Room(concurrency)
    assert call(made, room) == NextCall(concurrency, 1, 0, large=False)
    assert answer(made, room, 0) == AfterAnswer(SLEEP, listen=True, dry=True)
    return made, room


def flowing(concurrency: int = 4, **options: bool) -> tuple[Demand, Room]:
    """The demand of a worker that got as many jobs as it asked for, and has run them all."""
    made, room = demand(concurrency, **options), Room(concurrency)
    call(made, room)
    assert answer(made, room, concurrency) == GO_ON
    room.slots = concurrency
    return made, room
