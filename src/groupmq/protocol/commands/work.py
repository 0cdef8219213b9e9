"""Calls of a worker: report and take, what is due, heartbeats."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import count, repeat
from typing import Any, NamedTuple

from groupmq.core.tuples import of_class
from groupmq.protocol.call import FRESH, Call, Policy, StoredState, arguments, state_of, texts
from groupmq.protocol.commands.outcomes import Outcome, sort_outcomes


class Taken(NamedTuple):
    """A job that this worker now has a lease for."""

    id: str
    fence: int
    stored: StoredState
    record: bytes


class Stalled(NamedTuple):
    """A job whose lease expired while it ran."""

    id: str
    group_id: str | None
    final: bool
    """It has failed for good; otherwise it runs again."""
    blocks: bool = False
    """It blocks its group until it is retried, skipped or removed."""
    cancelled: bool = False
    """It was cancelled while it ran, and for that reason it does not run again."""


class Expired(NamedTuple):
    """A job that failed because it had not started when its ttl ended."""

    id: str
    group_id: str | None
    blocks: bool
    """It blocks its group until it is retried, skipped or removed."""


class Advanced(NamedTuple):
    now: int
    wait_ms: int
    accepted: list[int]
    stalled: list[Stalled]
    expired: list[Expired]
    jobs: list[Taken]
    tick_ms: int = -1
    """ms until the next tick of a repeating job; -1 = there is none."""
    epoch: int = 0
    """The epoch of this worker's turn in an exclusive queue; 0 = it has none."""
    rows: Sequence[int] = ()
    """How many of the jobs run one after the other, row by row; empty = each alone. A reserve comes last."""
    wanted: int = 0
    """Another worker is idle: give back the reserve under fences up to this one; 0 = no worker is idle."""
    again: bool = False
    """This worker may have received these jobs before: the request was sent again, or an add has granted the job."""


class Granted(NamedTuple):
    """A job that an add has granted to an idle worker."""

    now: int
    """When it was granted, by the server's clock, in ms."""
    lease_ms: int
    job: Taken


class Beat(NamedTuple):
    lost: list[str]
    """Jobs whose lease this worker no longer has."""
    tick_ms: int
    """ms until the next tick of a repeating job; -1 = there is none."""
    cancelled: list[int]
    """Fences of runs to stop."""
    ended: list[int]
    """Fences of runs whose job an operator has ended. They are stopped too; their outcome does not count."""
    recalled: list[int]
    """Fences of jobs to give back unless they have begun."""
    accepted: list[int]
    """1 or 0 for each outcome."""
    wanted: int = 0
    """As in `Advanced`."""
    void: int = 0
    """If the beat refused grants: a grant up to this fence that arrives later must not start; else 0."""
    taken_back: bool = False
    """The call that the beat named as unseen was carried out: its jobs no longer belong to this worker."""


class Due(NamedTuple):
    promoted: int
    woken: int
    stalled: list[Stalled]
    expired: list[Expired]
    wait_ms: int
    overdue: int = 0
    """Jobs that were checked because their ttl has ended."""
    more_expired: int = 0
    """1: there may be more expired entries than one call deletes."""


def advance(
    *,
    worker: str,
    requester: str,
    request: int,
    outcomes: Sequence[Outcome],
    take: int,
    lease_ms: int,
    policy: Policy,
    row: int = 1,
    fill: int = 0,
    batch_wait_ms: int | None = None,
    confirms: bool = False,
    offers: bool | None = None,
    received: int = 0,
    turn_size: int | None = None,
    epoch: int | None = None,
    now: int | None = None,
) -> Call[Advanced]:
    """Take up to `take` jobs, and behind each up to `row - 1` more of its group, to run after it.

    With `batch_wait_ms` they start at once, as a batch; a group waits that long until it has `row` jobs.

    If these are fewer than `fill` jobs, a reserve is taken as well: jobs of other groups, or without a group, to start
    when a slot is free.

    `confirms`: the worker confirms when it begins a job; otherwise a job has begun as soon as it is taken.

    `offers`: if no more jobs can start, the next `add` may grant its job to this worker at once (`read_grant`); False =
    not any more. `received`: the fence of the last job that it has received that way, 0 = none.

    `turn_size` and `epoch` are for an exclusive queue: jobs per turn, and the turn that the worker believes it has.
    """
    sent = sort_outcomes(outcomes)
    args = arguments(
        worker=worker,
        requester=requester,
        request=request,
        completed=sent.completed,
        others=sent.others,
        take=take,
        lease=lease_ms,
        policy=policy.packed(),
        row=row if row > 1 else None,
        fill=fill or None,
        together=batch_wait_ms,
        confirms=confirms or None,
        offers=offers,
        received=received or None,
        batch=turn_size,
        epoch=epoch,
        now=now,
    )

    def parse(reply: list[Any]) -> Advanced:
        now, wait_ms, refused, stalled, expired, jobs, tick_ms, epoch, rows, wanted, again = reply
        return Advanced(
            now,
            wait_ms,
            sent.statuses(refused),
            _parse_stalled(stalled),
            _parse_expired(expired),
            _parse_taken(*jobs),
            tick_ms,
            epoch,
            rows,
            wanted,
            again == 1,
        )

    return Call("advance", args, parse, sent.blob)


