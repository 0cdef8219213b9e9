"""The command layer, without I/O: arguments in, a Call out, and the reply parsed. Only this module names scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from groupmq import record
from groupmq.drafts import Draft

T = TypeVar("T")
SCHEMA = "1"
CHUNK = 1000
"""Items per script call; `unpack` on the server fails near 8,000 values."""

CHUNK_BYTES = 16 * 1024 * 1024
"""Bytes per script call, if more than one item shares it; the server takes at most 512 MB in one argument."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Call(NamedTuple, Generic[T]):
    """One script call: what to send, and how to read what comes back."""

    script: str
    args: bytes
    parse: Callable[[Any], T]
    blob: bytes = b""


class Policy(NamedTuple):
    """What a script must know to end a run on its own."""

    max_attempts: int
    max_stalled: int
    keep: dict[str, int]

    def packed(self) -> dict[str, Any]:
        return {"max_attempts": self.max_attempts, "max_stalled": self.max_stalled, "keep": self.keep}


class Added(NamedTuple):
    now: int
    order_ms: int
    duplicates: list[int]
    """Positions, from 0, of the drafts whose id existed."""
    stood_for: Mapping[int, str] = {}
    """Position of a draft -> id of the job that stands for it (throttle, debounce)."""
    full: Sequence[int] = ()
    """Positions of the drafts whose group is full; they were not added."""


class StoredState(NamedTuple):
    """The mutable record of a job, `lua/lib/state.lua`."""

    attempts: int = 0
    stalls: int = 0
    started: int = 0
    finished: int = 0
    worker: str = ""
    reason: str = ""
    stack: str = ""


class View(NamedTuple):
    """All that is stored about a job."""

    state: str
    record: bytes
    stored: StoredState
    result: bytes | None
    score: float
    token: int
    started: int
    worker: str
    hold: int


class Taken(NamedTuple):
    """A job this worker now holds a lease of."""

    id: str
    token: int
    stored: StoredState
    record: bytes


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


class Due(NamedTuple):
    promoted: int
    woken: int
    stalled: list[Stalled]
    wait_ms: int


FRESH = StoredState()


def _args(**named: Any) -> bytes:
    return _encode({name: value for name, value in named.items() if value is not None})


def _text(raw: bytes) -> str:
    return raw.decode()


def _texts(raw: Sequence[bytes]) -> list[str]:
    return [item.decode() for item in raw]


def _stored(raw: bytes) -> StoredState:
    return StoredState(*_decode(raw)) if raw else FRESH


