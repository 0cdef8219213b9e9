"""When a worker calls the server and how much it asks for: one state machine, no I/O.

The fetcher asks `next_call` for each requester, and reports events: `start`, `begin_burst`, `hint`, `sent`,
`call_overdue`, `ended`, `answered`, `stop_taking`, `close`. Every decision is a value that the fetcher carries out.
Changes to the rows and outcomes of a requester are reported to its own part: `row_started`, `row_ended`, `hurry`.

Each requester has at most one call under way. As long as answers bring all that was asked for (`flowing`), both ask.
Once an answer falls short, one asks at a time, and only after a hint: a marker on the server, the end of a timer, a
slot that became free, or an outcome that may have made another job ready.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, Protocol

from groupmq.protocol.commands import REQUESTERS
from groupmq.worker.fetching.portions import HEADS
from groupmq.worker.fetching.prefetch import Prefetch

LARGE, APART, LATER = 40, 0.0005, 0.001
"""Jobs of a large call, the least seconds between two large calls, and the pause before a call that came too soon.

The server runs all calls that it finds waiting before it sends the first reply. If two large calls arrive together,
both replies come when both are done: the worker is idle until then, the server is idle while the worker runs all those
jobs, and their reports arrive together again.
"""

BATCHED = 400
"""Jobs that one call brings at most as batches, unless a single batch has more."""

Phase = Literal["new", "taking", "draining", "closed"]
"""`new`: not started. `draining`: outcomes are still reported, no job is taken. `closed`: no call is made."""


class FreeSlots(Protocol):
    """The room in the executor. It is read only when a requester may ask."""

    def free(self) -> int: ...
    def unstarted(self) -> int:
        """Jobs that were taken and have not started."""


class NextCall(NamedTuple):
    """The call that a requester makes now. `take` is 0 for one that only reports."""

    take: int
    """Rows to take, each for one slot."""
    row: int
    """Jobs that one row may hold."""
    fill: int
    """Jobs to take in total, including the reserve; 0 = no reserve."""
    large: bool
    offer: bool | None = None
    """Whether a slot is offered if the call finds nothing to start. False: not any more, None: no change."""
    batch_wait_ms: int | None = None
    """The jobs of a row start at once, as a batch, and a group waits that long for a full one. None: no batches."""


class AfterAnswer(NamedTuple):
    """What to do after an answer: the defaults mean that only `next_call` has to be asked."""

    sleep: float | None = None
    """Seconds until the next hint is due, unless another one comes first."""
    listen: bool = False
    """Block on the marker: there are free slots, and nothing is ready."""
    dry: bool = False
    """Nothing is ready, and no report is under way, or waits to be sent, that could change that."""


class EndedCall(NamedTuple):
    """A call that is over."""

    asked: int
    """The rows that it asked for."""
    overdue: bool
    """Others may have used the slots that it asked for."""


GO_ON = AfterAnswer()
TOO_SOON: Literal["too soon"] = "too soon"


class RequesterDemand:
    """The state of one requester: the rows it has asked for, and those it holds."""

    __slots__ = ("asked", "calling", "fill", "hints", "in_hand", "overdue", "put_off", "reporting", "row", "urgent")

    def __init__(self) -> None:
        self.calling = False
        """A call was decided and has not ended; the connection may be lost meanwhile."""
        self.reporting = False
        """That call reports outcomes."""
        self.overdue = False
        """That call has failed and is made again, or takes long: others may use the slots that it asked for."""
        self.asked, self.row, self.fill = 0, 1, 0
        self.hints = 0
        """The number of hints when its call was decided: an answer says nothing about hints that came later."""
        self.in_hand = 0
        """Rows that this requester has brought and that have not ended."""
        self.put_off: float | None = None
        """Since when a call waits for the end of these rows."""
        self.urgent = False
        """A call is to be made as soon as possible, even if it only reports."""

    def row_started(self) -> None:
        """A row has come that this requester has taken."""
        self.in_hand += 1

    def row_ended(self) -> None:
        """All jobs of a row that this requester has taken have ended or gone back."""
        self.in_hand -= 1

    def hurry(self) -> None:
        """Make a call as soon as one can be made: what there is to send must not wait for another reason to call."""
        self.urgent = True


class Demand:
    """Decides what the requesters of one worker call for."""

    def __init__(
        self,
        prefetch: Prefetch,
        concurrency: int,
        longest_sleep: float,
        *,
        atomic: bool = True,
        exclusive: bool = False,
        batch: int | None = None,
        batch_wait_ms: int = 0,
        offers: bool = False,
    ) -> None:
        """`atomic`: one call may report and take. `exclusive`: workers of this queue take turns.

        `batch`: jobs that one call of the handler gets; they use one slot, and nothing is prefetched. `batch_wait_ms`:
        the time that a group waits for a full batch. `offers`: while it is idle, an add may grant a job to it at once.
        """
        self._prefetch = prefetch
        self._concurrency = concurrency
        self._longest_sleep = longest_sleep
        self._atomic = atomic
        self._exclusive = exclusive
        self._batch = batch
        self._batch_wait_ms = None if batch is None else batch_wait_ms
        self._offers = offers
        # An exclusive queue has one: with two, the order of the answers would not tell whether our turn is over.
        requesters = REQUESTERS if concurrency > 1 and not exclusive else 1
        self.requesters = [RequesterDemand() for _ in range(requesters)]
        self._share = -(-concurrency // requesters)
        self.phase: Phase = "new"
        self.wants = True
        """There may be jobs to take: the last answer did not say otherwise, or a hint came after it."""
        self.flowing = False
        """The last answer brought all that was asked for."""
        self.epoch = 0
        """The turn that this worker has of an exclusive queue; 0 = none."""
        self.unsent = 0
        """Calls that were decided and not sent yet."""
        self.large_sent = -math.inf
        """When the last large call was sent; infinity while one is decided and not sent."""
        self._hints = 0

    @property
    def takes_jobs(self) -> bool:
        """It has started, and nobody has asked it to stop."""
        return self.phase == "taking"

    @property
    def is_closed(self) -> bool:
        return self.phase == "closed"

    @property
    def busy(self) -> bool:
        """A call is under way."""
        return any(requester.calling for requester in self.requesters)

    @property
    def idle(self) -> bool:
        """No call is under way, and the last answer said that nothing is ready."""
        return not self.busy and not self.wants

    @property
    def asked(self) -> int:
        """Rows that calls under way may bring: their slots count as taken."""
        return sum(requester.asked for requester in self.requesters)

    @property
    def overdue(self) -> bool:
        """A call is overdue: the server may be away."""
        return any(requester.overdue for requester in self.requesters)

    @property
    def asked_in_time(self) -> int:
        """Like `asked`, without calls that are overdue."""
        asked = 0
        for requester in self.requesters:  # often read: a generator takes twice as long
            if not requester.overdue:
                asked += requester.asked
        return asked

    @property
    def is_hungry(self) -> bool:
        """Whether it would take a job if there were a slot."""
        return self.phase == "taking" and self.wants and not self.overdue

    def uses_hint(self, slots: FreeSlots) -> bool:
        """Whether this worker can act on a hint; if not, the hint should go to another worker."""
        # The call under way may end the turn of this worker. Its answer then rules out hints that came before it, so
        # a marker that was popped meanwhile would be lost, and no worker would begin the next turn.
        may_lose_turn = self.epoch > 0 and self.busy
        return self.phase == "taking" and not may_lose_turn and slots.free() > self.asked

    # What happened

    def start(self) -> None:
        """Take jobs from now on."""
        if self.phase == "new":
            self.phase = "taking"

    def begin_burst(self) -> None:
        """From now on, do not wait for batches to fill, and offer no slot.

        A job that an add grants would be left behind if the burst is over before it arrives.
        """
        self._offers = False
        if self._batch_wait_ms is not None:
            self._batch_wait_ms = 0

    def hint(self) -> None:
        """There may be work. Answers to calls that were decided before this do not count as "nothing ready"."""
        self.wants = True
        self._hints += 1

    def stop_taking(self) -> None:
        """Take nothing new; outcomes are still reported."""
        if self.phase not in ("new", "taking"):
            return
        self.phase = "draining"
        if self._offers and any(requester.in_hand for requester in self.requesters):
            # A call that withdraws the offer now: leaving does it too, but may have to wait for these rows.
            self.requesters[0].hurry()

    def close(self) -> None:
        """Make no further call."""
        self.phase = "closed"

    def sent(self, now: float, *, large: bool) -> None:
        """A call that was decided is being sent."""
        self.unsent -= 1
        if large:
            self.large_sent = now

    def call_overdue(self, requester: RequesterDemand) -> bool:
        """The call of a requester has failed and is made again, or takes long; True if that is new."""
        is_new = not requester.overdue
        requester.overdue = True
        return is_new

    def ended(self, requester: RequesterDemand) -> EndedCall:
        """The call of a requester is over, with an answer or without one."""
        ended = EndedCall(requester.asked, requester.overdue)
        requester.calling, requester.overdue, requester.asked, requester.fill = False, False, 0, 0
        return ended

    def answered(
        self,
        requester: RequesterDemand,
        asked: int,
        brought: int,
        wait_ms: int,
        epoch: int,
        free: int,
        *,
        reports_wait: bool,
    ) -> AfterAnswer:
        """The call of a requester asked for `asked` rows, is over (`ended`), and brought `brought` rows.

        `wait_ms`: until a job is due, 0 = one is ready, negative = none is known. `free`: slots, after those rows.
        `reports_wait`: a requester has outcomes that were not sent yet.
        """
        # A turn that is over: hints that came during it do not count, since other workers wait for their turn.
        handed_over = epoch == 0 and self.epoch > 0
        self.epoch = epoch
        reported, requester.reporting = requester.reporting, False
        if not asked:
            if reported and self.phase == "taking":
                # The reports may have made jobs ready after the other requester had asked in vain.
                self.hint()
            return GO_ON
        self.flowing = brought >= asked
        if self.flowing or wait_ms == 0 or (requester.hints != self._hints and not handed_over):
            self.wants = True
            return GO_ON
        self.wants = False
        sleep = min(wait_ms / 1000, self._longest_sleep) if wait_ms > 0 else self._longest_sleep
        listen = self.phase == "taking" and free > 0
        # An outcome may make a job ready.
        dry = not reports_wait and not any(other.reporting for other in self.requesters)
        return AfterAnswer(sleep, listen, dry)

    # Decisions

    def next_call(
        self, requester: RequesterDemand, slots: FreeSlots, reports: int, now: float
    ) -> NextCall | Literal["too soon"] | None:
        """The call that a requester makes now; None if it has none to make. `reports`: outcomes that wait to be sent.

        They go with a call that is made in any case, or are what it is made for (`RequesterDemand.hurry`).
        """
        if requester.calling or self.phase == "closed":
            return None
        take, row, fill = self._wanted(requester, slots, reports)
        if not take and not requester.urgent:
            return None
        if not take and self._puts_off(requester, slots, now):
            return TOO_SOON
        requester.put_off = None
        large = max(reports, take * row, fill) >= LARGE
        if large and now - self.large_sent < APART and self.busy:
            return TOO_SOON
        if take and not self.flowing:
            # One call is enough to learn whether there is anything.
            self.wants = False
        if reports and take and not self._atomic:
            take, fill, self.wants = 0, 0, True
        requester.calling, requester.reporting, requester.hints = True, reports > 0, self._hints
        requester.asked, requester.row, requester.fill, requester.urgent = take, row, fill, False
        self.unsent += 1
        if large:
            self.large_sent = math.inf
        return NextCall(take, row, fill, large, self._offer(take), self._batch_wait_ms)

    def _offer(self, take: int) -> bool | None:
        if not self._offers:
            return None
        if self.phase != "taking":
            return False
        return True if take else None

    def _wanted(self, mine: RequesterDemand, slots: FreeSlots, reports: int) -> tuple[int, int, int]:
        """How many rows to ask for, how many jobs for each, and how many jobs in all."""
        if self.phase != "taking" or not (self.wants or reports):
            return 0, 1, 0
        room = slots.free() - self.asked
        if room <= 0:
            return 0, 1, 0
        room = min(room, self._share if self.flowing else room, HEADS)
        if self._exclusive:
            return room, 1, 0
        if self._batch is not None:
            return min(room, max(1, BATCHED // self._batch)), self._batch, 0
        prefetched = self._prefetched(slots)
        take, row = self._prefetch.plan(room, mine.in_hand, prefetched, reports=mine.urgent)
        return take, row, self._prefetch.fill(take, self._concurrency, prefetched)

    def _prefetched(self, slots: FreeSlots) -> int:
        """Jobs that have not started, or that calls under way may bring."""
        return slots.unstarted() + sum(
            max(requester.asked * requester.row, requester.fill) - requester.asked for requester in self.requesters
        )

    def _puts_off(self, requester: RequesterDemand, slots: FreeSlots, now: float) -> bool:
        """Whether a call that only reports waits, at most for LATER, for the other rows of its requester to end."""
        if self.phase != "taking" or not self._prefetch.end_together(requester.in_hand, self._prefetched(slots)):
            return False
        if requester.put_off is None:
            requester.put_off = now
        return now - requester.put_off < LATER
