"""Calls that add, read and change jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from groupmq.core import record
from groupmq.core.drafts import Draft
from groupmq.core.durations import instant_of
from groupmq.core.snapshot import LogLine
from groupmq.protocol.call import Call, StoredState, arguments, decode, raw_text, state_of, text, texts


class Added(NamedTuple):
    now: int
    order_ms: int
    duplicates: list[int]
    """Positions, from 0, of the drafts whose id existed."""
    stood_for: Mapping[int, str] = {}
    """Position of a draft -> id of the job that stands for it: throttle, debounce, or its own id, if a job that has
    ended and is not kept still takes it."""
    full: Sequence[int] = ()
    """Positions of the drafts whose group is full; they were not added."""
    made: Mapping[int, int] = {}
    """Position of a draft that a job stands for -> when that job was made, in ms."""


class StoredJob(NamedTuple):
    """All that is stored about a job."""

    state: str
    record: bytes
    stored: StoredState
    result: bytes | None
    score: float
    fence: int
    started: int
    worker: str
    hold: int
    progress: bytes | None = None
    log: bytes | None = None
    expires: int = 0
    blocks: int = 0
    """Since when it blocks its group, in ms; 0 = it does not."""


def add(drafts: Sequence[Draft], now: int | None = None, *, whole: bool = False) -> Call[Added]:
    """Add jobs. `whole`: if one of them finds its group full, none is added; otherwise only that one is left out."""
    given: list[bytes] = []
    preamble, sizes = None, [len(d.body) for d in drafts]
    for d in drafts:
        if d.order_ms is not None:
            given.append(record.pack_order(d.order_ms))
        given.append(d.body)
    if len(drafts) == 1 and len(drafts[0].data) > record.LARGE:
        # The server stores the data as it comes. Cutting it out of a longer text would take a millisecond.
        given[-1], data = record.divided(drafts[0].body)
        preamble, sizes, given = b"".join(given), [len(given[-1])], [data]

    def parse(reply: list[Any]) -> Added:
        now, order_ms, duplicates, stood_for, full = reply
        return Added(
            now,
            order_ms,
            [position - 1 for position in duplicates],
            {stood_for[i] - 1: stood_for[i + 1].decode() for i in range(0, len(stood_for), 3)},
            [position - 1 for position in full],
            {stood_for[i] - 1: stood_for[i + 2] for i in range(0, len(stood_for), 3)},
        )

    ids = [d.id for d in drafts]
    args = arguments(
        ids=ids,
        groups=[d.group_id or "" for d in drafts],
        sizes=sizes,
        priorities=_unless_all_alike([d.priority for d in drafts], 0),
        delays=_unless_all_alike([d.delay_ms for d in drafts], 0),
        times=_unless_all_alike([d.run_at_ms for d in drafts], 0),
        ordered=_unless_all_alike([d.order_ms is not None for d in drafts], False),
        extras=_unless_all_alike([_extra(d) for d in drafts], False),
        repeats=len(set(ids)) < len(ids) or None,
        whole=whole or None,
        preamble=None if preamble is None else raw_text(preamble),
        now=now,
    )
    return Call("add", args, parse, b"".join(given))


def _unless_all_alike(values: list[Any], usual: Any) -> list[Any] | None:
    """Omit a column whose values are all the default."""
    return None if values.count(usual) == len(values) else values


def _extra(d: Draft) -> list[Any] | bool:
    if d.ttl_ms or d.dedupe or d.unique_ms:
        extra: list[Any] = [d.ttl_ms or False, d.dedupe.packed() if d.dedupe else False]
        return [*extra, d.unique_ms] if d.unique_ms else extra
    return False


def get(ids: Sequence[str], now: int | None = None) -> Call[list[StoredJob | None]]:
    """Read the first of these jobs, as many as fit into one reply."""
    return Call("get", arguments(ids=list(ids), now=now), lambda reply: [_parse_view(raw) for raw in reply])


def _parse_view(raw: list[Any] | None) -> StoredJob | None:
    if raw is None:
        return None
    state, stored_record, stored, result, score, fence, started, worker, hold, progress, log, expires, blocks = raw[:13]
    return StoredJob(
        state.decode(),
        b"".join((stored_record, *raw[13:])),  # the data of a large job is stored beside its record
        state_of(stored),
        result,
        float(score),
        fence,
        started,
        text(worker),
        hold,
        progress,
        log,
        int(expires),
        blocks,
    )


LEFT, DONE, UNSETTLED = 0, 1, 2
"""The effect of a call on a job: none, the requested one, or none yet.

