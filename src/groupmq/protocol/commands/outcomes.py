"""Outcomes of runs, as the Lua side reads them (`lua/lib/outcome.lua`)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

# The kinds. The return value of a completed job travels in the blob.
COMPLETE, RETRY, FAIL, RELEASE, RATE_LIMITED, BEGIN, ABANDON, ENDED, SNOOZE = 0, 1, 2, 3, 4, 5, 6, 7, 8
Outcome = tuple[Any, ...]
"""Kind, id, fence, and the values that the kind needs."""
_KIND = itemgetter(0)


def completed(job_id: str, fence: int, result: bytes | None) -> Outcome:
    return COMPLETE, job_id, fence, result


def retried(job_id: str, fence: int, delay_ms: int, yields: bool, reason: str, stack: str, error: str = "") -> Outcome:
    """`error`: class of the error that the handler raised, with its path."""
    return RETRY, job_id, fence, delay_ms, yields, reason, stack, error


def failed(job_id: str, fence: int, reason: str, stack: str, error: str = "") -> Outcome:
    return FAIL, job_id, fence, reason, stack, error


def released(job_id: str, fence: int, *, begun: bool = False) -> Outcome:
    """The job goes back to its group, and no attempt is used. `begun`: its handler was called."""
    return RELEASE, job_id, fence, begun


def rate_limited(job_id: str, fence: int, delay_ms: int, reason: str = "", error: str = "") -> Outcome:
    return RATE_LIMITED, job_id, fence, delay_ms, reason, error


def snoozed(job_id: str, fence: int, delay_ms: int, yields: bool, reason: str = "", error: str = "") -> Outcome:
    """The handler asked to be called later; no attempt is used, and unless it `yields` its group waits."""
    return SNOOZE, job_id, fence, delay_ms, yields, reason, error


def begun(job_id: str, fence: int) -> Outcome:
    """No outcome yet: the handler of a job that this worker holds was called."""
    return BEGIN, job_id, fence


def abandoned(job_id: str, fence: int, reason: str, stack: str, error: str = "") -> Outcome:
    """The job failed, but its handler has not ended: its group waits for `ended`, or for the end of the lease."""
    return ABANDON, job_id, fence, reason, stack, error


def ended(job_id: str, fence: int) -> Outcome:
    """The handler has ended: that of an abandoned run, or of a job that an operator has ended."""
    return ENDED, job_id, fence


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
    if not any(map(_KIND, outcomes)):  # COMPLETE is 0: all of them, the common case
        results = [outcome[3] for outcome in outcomes]
        columns = [[outcome[1] for outcome in outcomes], [outcome[2] for outcome in outcomes]]
        if results.count(None) == len(results):
            return Sorted([*columns, False], [], b"", [], len(outcomes))
        lengths = [-1 if result is None else len(result) for result in results]
        return Sorted([*columns, lengths], [], b"".join(filter(None, results)), [], len(outcomes))
    ids: list[str] = []
    fences: list[int] = []
    sizes: list[int] = []
    others: list[Outcome] = []
    blobs: list[bytes] = []
    order: list[int] = []
    for outcome in outcomes:
        if outcome[0] != COMPLETE:
            others.append(outcome)
            continue
        _, job_id, fence, result = outcome
        ids.append(job_id)
        fences.append(fence)
        sizes.append(-1 if result is None else len(result))
        if result is not None:
            blobs.append(result)
    if others and ids:
        # Sorting keeps those of a kind in order.
        order = sorted(range(len(outcomes)), key=lambda at: outcomes[at][0] != COMPLETE)
    return Sorted([ids, fences, sizes if blobs else False], others, b"".join(blobs), order, len(outcomes))
