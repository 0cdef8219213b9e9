"""Strategies of the state machine: few names, so that they collide, and hostile ones, to show that none is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from groupmq.core import record
from groupmq.core.drafts import Draft
from groupmq.core.limits import Breaker, Debounce, Dedupe, RateLimit, Throttle
from groupmq.core.ordering import Ordering
from tests.model.parts import Finished, State

START = 1_700_000_000_000
GROUPS = ("x:active", "{}", "a|||b", "new\nline", "nul\0", "\U0001f984", " ", "g:", "*[a-z]?%d", "1", "delayed")
JOB_IDS = ("1", "0:1", "{j}", "a b", "j\r\n$-1", "nul\0", "\u00fc\U0001f600", "wake", "h*", "1e3", "jobs", "x" * 300)
IDS = (*JOB_IDS, *(f"job-{n}" for n in range(20)))
SHORT_JOBS = tuple(f"short-{n}" for n in range(100))
ORDERS = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**53 + 2, START, START + 1, 2**63 - 1)
DATA = (b"{}", b"", b"\xff\x00\r\n")
LARGE = b"large" * 1_640
"""Slightly more data than fits into a record."""
DELAYS = (0, 1, 50, 999, 5000)
WHENS: list[tuple[int, int | None]] = [
    *[(0, None)] * 6,
    *[(delay, None) for delay in DELAYS],
    *[(0, run_at) for run_at in (-START, -7, 0, 1, 700)],
]
REQUESTERS = (("w1", "w1:0"), ("w1", "w1:1"), ("w\n2", "w\n2:0"))
LEASES = (1000, 1000, 30_000)
STATES: tuple[State, ...] = ("waiting", "delayed", "active", "completed", "failed")
FINISHED: tuple[Finished, ...] = ("completed", "failed")
DEDUPES: tuple[Dedupe, ...] = (Throttle("k", 0.5), Throttle("nul\0", 0.05), Debounce("k", 0.5), Debounce("k", 0.05))
RATES: tuple[tuple[int, ...], ...] = ((), (1, 50), (2, 500), (1, 300))
REPEATS = ("repeat-1", "0:1")
KEEPS = (-1, 3, 2, 1, 0)
RESULTS = (None, b"", b"\x80result")


@dataclass(frozen=True)
class Kind:
    """Settings of a queue, and what the machine must know about them."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    steady: bool = True
    """Whether the clock never steps back. Expired state is deleted by the next call that sees it; what happens to it
    after a step back is not promised."""
    turn_size: int = 2
    """Jobs that each worker takes in a turn of an exclusive queue."""
    extras: bool = True
    """Whether ttls, dedupe, repeating jobs, progress, logs and cancelling are used; without them, other steps are more
    frequent."""
    unique: int = 0
    """The ms for which the ids of some jobs stay taken. If set, repeating jobs also use overlap="skip"."""
    large: bool = False
    """Whether jobs without data get large data instead, which is stored beside the record."""
    says: int = 0
    """One of this many jobs, chosen by id, overrides the queue's option on whether it blocks its group; 0 = none."""


LATE = Ordering.arrival(0.1, 0.12)
FEW_STARTS = RateLimit(1, 0.05)
KINDS = (
    Kind("plain", steady=False, extras=False),
    Kind("default", steady=False, large=True),
    Kind("steady"),
    Kind("event time", {"ordering": Ordering.event_time(0.5)}),
    Kind("arrival", {"ordering": LATE}),
    Kind("round robin", {"fairness": "round-robin"}),
    Kind("queue rate", {"rate_limit": RateLimit(2, 0.5)}),
    Kind("group rate", {"group_rate_limit": RateLimit(2, 0.3)}),
    Kind("exclusive", {"exclusive": True}),
    Kind("exclusive, short turns", {"exclusive": True, "max_group_size": 4}, turn_size=3),
    Kind("max group", {"max_group_size": 3}, steady=False),
    Kind("ageing", {"priority_ageing_ms": 50}, steady=False),
    Kind("round robin with rates", {"fairness": "round-robin", "group_rate_limit": RateLimit(1, 0.05)}),
    Kind("round robin with windows", {"fairness": "round-robin", "ordering": LATE, "max_group_size": 4}),
    Kind("exclusive with rate", {"exclusive": True, "rate_limit": RateLimit(3, 0.2)}, turn_size=3),
    Kind("both rates", {"rate_limit": RateLimit(3, 0.4), "group_rate_limit": RateLimit(1, 0.1)}),
    Kind("events in rounds", {"ordering": Ordering.event_time(0.05), "fairness": "round-robin", "exclusive": True}),
    Kind("ageing windows", {"ordering": LATE, "priority_ageing_ms": 1000, "group_rate_limit": RateLimit(2, 0.1)}),
    Kind("silent", {"events": False}),
    Kind("unique ids", unique=300),
    Kind("breaker", {"breaker": Breaker(2, 0.2)}),
    Kind(
        "breakers in rounds", {"breaker": Breaker(1, 0.05), "fairness": "round-robin", "group_rate_limit": FEW_STARTS}
    ),
    Kind("hold and break", {"on_failed": "hold", "breaker": Breaker(2, 0.5), "exclusive": True}, says=2),
    Kind("hold", {"on_failed": "hold"}, says=5),
    Kind("some hold", says=2),
    Kind("hold in rounds", {"on_failed": "hold", "fairness": "round-robin", "ordering": LATE}, says=5),
    Kind("hold exclusively", {"on_failed": "hold", "exclusive": True, "group_rate_limit": RateLimit(2, 0.3)}),
)


