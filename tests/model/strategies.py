"""What the state machine draws from: few names, so that things meet, and hostile ones, so that nothing is parsed."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from groupmq import record
from groupmq.drafts import Draft
from tests.model.parts import Finished, State

START = 1_700_000_000_000
GROUPS = ("x:active", "{}", "a|||b", "new\nline", "nul\0", "\U0001f984", " ", "g:", "*[a-z]?%d", "1", "delayed")
JOB_IDS = ("1", "0:1", "{j}", "a b", "j\r\n$-1", "nul\0", "\u00fc\U0001f600", "wake", "h*", "1e3", "jobs", "x" * 300)
IDS = (*JOB_IDS, *(f"job-{n}" for n in range(20)))
ORDERS = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**53 + 2, START, START + 1, 2**63 - 1)
DATA = (b"{}", b"", b"\xff\x00\r\n")
DELAYS = (0, 1, 50, 999, 5000)
WHENS: list[tuple[int, int | None]] = [
    *[(0, None)] * 6,
    *[(delay, None) for delay in DELAYS],
    *[(0, run_at) for run_at in (-START, -7, 0, 1, 700)],
]
LANES = (("w1", "w1:0"), ("w1", "w1:1"), ("w\n2", "w\n2:0"))
LEASES = (1000, 1000, 30_000)
STATES: tuple[State, ...] = ("waiting", "delayed", "active", "completed", "failed")
FINISHED: tuple[Finished, ...] = ("completed", "failed")
KEEPS = (-1, 3, 2, 1, 0)


@dataclass(frozen=True)
class Setup:
    """How the queue of one example is set up."""

    groups: tuple[str, ...]
    concurrency: int
    keep_completed: int
    keep_failed: int
    max_attempts: int
    max_stalled: int


@dataclass(frozen=True)
class Item:
    """A job to add, with times relative to the moment of adding."""

    id: str
    group: int
    priority: int
    order_ms: int | None
    when: tuple[int, int | None]
    """Its delay, 0 = none, and its run_at, from now."""
    max_attempts: int
    data: bytes

    def draft(self, groups: tuple[str, ...], now: int) -> Draft:
        delay, run_at = self.when
        group = None if self.group < 0 else groups[self.group % len(groups)]
        body = record.pack_body(self.max_attempts, self.order_ms is not None, (group or "").encode(), None, self.data)
        return Draft(
            id=self.id,
            group_id=group,
            priority=self.priority,
            order_ms=self.order_ms,
            delay_ms=delay,
            run_at_ms=0 if run_at is None else max(0, now + run_at),
            max_attempts=self.max_attempts,
            options=None,
            data=self.data,
            body=body,
        )


@dataclass(frozen=True)
class Wish:
    """What a worker will say of one of the running jobs, chosen by number when there are some."""

    which: int
    kind: str
    result: bytes | None
    delay: int
    token: str
    """`own`, or one that must be refused: `old`, `next`, `unknown`."""


def setups() -> SearchStrategy[Setup]:
    return st.builds(
        Setup,
        st.lists(st.sampled_from(GROUPS), min_size=3, max_size=3, unique=True).map(tuple),
        st.sampled_from((1, 1, 2)),
        st.sampled_from(KEEPS),
        st.sampled_from(KEEPS),
        st.sampled_from((1, 2, 3)),
        st.sampled_from((-1, 0, 1)),
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
    )


def wishes(*tokens: str) -> SearchStrategy[Wish]:
    return st.builds(
        Wish,
        st.integers(0, 7),
        st.sampled_from(("complete", "retry", "retry", "yield", "fail", "release")),
        st.sampled_from((None, b"", b"\x80result")),
        st.sampled_from((500, 0, 1, 500)),
        st.sampled_from(tokens),
    )


def moves() -> SearchStrategy[int]:
    return st.sampled_from((1, 0, -1, 49, 500, 999, 1000, 1001, 30_000))
