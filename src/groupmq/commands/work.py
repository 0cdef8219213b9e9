"""Calls of a worker: report and take, what is due, heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, repeat
from typing import Any, NamedTuple

from groupmq.commands.call import FRESH, Call, Policy, StoredState, arguments, state_of, texts


class Taken(NamedTuple):
    """A job this worker now holds a lease of."""

    id: str
    token: int
    stored: StoredState
    record: bytes


_new = tuple.__new__
"""Makes a named tuple without the detour through its class; for what passes by the thousand."""


class Stalled(NamedTuple):
    id: str
    group_id: str | None
    final: bool


class Advanced(NamedTuple):
    now: int
    wait_ms: int
    accepted: list[int]
    stalled: list[Stalled]
    jobs: list[Taken]
    tick_ms: int = -1
    """Until the next tick of a repeating job; -1 = there is none."""
    epoch: int = 0
    """Of this worker's turn in an exclusive queue; 0 = it has none."""
    rows: Sequence[int] = ()
    """How many of the jobs run one after the other, row by row; empty = each by itself."""


class Beat(NamedTuple):
    lost: list[str]
    """Jobs whose lease is another's by now."""
    tick_ms: int
    """Until the next tick of a repeating job; -1 = there is none."""
    cancelled: list[int]
    """Tokens of the runs that are to be stopped."""


class Due(NamedTuple):
    promoted: int
    woken: int
    stalled: list[Stalled]
    wait_ms: int


# Outcomes of a run, as `lua/lib/outcome.lua` reads them. The return value of a completed job travels in the blob.
COMPLETE, RETRY, FAIL, RELEASE, LIMITED, BEGIN = 0, 1, 2, 3, 4, 5
Outcome = tuple[Any, ...]
"""Kind, id, token, and what the kind needs."""


def completed(job_id: str, token: int, result: bytes | None) -> Outcome:
    return COMPLETE, job_id, token, result


def retried(job_id: str, token: int, delay_ms: int, yields: bool, reason: str, stack: str) -> Outcome:
    return RETRY, job_id, token, delay_ms, yields, reason, stack


def failed(job_id: str, token: int, reason: str, stack: str) -> Outcome:
    return FAIL, job_id, token, reason, stack


def released(job_id: str, token: int) -> Outcome:
    return RELEASE, job_id, token


def limited(job_id: str, token: int, delay_ms: int) -> Outcome:
    return LIMITED, job_id, token, delay_ms


def begun(job_id: str, token: int) -> Outcome:
    """No outcome yet: a job that was taken ahead runs by now."""
    return BEGIN, job_id, token


def advance(
    *,
    worker: str,
    lane: str,
    request: int,
    outcomes: Sequence[Outcome],
    take: int,
    lease_ms: int,
    policy: Policy,
    row: int = 1,
    batch: int | None = None,
    epoch: int | None = None,
    now: int | None = None,
) -> Call[Advanced]:
    """Take up to `take` jobs, and behind each up to `row - 1` more of its group, to run after it.

    `batch` and `epoch` are of an exclusive queue: jobs per turn, and the turn the worker believes to have.
    """
    ids: list[str] = []
    tokens: list[int] = []
    sizes: list[int] = []
    others: list[Outcome] = []
    blobs: list[bytes] = []
    order: list[int] = []
    for outcome in outcomes:
        if outcome[0] != COMPLETE:
            others.append(outcome)
            continue
        _, job_id, token, result = outcome
        ids.append(job_id)
        tokens.append(token)
        sizes.append(-1 if result is None else len(result))
        if result is not None:
            blobs.append(result)
    if others and ids:
        # The server counts the completed ones first. Sorting keeps those of a kind in order.
        order = sorted(range(len(outcomes)), key=lambda at: outcomes[at][0] != COMPLETE)
    args = arguments(
        worker=worker,
        lane=lane,
        request=request,
        completed=[ids, tokens, sizes if blobs else False],
        others=others,
        take=take,
        lease=lease_ms,
        policy=policy.packed(),
        row=row if row > 1 else None,
        batch=batch,
        epoch=epoch,
        now=now,
    )

    def parse(reply: list[Any]) -> Advanced:
        now, wait_ms, refused, stalled, jobs, tick_ms, epoch, rows = reply
        statuses = [1] * len(outcomes)
        for place in refused:
            statuses[order[place - 1] if order else place - 1] = 0
        return Advanced(now, wait_ms, statuses, _parse_stalled(stalled), _parse_taken(*jobs), tick_ms, epoch, rows)

    return Call("advance", args, parse, b"".join(blobs))


def _parse_taken(ids: list[bytes | None], first: int, states: list[bytes | None], records: list[bytes]) -> list[Taken]:
    """Tokens follow each other, from the first; an id that is None is of a job whose lease stands no more."""
    return [
        _new(Taken, (job_id.decode(), token, state_of(state) if state else FRESH, record))
        for job_id, token, state, record in zip(ids, count(first), states or repeat(None), records, strict=False)
        if job_id is not None
    ]


def _parse_stalled(flat: list[Any]) -> list[Stalled]:
    return [Stalled(flat[i].decode(), flat[i + 1].decode() or None, flat[i + 2] == 1) for i in range(0, len(flat), 3)]


def due(
    policy: Policy, *, promote: bool = True, unpark: bool = True, expire: bool = True, now: int | None = None
) -> Call[Due]:
    def parse(reply: list[Any]) -> Due:
        return Due(reply[0], reply[1], _parse_stalled(reply[2]), reply[3])

    args = arguments(policy=policy.packed(), promote=promote, unpark=unpark, expire=expire, now=now)
    return Call("due", args, parse)


def _parse_beat(reply: list[Any]) -> Beat:
    return Beat(texts(reply[0]), reply[1], reply[2][1::2])


def beat(
    worker: str, info: str | None, lease_ms: int, held: Sequence[tuple[str, int]], now: int | None = None
) -> Call[Beat]:
    flat: list[Any] = [value for pair in held for value in pair]
    return Call("beat", arguments(worker=worker, info=info, lease=lease_ms, held=flat, now=now), _parse_beat)


def leave(workers: Sequence[str], lanes: Sequence[str]) -> Call[int]:
    return Call("leave", arguments(workers=list(workers), lanes=list(lanes)), int)