@dataclass(frozen=True)
class Setup:
    """The settings of the queue of one example."""

    groups: tuple[str, ...]
    concurrency: int
    keep_completed: int
    keep_failed: int
    max_attempts: int
    max_stalled: int
    kind: Kind = KINDS[0]


@dataclass(frozen=True)
class Item:
    """A job to add, with times relative to the moment of adding."""

    id: str
    group: int
    priority: int
    order_ms: int | None
    when: tuple[int, int | None]
    """Its delay, 0 = none, and its run_at, both relative to now."""
    max_attempts: int
    data: bytes
    ttl: int = 0
    dedupe: Dedupe | None = None
    unique: int = 0
    holds: bool | None = None
    """Its own option on whether it blocks its group when it has failed."""

    def draft(self, groups: tuple[str, ...], now: int) -> Draft:
        delay, run_at = self.when
        if isinstance(self.dedupe, Debounce):
            delay, run_at = self.dedupe.delay_ms, None
        group = None if self.group < 0 else groups[self.group % len(groups)]
        options = None if self.holds is None else {"f": self.holds}
        terms = self.max_attempts, self.order_ms is not None, (group or "").encode(), options
        return Draft(
            id=self.id,
            group_id=group,
            priority=self.priority,
            order_ms=self.order_ms,
            delay_ms=delay,
            run_at_ms=0 if run_at is None else max(0, now + run_at),
            max_attempts=self.max_attempts,
            options=options,
            data=self.data,
            body=record.pack_body(*terms, self.data, has_ttl=self.ttl > 0, holds=self.holds),
            ttl_ms=self.ttl,
            dedupe=self.dedupe,
            unique_ms=self.unique,
        )


@dataclass(frozen=True)
class Wish:
    """A future report of one of the running jobs, which is chosen by number when there are some."""

    which: int
    kind: str
    result: bytes | None
    delay: int
    fence: str
    """`own`, or one that must be refused: `old`, `next`, `unknown`."""


@dataclass(frozen=True)
class Word:
    """Progress or a log line of one of the running jobs; `which` and `fence` as in a wish."""

    which: int
    fence: str
    progress: str | None
    line: str | None


def setups(
    concurrency: Sequence[int] = (1, 1, 2),
    max_attempts: Sequence[int] = (1, 2, 3),
    max_stalled: Sequence[int] = (-1, 0, 1),
) -> SearchStrategy[Setup]:
    return st.builds(
        Setup,
        st.lists(st.sampled_from(GROUPS), min_size=3, max_size=3, unique=True).map(tuple),
        st.sampled_from(concurrency),
        st.sampled_from(KEEPS),
        st.sampled_from(KEEPS),
        st.sampled_from(max_attempts),
        st.sampled_from(max_stalled),
    )


def items() -> SearchStrategy[Item]:
    return st.builds(
        Item,
        st.sampled_from(IDS),
        st.sampled_from((0, 0, 0, 1, 1, 2, -1)),
        st.sampled_from((0, 0, 0, 0, 1, 1023)),
        st.sampled_from((None,) * 8 + ORDERS),
        st.sampled_from(WHENS),
        st.sampled_from((0, 0, 1, 2)),
        st.sampled_from(DATA),
        st.sampled_from((0,) * 9 + (1, 50, 600)),
        st.sampled_from((None,) * 12 + DEDUPES),
    )


def alike() -> SearchStrategy[Item]:
    """Jobs of few groups; most of them may be prefetched behind each other."""
    return st.builds(
        Item,
        st.sampled_from((*IDS, *SHORT_JOBS)),
        st.sampled_from((0, 0, 0, 0, 1)),
        st.sampled_from((0,) * 9 + (1,)),
        st.sampled_from((None,) * 8 + ORDERS),
        st.just((0, None)),
        st.sampled_from((0,) * 10 + (1, 2)),
        st.sampled_from(DATA),
        st.sampled_from((0,) * 14 + (50, 600)),
    )


RARE = ("begin", "abandon", "ended", "snooze")


def wishes(*fences: str) -> SearchStrategy[Wish]:
    return st.builds(
        Wish,
        st.integers(0, 7),
        st.sampled_from(("complete", "retry", "retry", "yield", "fail", "release", "limited", *RARE)),
        st.sampled_from(RESULTS),
        st.sampled_from((500, 0, 1, 500)),
        st.sampled_from(fences),
    )


def words() -> SearchStrategy[Word]:
    return st.builds(
        Word,
        st.integers(0, 7),
        st.sampled_from(("own", "own", "own", "next", "old", "unknown")),
        st.sampled_from((None, "0", '{"a": "\u00fc"}')),
        st.sampled_from((None, "", "line \u00fc\n")),
    )


def moves() -> SearchStrategy[int]:
    return st.sampled_from((1, 0, -1, 49, 500, 999, 1000, 1001, 30_000))