def chunked(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The items in their order, as few calls as a call may hold."""
    start = total = 0
    for at, item in enumerate(items):
        total += size(item)
        if at > start and (at - start == CHUNK or total > CHUNK_BYTES):
            yield items[start:at]
            start, total = at, size(item)
    if start < len(items):
        yield items[start:]


def open_queue(config: str, limit: int, rules: dict[str, Any], *, replace: bool = False) -> Call[tuple[str, str]]:
    def parse(reply: list[bytes]) -> tuple[str, str]:
        return reply[0].decode(), (reply[1] or b"{}").decode()

    return Call("open", _args(schema=SCHEMA, config=config, limit=limit, rules=rules, replace=replace), parse)


def add(drafts: Sequence[Draft], now: int | None = None, *, whole: bool = False) -> Call[Added]:
    """Add jobs. `whole`: if one of them finds its group full, none is added; else only that one is not."""
    items: list[Any] = []
    blob: list[bytes] = []
    extras: list[Any] | None = None
    for at, d in enumerate(drafts):
        order = b""
        if d.order_ms is not None:
            order = record.pack_order(d.order_ms)
            blob.append(order)
        blob.append(d.body)
        items += (d.id, d.group_id or "", d.priority, d.delay_ms, d.run_at_ms, len(order), len(d.body))
        if d.ttl_ms or d.dedupe:
            extras = extras or [False] * len(drafts)
            extras[at] = [d.ttl_ms or False, d.dedupe.packed() if d.dedupe else False]

    def parse(reply: list[Any]) -> Added:
        now, order_ms, duplicates, stood_for, full = reply
        return Added(
            now,
            order_ms,
            [position - 1 for position in duplicates],
            {stood_for[i] - 1: stood_for[i + 1].decode() for i in range(0, len(stood_for), 2)},
            [position - 1 for position in full],
        )

    repeats = len({d.id for d in drafts}) < len(drafts) or None
    args = _args(items=items, repeats=repeats, extras=extras, whole=whole or None, now=now)
    return Call("add", args, parse, b"".join(blob))


# Outcomes of a run, as `lua/lib/outcome.lua` reads them. The return value of a completed job travels in the blob.
COMPLETE, RETRY, FAIL, RELEASE, LIMITED = 0, 1, 2, 3, 4
Outcome = tuple[list[Any], bytes]


def completed(job_id: str, token: int, result: bytes | None) -> Outcome:
    return [COMPLETE, job_id, token, -1 if result is None else len(result)], result or b""


def retried(job_id: str, token: int, delay_ms: int, yields: bool, reason: str, stack: str) -> Outcome:
    return [RETRY, job_id, token, delay_ms, yields, reason, stack], b""


def failed(job_id: str, token: int, reason: str, stack: str) -> Outcome:
    return [FAIL, job_id, token, reason, stack], b""


def released(job_id: str, token: int) -> Outcome:
    return [RELEASE, job_id, token], b""


def limited(job_id: str, token: int, delay_ms: int) -> Outcome:
    return [LIMITED, job_id, token, delay_ms], b""


def advance(
    *,
    worker: str,
    lane: str,
    request: int,
    outcomes: Sequence[Outcome],
    take: int,
    lease_ms: int,
    policy: Policy,
    batch: int | None = None,
    epoch: int | None = None,
    now: int | None = None,
) -> Call[Advanced]:
    """`batch` and `epoch` are of an exclusive queue: jobs per turn, and the turn the worker believes to have."""
    completed: list[Any] = []
    others: list[list[Any]] = []
    blobs: list[bytes] = []
    mixed: list[tuple[bool, int]] = []
    for fields, blob in outcomes:
        if fields[0] == COMPLETE:
            completed += fields[1:]
            blobs.append(blob)
        else:
            others.append(fields)
    if others and completed:
        mixed = _positions(outcomes)
    args = _args(
        worker=worker,
        lane=lane,
        request=request,
        completed=completed,
        others=others,
        take=take,
        lease=lease_ms,
        policy=policy.packed(),
        batch=batch,
        epoch=epoch,
        now=now,
    )

    def parse(reply: list[Any]) -> Advanced:
        now, wait_ms, statuses, stalled, flat, tick_ms, epoch = reply
        if mixed:
            n = len(completed) // 3
            statuses = [statuses[at if is_completed else n + at] for is_completed, at in mixed]
        jobs = [Taken(flat[i].decode(), flat[i + 1], _stored(flat[i + 2]), flat[i + 3]) for i in range(0, len(flat), 4)]
        return Advanced(now, wait_ms, statuses, _parse_stalled(stalled), jobs, tick_ms, epoch)

    return Call("advance", args, parse, b"".join(blobs))


def _positions(outcomes: Sequence[Outcome]) -> list[tuple[bool, int]]:
    """Where each outcome's status is: the server answers the completed ones first, then the others."""
    counts = {True: 0, False: 0}
    found = []
    for fields, _ in outcomes:
        is_completed = fields[0] == COMPLETE
        found.append((is_completed, counts[is_completed]))
        counts[is_completed] += 1
    return found


def _parse_stalled(flat: list[Any]) -> list[Stalled]:
    return [Stalled(flat[i].decode(), flat[i + 1].decode() or None, flat[i + 2] == 1) for i in range(0, len(flat), 3)]


def due(
    policy: Policy, *, promote: bool = True, unpark: bool = True, expire: bool = True, now: int | None = None
) -> Call[Due]:
    def parse(reply: list[Any]) -> Due:
        return Due(reply[0], reply[1], _parse_stalled(reply[2]), reply[3])

    args = _args(policy=policy.packed(), promote=promote, unpark=unpark, expire=expire, now=now)
    return Call("due", args, parse)


def beat(
    worker: str, info: str | None, lease_ms: int, held: Sequence[tuple[str, int]], now: int | None = None
) -> Call[list[str]]:
    flat: list[Any] = [value for pair in held for value in pair]
    return Call("beat", _args(worker=worker, info=info, lease=lease_ms, held=flat, now=now), _texts)


def leave(workers: Sequence[str], lanes: Sequence[str]) -> Call[int]:
    return Call("leave", _args(workers=list(workers), lanes=list(lanes)), int)


def get(ids: Sequence[str], now: int | None = None) -> Call[list[View | None]]:
    return Call("get", _args(ids=list(ids), now=now), lambda reply: [_parse_view(raw) for raw in reply])


def _parse_view(raw: list[Any] | None) -> View | None:
    if raw is None:
        return None
    state, stored_record, stored, result, score, token, started, worker, hold = raw
    return View(
        state.decode(),
        stored_record,
        _stored(stored),
        result,
        float(score),
        token,
        started,
        _text(worker),
        hold,
    )


def remove(ids: Sequence[str], states: Sequence[str] | None = None, now: int | None = None) -> Call[list[bool]]:
    args = _args(ids=list(ids), states=list(states) if states is not None else None, now=now)
    return Call("remove", args, lambda reply: [one == 1 for one in reply])


def _parse_change(reply: list[Any]) -> tuple[str, bool]:
    return reply[0].decode(), reply[1] == 1


def reschedule(job_id: str, delay_ms: int, *, only_delayed: bool, now: int | None = None) -> Call[tuple[str, bool]]:
    return Call("reschedule", _args(id=job_id, delay=delay_ms, only_delayed=only_delayed, now=now), _parse_change)


def retry(job_id: str, now: int | None = None) -> Call[tuple[str, bool]]:
    return Call("retry", _args(id=job_id, now=now), _parse_change)


def fail(job_id: str, reason: str, keep: dict[str, int], now: int | None = None) -> Call[tuple[str, bool]]:
    return Call("fail", _args(id=job_id, reason=reason, keep=keep, now=now), _parse_change)


def update(job_id: str, data: bytes) -> Call[str]:
    return Call("update", _args(id=job_id), _text, data)


def switch(
    *,
    paused: bool | None = None,
    group_id: str | None = None,
    limit: int | None = None,
    rate: Sequence[int] | None = None,
    now: int | None = None,
) -> Call[bool]:
    """`rate`: starts and milliseconds; empty = the queue's own."""
    args = _args(paused=paused, group=group_id, limit=limit, rate=rate, now=now)
    return Call("switch", args, lambda reply: reply == 1)


def counts() -> Call[list[int]]:
    return Call("counts", _args(), list)


def look_group(group_id: str, now: int | None = None) -> Call[list[Any]]:
    return Call("look_group", _args(group=group_id, now=now), lambda reply: [_text(reply[0]), *reply[1:]])


def list_jobs(kind: str, offset: int, limit: int, *, newest: bool = False) -> Call[list[str]]:
    return Call("list", _args(kind=kind, offset=offset, limit=limit, newest=newest), _texts)


def _parse_page(reply: list[Any]) -> tuple[str, list[str]]:
    return reply[0].decode(), _texts(reply[1])


def list_waiting(cursor: str, limit: int) -> Call[tuple[str, list[str]]]:
    return Call("list_waiting", _args(cursor=cursor, limit=limit), _parse_page)


def list_groups(cursor: str) -> Call[tuple[str, list[str]]]:
    return Call("list_groups", _args(cursor=cursor), _parse_page)


class Stats(NamedTuple):
    now: int
    counters: list[int]
    workers: dict[str, bytes]
    failures: list[list[Any]]


def stats(failures: int = 0) -> Call[Stats]:
    def parse(reply: list[Any]) -> Stats:
        pairs = reply[2]
        workers = {pairs[i].decode(): pairs[i + 1] for i in range(0, len(pairs), 2)}
        return Stats(reply[0], reply[1], workers, [_decode(raw) for raw in reply[3]])

    return Call("stats", _args(failures=failures), parse)


def clean(kind: str, age_ms: int, limit: int, now: int | None = None) -> Call[int]:
    return Call("clean", _args(kind=kind, age=age_ms, limit=limit, now=now), int)


def obliterate() -> Call[int]:
    return Call("obliterate", _args(), int)


class Mended(NamedTuple):
    cursor: str
    looked_at: int
    damage: list[tuple[str, str]]
    groups: list[str]


def repair(structure: str, cursor: str, group_id: str | None = None, now: int | None = None) -> Call[Mended]:
    def parse(reply: list[Any]) -> Mended:
        flat = reply[2]
        damage = [(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)]
        return Mended(reply[0].decode(), reply[1], damage, _texts(reply[3]))

    return Call("repair", _args(structure=structure, cursor=cursor, group=group_id, now=now), parse)


# Repeating jobs


class Repeats(NamedTuple):
    """Definitions as stored, by repeat id; `repeating.py` reads them."""

    now: int
    found: dict[str, bytes]
    wait_ms: int
    cursor: str


def _parse_repeats(reply: list[Any]) -> Repeats:
    now, flat, wait_ms, cursor = reply
    return Repeats(now, {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}, wait_ms, cursor.decode())


def repeats_due(limit: int = 100, now: int | None = None) -> Call[Repeats]:
    return Call("repeats", _args(limit=limit, now=now), _parse_repeats)


def repeats_of(ids: Sequence[str], now: int | None = None) -> Call[Repeats]:
    return Call("repeats", _args(ids=list(ids), now=now), _parse_repeats)


def repeats_page(cursor: str, limit: int = 100, now: int | None = None) -> Call[Repeats]:
    return Call("repeats", _args(all=True, cursor=cursor, limit=limit, now=now), _parse_repeats)


def define(
    repeat_id: str,
    expected: bytes,
    definition: dict[str, Any] | None,
    body: bytes = b"",
    tick_ms: int | None = None,
    now: int | None = None,
) -> Call[bool]:
    """Store or remove a definition, if the stored one is still `expected`; perhaps with an occurrence at once."""
    args = _args(id=repeat_id, size=len(expected), definition=definition, tick=tick_ms, now=now)
    return Call("define", args, lambda reply: reply == 1, expected + body)


class Ticked(NamedTuple):
    added: int
    wait_ms: int


def tick(ticks: Sequence[Sequence[Any]], now: int | None = None) -> Call[Ticked]:
    """Per repeat: id, expected tick, next tick (0 = none), ticks to add."""
    return Call("tick", _args(ticks=[list(one) for one in ticks], now=now), lambda reply: Ticked(*reply))


def look_turn(now: int | None = None) -> Call[list[Any]]:
    return Call("look_turn", _args(now=now), lambda reply: [_text(reply[0]), *reply[1:]] if reply else [])
