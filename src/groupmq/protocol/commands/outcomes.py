"""Outcomes of runs, as the Lua side reads them (`lua/lib/outcome.lua`).

Each is an array: its kind, the id of the job, the fence of the run, then the fields of its kind. A class for each
says which these are; a unit test compares them with the Lua file.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

# The kinds.
COMPLETE = 0
RETRY = 1
FAIL = 2
RELEASE = 3
RATE_LIMITED = 4
BEGIN = 5
ABANDON = 6
ENDED = 7
SNOOZE = 8
_KIND = itemgetter(0)

Completion = tuple[int, str, int, bytes | None]
"""COMPLETE, id, fence, result. A plain tuple, because each job has one, and a named one takes three times as long to
make. A call carries these in columns, and the results in its blob."""


class RetryOutcome(NamedTuple):
    """The attempt failed, and another one follows."""

    kind: int
    id: str
    fence: int
    delay_ms: int
    yields: bool
    """Its group goes on meanwhile."""
    reason: str
    stack: str
    error: str
    """Class of what the handler raised, with its path."""


class FailureOutcome(NamedTuple):
    """FAIL: the job has failed for good. ABANDON: so it has, but its handler has not ended."""

    kind: int
    id: str
    fence: int
    reason: str
    stack: str
    error: str


class ReleaseOutcome(NamedTuple):
    """The job goes back to its group, and no attempt is used."""

    kind: int
    id: str
    fence: int
    begun: bool
    """Its handler was called."""


class RateLimitedOutcome(NamedTuple):
    """The handler raised RateLimited: the group rests, and no attempt is used."""

    kind: int
    id: str
    fence: int
    delay_ms: int
    reason: str
    error: str


class SnoozeOutcome(NamedTuple):
    """The handler asked to be called later; no attempt is used."""

    kind: int
    id: str
    fence: int
    delay_ms: int
    yields: bool
    reason: str
    error: str


class BareOutcome(NamedTuple):
    """BEGIN: the handler of a job that this worker holds was called. ENDED: it has ended, after its run was over."""

    kind: int
    id: str
    fence: int


Outcome = Completion | RetryOutcome | FailureOutcome | ReleaseOutcome | RateLimitedOutcome | SnoozeOutcome | BareOutcome


def completed(job_id: str, fence: int, result: bytes | None) -> Outcome:
    return COMPLETE, job_id, fence, result


def retried(job_id: str, fence: int, delay_ms: int, yields: bool, reason: str, stack: str, error: str = "") -> Outcome:
    """`error`: class of the error that the handler raised, with its path."""
    return RetryOutcome(RETRY, job_id, fence, delay_ms, yields, reason, stack, error)


def failed(job_id: str, fence: int, reason: str, stack: str, error: str = "") -> Outcome:
    return FailureOutcome(FAIL, job_id, fence, reason, stack, error)


def released(job_id: str, fence: int, *, begun: bool = False) -> Outcome:
    return ReleaseOutcome(RELEASE, job_id, fence, begun)


def rate_limited(job_id: str, fence: int, delay_ms: int, reason: str = "", error: str = "") -> Outcome:
    return RateLimitedOutcome(RATE_LIMITED, job_id, fence, delay_ms, reason, error)


def snoozed(job_id: str, fence: int, delay_ms: int, yields: bool, reason: str = "", error: str = "") -> Outcome:
    return SnoozeOutcome(SNOOZE, job_id, fence, delay_ms, yields, reason, error)


def begun(job_id: str, fence: int) -> Outcome:
    return BareOutcome(BEGIN, job_id, fence)


def abandoned(job_id: str, fence: int, reason: str, stack: str, error: str = "") -> Outcome:
    """Its group waits for `ended`, or for the end of the lease."""
    return FailureOutcome(ABANDON, job_id, fence, reason, stack, error)


def ended(job_id: str, fence: int) -> Outcome:
    """The handler has ended: that of an abandoned run, or of a job that an operator has ended."""
    return BareOutcome(ENDED, job_id, fence)


class Sorted(NamedTuple):
    """Outcomes as the scripts take them: completed jobs in columns, all others one by one."""

    completed: list[Any]
    others: list[Outcome]
    blob: bytes
    order: list[int]
    """The index that each had before, completed ones first; empty if the order is unchanged."""
    size: int

    def statuses(self, refused: list[int]) -> list[int]:
        found = [1] * self.size
        for index in refused:
            found[self.order[index - 1] if self.order else index - 1] = 0
        return found


def sort_outcomes(outcomes: Sequence[Outcome]) -> Sorted:
    done: Sequence[Any] = outcomes
    others: list[Outcome] = []
    order: list[int] = []
    if any(map(_KIND, outcomes)):  # COMPLETE is 0, and in the common case all of them are of that kind
        done = [outcome for outcome in outcomes if _KIND(outcome) == COMPLETE]
        others = [outcome for outcome in outcomes if _KIND(outcome) != COMPLETE]
        # Sorting keeps those of a kind in order.
        order = sorted(range(len(outcomes)), key=lambda at: _KIND(outcomes[at]) != COMPLETE) if done else []
    _, ids, fences, results = zip(*done, strict=True) if done else ((), (), (), ())
    if results.count(None) == len(results):
        return Sorted([ids, fences, False], others, b"", order, len(outcomes))
    lengths = [-1 if result is None else len(result) for result in results]
    return Sorted([ids, fences, lengths], others, b"".join(filter(None, results)), order, len(outcomes))