_GRANT = struct.Struct(">7s6s6sH")


def read_grant(raw: bytes) -> Granted:
    """Read a job that an add has granted, as `lua/lib/offer.lua` writes it."""
    fence, now, lease_ms, size = _GRANT.unpack_from(raw)
    at = _GRANT.size + size
    job = Taken(raw[_GRANT.size : at].decode(), int.from_bytes(fence, "big"), FRESH, raw[at:])
    return Granted(int.from_bytes(now, "big"), int.from_bytes(lease_ms, "big"), job)


def _parse_taken(
    ids: list[bytes | None],
    first: int,
    states: list[bytes | None],
    records: list[bytes],
    beside: Sequence[Any] = (),
) -> list[Taken]:
    """Fences are consecutive, beginning with `first`. The id is None for a job whose lease no longer stands.

    `beside`: data of large jobs, which their records do not have: position, data, position ...
    """
    for at in range(0, len(beside), 2):
        records[beside[at] - 1] += beside[at + 1]
    return [
        of_class(Taken, (job_id.decode(), fence, state_of(state) if state else FRESH, record))
        for job_id, fence, state, record in zip(ids, count(first), states or repeat(None), records, strict=False)
        if job_id is not None
    ]


def _parse_stalled(flat: list[Any]) -> list[Stalled]:
    return [Stalled(*_names(flat, at), *_AFTER_STALL[flat[at + 2]]) for at in range(0, len(flat), 3)]


_AFTER_STALL = {0: (False, False, False), 1: (True, False, False), 2: (True, True, False), 3: (True, False, True)}
"""`final`, `blocks` and `cancelled` by the code of `lua/transitions/stall.lua`."""


def _parse_expired(flat: list[Any]) -> list[Expired]:
    return [Expired(*_names(flat, at), flat[at + 2] == 1) for at in range(0, len(flat), 3)]


def _names(flat: list[Any], at: int) -> tuple[str, str | None]:
    """Id and group of the job whose values begin at `at`."""
    return flat[at].decode(), flat[at + 1].decode() or None


def due(
    policy: Policy, *, promote: bool = True, unpark: bool = True, expire: bool = True, now: int | None = None
) -> Call[Due]:
    def parse(reply: list[Any]) -> Due:
        return Due(reply[0], reply[1], _parse_stalled(reply[2]), _parse_expired(reply[3]), *reply[4:])

    args = arguments(policy=policy.packed(), promote=promote, unpark=unpark, expire=expire, now=now)
    return Call("due", args, parse)


def beat(
    worker: str,
    info: str | None,
    lease_ms: int,
    held: Sequence[tuple[str, int]],
    now: int | None = None,
    *,
    outcomes: Sequence[Outcome] = (),
    keep: dict[str, int] | None = None,
    refuses: int | None = None,
    unseen: tuple[str, int] | None = None,
) -> Call[Beat]:
    """A heartbeat. It carries outcomes for a worker whose event loop is blocked; these need `keep`, as in a Policy.

    `refuses`: the loop is blocked, and the last grant that it has received has this fence; a later one goes back.
    `unseen`: the loop is blocked, and has not seen the answer to this request of this requester; the jobs of that
    answer go back. This also needs `keep`.
    """
    sent = sort_outcomes(outcomes)
    args = arguments(
        worker=worker,
        info=info,
        lease=lease_ms,
        held=[value for pair in held for value in pair],
        completed=sent.completed if outcomes else None,
        others=sent.others if outcomes else None,
        keep=keep if outcomes or unseen else None,
        refuses=refuses,
        unseen=unseen,
        now=now,
    )

    def parse(reply: list[Any]) -> Beat:
        lost, tick_ms, cancelled, ended, recalled, refused, wanted, void, taken_back = reply
        statuses = sent.statuses(refused)
        return Beat(texts(lost), tick_ms, cancelled, ended, recalled, statuses, wanted, void, taken_back == 1)

    return Call("beat", args, parse, sent.blob)


REQUESTERS = 2
"""The most requesters that a worker has: calls under way at the same time."""


def requester_names(worker: str, count: int = REQUESTERS) -> list[str]:
    """The names of a worker's requesters on the server, which keeps the last reply to each."""
    return [f"{worker}:{number}" for number in range(count)]


def worker_of(requester: str) -> str:
    """The worker that a requester belongs to: the reverse of `requester_names`."""
    return requester.rpartition(":")[0]


def leave(
    workers: Sequence[str], requesters: Sequence[str], received: int | None = None, now: int | None = None
) -> Call[int]:
    """Forget these workers. `received`: as in `advance`, if the worker itself makes the call."""
    return Call("leave", arguments(workers=list(workers), requesters=list(requesters), received=received, now=now), int)


def take_back(
    worker: str, runs: Sequence[tuple[str, int]], policy: Policy, now: int | None = None
) -> Call[list[Stalled]]:
    """End leases (id, fence) of a worker whose process has ended, as if they had expired."""
    flat = [value for pair in runs for value in pair]
    return Call("take_back", arguments(worker=worker, runs=flat, policy=policy.packed(), now=now), _parse_stalled)


def runnable(now: int | None = None) -> Call[bool]:
    """Whether a waiting job may start now, regardless of which worker has the turn of an exclusive queue."""
    return Call("runnable", arguments(now=now), bool)