UNSETTLED: the job may not have begun and its worker has been asked, or the call may not read so many bytes. The call is
made again until the worker has given the job back or confirmed that it has begun.
"""


class Change(NamedTuple):
    state: str
    """The state in which the job was found; '' = there is no such job."""
    status: int
    """LEFT, DONE or UNSETTLED."""


def remove(ids: Sequence[str], states: Sequence[str] | None = None, now: int | None = None) -> Call[list[int]]:
    """LEFT, DONE or UNSETTLED for each."""
    args = arguments(ids=list(ids), states=list(states) if states is not None else None, now=now)
    return Call("remove", args, list)


def _parse_change(reply: list[Any]) -> Change:
    return Change(reply[0].decode(), reply[1])


def reschedule(job_id: str, delay_ms: int, *, only_delayed: bool, now: int | None = None) -> Call[Change]:
    return Call("reschedule", arguments(id=job_id, delay=delay_ms, only_delayed=only_delayed, now=now), _parse_change)


def retry(job_id: str, now: int | None = None) -> Call[Change]:
    return Call("redrive", arguments(ids=[job_id], now=now), _parse_change)


def retry_all(ids: Sequence[str], stamps: Sequence[str] | None = None, now: int | None = None) -> Call[list[int]]:
    """LEFT, DONE or UNSETTLED for each. `stamps`: those of the failures meant; a later failure is left alone."""
    return Call("redrive", arguments(ids=list(ids), stamps=stamps, now=now), lambda reply: reply[1::2])


class Failed(NamedTuple):
    change: Change
    group_id: str
    """The group that the job blocks now, if workers hold other jobs of it, which must be recalled; else empty."""


def fail(job_id: str, reason: str, keep: dict[str, int], now: int | None = None) -> Call[Failed]:
    def parse(reply: list[Any]) -> Failed:
        return Failed(_parse_change(reply), reply[2].decode())

    return Call("fail", arguments(id=job_id, reason=reason, keep=keep, now=now), parse)


class Skipped(NamedTuple):
    changes: list[Change]
    """For each job: the state it was found in, and LEFT (it blocks no group), DONE or UNSETTLED (ask again)."""
    left: int
    """Jobs that still block the group, if a group was named."""


def _parse_skipped(reply: list[Any]) -> Skipped:
    flat, left = reply
    return Skipped([Change(flat[i].decode(), flat[i + 1]) for i in range(0, len(flat), 2)], left)


def skip(ids: Sequence[str], keep: dict[str, int], now: int | None = None) -> Call[Skipped]:
    """Give up jobs that block their groups: they stay failed, the groups go on."""
    return Call("skip", arguments(ids=list(ids), keep=keep, now=now), _parse_skipped)


def skip_group(group_id: str, limit: int, keep: dict[str, int], now: int | None = None) -> Call[Skipped]:
    """The same for the first `limit` jobs that block a group; it goes on when none is left."""
    return Call("skip", arguments(group=group_id, limit=limit, keep=keep, now=now), _parse_skipped)


def update(job_id: str, data: bytes, now: int | None = None) -> Call[Change]:
    return Call("update", arguments(id=job_id, now=now), _parse_change, data)


class Recalled(NamedTuple):
    cursor: str
    unsettled: list[str]
    """Prefetched jobs whose worker has been asked for them."""
    running: list[str]


def _parse_recalled(reply: list[Any]) -> Recalled:
    return Recalled(reply[0].decode(), texts(reply[1]), texts(reply[2]))


def recall(ids: Sequence[str], now: int | None = None) -> Call[Recalled]:
    """Ask workers for jobs that may not have begun. Jobs that were given back, or have begun, are settled."""
    return Call("recall", arguments(ids=list(ids), now=now), _parse_recalled)


def recall_page(cursor: str, group_id: str | None = None, now: int | None = None) -> Call[Recalled]:
    """The same for a page of all leases: the first cursor is '0', and '0' again is the end."""
    return Call("recall", arguments(cursor=cursor, group=group_id, now=now), _parse_recalled)


FOUND_UNSETTLED = "unsettled"


class Cancelled(NamedTuple):
    found: list[tuple[str, str]]
    """Job and the state it was found in, '' = there is none, FOUND_UNSETTLED = it may not have begun."""
    left: int
    """How many jobs of the group still wait."""

    @property
    def live(self) -> set[str]:
        """The jobs that had not ended when the call found them."""
        return {job_id for job_id, state in self.found if state in ("waiting", "delayed", "active")}


def _parse_cancelled(reply: list[Any]) -> Cancelled:
    flat, left = reply
    return Cancelled([(flat[i].decode(), flat[i + 1].decode()) for i in range(0, len(flat), 2)], left)


def log_lines(raw: bytes) -> list[LogLine]:
    """Read the log of a job as it is stored."""
    return [LogLine(instant_of(at), line) for at, line in decode(raw)]


def cancel(ids: Sequence[str], now: int | None = None) -> Call[Cancelled]:
    return Call("cancel", arguments(ids=list(ids), now=now), _parse_cancelled)


def cancel_group(group_id: str, limit: int, now: int | None = None) -> Call[Cancelled]:
    return Call("cancel", arguments(group=group_id, limit=limit, now=now), _parse_cancelled)


def report_progress(job_id: str, fence: int, progress: str, now: int | None = None) -> Call[bool]:
    """Store the progress of a run, as JSON; False if the run no longer has the lease."""
    return Call("report_progress", arguments(id=job_id, fence=fence, progress=progress, now=now), _is_one)


def append_log(job_id: str, fence: int, line: str, now: int | None = None) -> Call[bool]:
    """Append a line to the log of a run; False if the run no longer has the lease."""
    return Call("append_log", arguments(id=job_id, fence=fence, line=line, now=now), _is_one)


def _is_one(reply: int) -> bool:
    return reply == 1
