"""Calls that look at many jobs or groups a page at a time, and at the attempts and the position of one job."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from groupmq.core import record
from groupmq.protocol.call import Call, StoredState, arguments, decode, state_of, text, texts
from groupmq.protocol.commands.measures import cut_texts_in, texts_in

_LENGTH = struct.Struct(">I")
_GROUP = struct.Struct(">BBIII6sd")
_STATES = ("idle", "ready", "busy", "parked", "paused", "blocked")
Index = Literal["blocked", "opened"]
"""Groups that a failed job blocks, and groups whose breaker is open."""


class StoredAttempt(NamedTuple):
    """A run that ended and did not complete, `lua/lib/history.lua`."""

    number: int
    outcome: str
    error: str
    reason: str
    stack: str
    worker: str
    started: int
    ended: int
    fence: int


class Attempts(NamedTuple):
    state: str
    """The state of the job; '' = there is no such job."""
    stored: StoredState
    history: list[StoredAttempt]
    run: tuple[int, int, str] | None
    """The run under way: started, number, worker; None = no run is known."""


def attempts(job_id: str, now: int | None = None) -> Call[Attempts]:
    def parse(reply: list[Any]) -> Attempts:
        state, stored, history, run = reply
        return Attempts(text(state), state_of(stored), _parse_history(history), _parse_run(run))

    return Call("attempts", arguments(id=job_id, now=now), parse)


def _parse_history(raw: bytes) -> list[StoredAttempt]:
    found, at = [], 0
    while at < len(raw):
        (size,) = _LENGTH.unpack_from(raw, at)
        found.append(StoredAttempt(*decode(raw[at + 4 : at + 4 + size])))
        at += 4 + size
    return found


def _parse_run(run: list[Any]) -> tuple[int, int, str] | None:
    return (run[0], run[1], text(run[2])) if run else None


PagePosition = tuple[Any, ...]
"""A job in the walk through its state: score and id; for a waiting job the cursor, the group and its member."""
FIRST_WAITING: PagePosition = ("0", "", b"")


class StatePage(NamedTuple):
    """Jobs of one state, `lua/page.lua`."""

    now: int
    total: int
    newest_stamp: int
    """No job that has ended has a later one."""
    ids: list[str]
    positions: list[PagePosition]
    """The positions of the jobs. The next page may begin behind any of them."""
    following: PagePosition | None
    """Where the next page begins; None = this was the last one."""


def page(
    kind: str,
    limit: int,
    *,
    newest: bool = False,
    after: PagePosition | None = None,
    age_ms: int | None = None,
    now: int | None = None,
) -> Call[StatePage]:
    """Active, delayed, completed or failed jobs, behind the position `after`."""

    def parse(reply: list[Any]) -> StatePage:
        at, total, stamp, ids, scores = reply
        positions: list[PagePosition] = list(zip(texts(scores), texts(ids), strict=True))
        following = positions[-1] if len(positions) == limit else None
        return StatePage(at, total, int(stamp), texts(ids), positions, following)

    args = arguments(kind=kind, limit=limit, newest=newest or None, after=after, age=age_ms, now=now)
    return Call("page", args, parse)


def waiting_page(
    limit: int, after: PagePosition = FIRST_WAITING, group_id: str | None = None, now: int | None = None
) -> Call[StatePage]:
    """Waiting jobs of all groups, or of one, behind the position `after`."""
    cursor, in_group, member = after

    def parse(reply: list[Any]) -> StatePage:
        at, total, stamp, members, groups, more = reply
        positions: list[PagePosition] = [
            (cursor, text(group), found) for group, found in zip(groups, members, strict=True)
        ]
        following: PagePosition | None = None
        if more is not None:
            following = (text(more), "", b"") if more else positions[-1]
        return StatePage(
            at, total, int(stamp), texts([record.id_of(member) for member in members]), positions, following
        )

    args = arguments(
        kind="waiting",
        limit=limit,
        cursor=cursor if group_id is None else None,
        only=group_id,
        group=in_group if member else None,
        now=now,
    )
    return Call("page", args, parse, member)


class FoundPosition(NamedTuple):
    state: str
    group_id: str
    position: int
    of: int


def position(job_id: str, now: int | None = None) -> Call[FoundPosition | None]:
    def parse(reply: list[Any]) -> FoundPosition | None:
        return FoundPosition(*texts_in(reply)) if reply else None

    return Call("position", arguments(id=job_id, now=now), parse)


class Reason(NamedTuple):
    """Why a job failed."""

    id: str
    score: str
    reason: str
    error: str
    ended: int


class Reasons(NamedTuple):
    now: int
    total: int
    found: list[Reason]


def reasons(limit: int, after: tuple[str, str] | None = None, now: int | None = None) -> Call[Reasons]:
    """Why jobs failed, the newest failure first; `after`: score and id of the last one seen."""

    def parse(reply: list[Any]) -> Reasons:
        at, total, found = reply
        return Reasons(at, total, [Reason(*cut_texts_in(row)) for row in found])

    return Call("reasons", arguments(limit=limit, after=after, now=now), parse)


class ScannedGroup(NamedTuple):
    """A few numbers of a group, enough to sort by."""

    id: str
    state: str
    has_head: bool
    waiting: int
    running: int
    delayed: int
    arrival: int
    """The arrival number of its head, among all jobs of the queue."""
    order: float


class ScannedGroups(NamedTuple):
    cursor: str
    total: int
    found: list[ScannedGroup]


def scan_groups(
    cursor: str = "0", *, first: int | None = None, sizes: bool = False, now: int | None = None
) -> Call[ScannedGroups]:
    """A page of the groups. `first`: instead, that many each of the blocked, parked, ready and running groups.

    `sizes`: count the waiting jobs of each group.
    """

    def parse(reply: list[Any]) -> ScannedGroups:
        return ScannedGroups(text(reply[0]), reply[1], [_parse_scanned(raw) for raw in reply[2]])

    return Call("scan_groups", arguments(cursor=cursor, first=first, sizes=sizes or None, now=now), parse)


def _parse_scanned(raw: bytes) -> ScannedGroup:
    state, head, waiting, running, delayed, arrival, order = _GROUP.unpack_from(raw)
    seq = int.from_bytes(arrival, "big")
    return ScannedGroup(raw[_GROUP.size :].decode(), _STATES[state], head == 1, waiting, running, delayed, seq, order)


class GroupLook(NamedTuple):
    """A group, `lua/look_groups.lua`."""

    state: str
    waiting: int
    running: int
    delayed: int
    limit: int
    paused: int
    held_ms: int
    rate: list[int]
    why: str
    holder: str
    attempts: int
    since: int
    until: int
    blocked: int
    """Since when a failed job blocks it, in ms; 0 = none does."""
    blocked_by: str
    """The job that has blocked it longest; empty if none does."""
    blockers: int
    """How many jobs block it."""
    failures: int
    """Attempts in a row that have failed, as its breaker counts them."""
    opened: int
    """Until when the group rests because its breaker is open, in ms; 0 = the breaker is closed."""
    opened_since: int
    """Since when its breaker is open, in ms; 0 = it is closed."""
    next: list[str]

    def since_of(self, index: Index) -> int:
        """Since when it is in the index, in ms; 0 = it is not."""
        return self.blocked if index == "blocked" else self.opened_since


def look_groups(groups: Sequence[str], behind: int = 0, now: int | None = None) -> Call[tuple[int, list[GroupLook]]]:
    """A hundred groups at most, and the time; `behind`: how many waiting jobs of each to name."""

    def parse(reply: list[Any]) -> tuple[int, list[GroupLook]]:
        found = [GroupLook._make([*texts_in(row[:-1]), texts(row[-1])]) for row in reply[1]]
        return reply[0], found

    return Call("look_groups", arguments(groups=list(groups), next=behind, now=now), parse)


class GroupsSince(NamedTuple):
    now: int
    total: int
    found: list[tuple[str, int]]
    """Group and since when, in ms."""


def list_since(index: Index, offset: int, limit: int, now: int | None = None) -> Call[GroupsSince]:
    """A page of the groups of an index, the one that has been in it longest first."""

    def parse(reply: list[Any]) -> GroupsSince:
        at, total, flat = reply
        return GroupsSince(at, total, [(flat[i].decode(), flat[i + 1]) for i in range(0, len(flat), 2)])

    return Call("list_since", arguments(index=index, offset=offset, limit=limit, now=now), parse)


class ListedRun(NamedTuple):
    """A job that has a lease."""

    id: str
    group_id: str
    fence: int
    started: int
    attempt: int
    prefetched: int
    """1 = it is not known yet whether it has begun."""
    worker: str


class Runs(NamedTuple):
    cursor: str
    looked_at: int
    found: list[ListedRun]


def list_runs(cursor: str, groups: Sequence[str] | None = None, now: int | None = None) -> Call[Runs]:
    """A page of the leases: the first cursor is '0', and '0' again is the end; `groups`: only those of these groups."""

    def parse(reply: list[Any]) -> Runs:
        return Runs(text(reply[0]), reply[1], [ListedRun(*texts_in(row)) for row in reply[2]])

    args = arguments(cursor=cursor, groups=None if groups is None else list(groups), now=now)
    return Call("list_runs", args, parse)
