"""Calls that read counters and measures: `lua/stats.lua`, `lua/series.lua`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from groupmq.protocol.call import Call, arguments, decode

LARGEST_BUCKET = 24
"""Times are counted below 1, 2, 4 ... ms. The bucket of this power of two also has all longer ones."""
BUCKETS = LARGEST_BUCKET + 1
DROPPED = 2 * BUCKETS
"""The index in `spread` of failed jobs that retention dropped. Waits begin at 0, runs at BUCKETS."""


class Counters(NamedTuple):
    """Since the queue was created, as `lua/lib/measure_value.lua` lists them."""

    completed: int = 0
    failed: int = 0
    retried: int = 0
    stalled: int = 0
    lost: int = 0
    rate_limited: int = 0
    lease_lost: int = 0


class Stats(NamedTuple):
    now: int
    counters: Counters
    workers: dict[str, bytes]
    failures: list[list[Any]]
    wait: list[int]
    """The sum in ms, then how many were below 1, 2, 4 ... ms, see `lua/lib/minutes.lua`."""
    run: list[int]
    ready: int
    """Groups that may start a job."""
    parked: int
    """Groups whose head has to wait: for a back-off, a window or a rate limit."""
    overrides: int
    """Groups with settings of their own."""
    blocked: int = 0
    """Groups that a failed job blocks."""
    blocked_since: int = 0
    """Since when the first of them is blocked, in ms; 0 if none is."""
    opened: int = 0
    """Groups whose breaker is open."""
    opened_since: int = 0
    """Since when the first of these is open, in ms; 0 if none is."""


def numbers(raw: bytes | None, count: int) -> list[int]:
    """Read `count` numbers of six bytes, as `lua/lib/minutes.lua` stores them. Any other value counts as zeros."""
    if raw is None or len(raw) != 6 * count:
        return [0] * count
    return [int.from_bytes(raw[i : i + 6], "big") for i in range(0, len(raw), 6)]


def _added(one: list[int], other: list[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)]


def stats(failures: int = 0, now: int | None = None) -> Call[Stats]:
    def parse(reply: list[Any]) -> Stats:
        pairs = reply[2]
        workers = {pairs[i].decode(): pairs[i + 1] for i in range(0, len(pairs), 2)}
        failures = [decode(raw) for raw in reply[3]]
        measured = _measured(reply[1])
        wait, run = (numbers(raw, BUCKETS + 1) for raw in reply[4])
        wait = _added(wait, measured.times(0, measured.minute.waited_ms))
        run = _added(run, measured.times(BUCKETS, measured.minute.ran_ms))
        return Stats(reply[0], measured.totals, workers, failures, wait, run, *reply[5])

    return Call("stats", arguments(failures=failures, now=now), parse)


class Startable(NamedTuple):
    """The job that could start now and has waited longest."""

    waited_ms: int
    group_id: str
    job_id: str


class HeldHead(NamedTuple):
    """The group that cannot start its head and whose head has waited longest; `lua/waits.lua`."""

    waited_ms: int
    group_id: str
    reason: str
    job_id: str
    """The job that holds the group; empty if no single job does."""
    attempt: int
    since: int
    until: int
    """0 = not known."""
    waiting: int
    failures: int = 0
    """Attempts in a row that have failed, as its breaker counts them."""


Offsets = tuple[str, str, str, str, str]
"""Where to continue in the line, the running jobs, the parked groups, the settings of groups and the blocked groups;
'' = all of these were read."""
FIRST_PAGE: Offsets = ("-inf", "0", "0", "0", "0")


class Waits(NamedTuple):
    """A page of `lua/waits.lua`."""

    now: int
    startable: Startable | None
    held: HeldHead | None
    """The longest-held group that is not paused."""
    paused: HeldHead | None
    running: dict[str, int]
    """Running jobs of each worker, by its id."""
    following: Offsets


def waits(offsets: Offsets = FIRST_PAGE, now: int | None = None) -> Call[Waits]:
    def parse(reply: list[Any]) -> Waits:
        at, startable, held, paused, running, following = reply
        return Waits(
            at,
            Startable(*texts_in(startable)) if startable else None,
            HeldHead(*texts_in(held)) if held else None,
            HeldHead(*texts_in(paused)) if paused else None,
            {running[i].decode(): running[i + 1] for i in range(0, len(running), 2)},
            tuple(texts_in(following)),
        )

    ready, active, parked, conf, blocked = (offset or None for offset in offsets)
    args = arguments(ready=ready, active=active, parked=parked, conf=conf, blocked=blocked, now=now)
    return Call("waits", args, parse)


def texts_in(row: list[Any]) -> list[Any]:
    return [value.decode() if isinstance(value, bytes) else value for value in row]


def cut_texts_in(row: Sequence[Any]) -> list[Any]:
    """The same for texts that were cut, perhaps in the middle of a character."""
    return [value.decode(errors="ignore") if isinstance(value, bytes) else value for value in row]


def count_paused(cursor: str) -> Call[tuple[str, int]]:
    """Where to continue, '0' = this was the end, and how many paused groups this page has."""
    return Call("count_paused", arguments(cursor=cursor), lambda reply: (reply[0].decode(), reply[1]))


class Minute(NamedTuple):
    """The measures of one minute, `lua/lib/minutes.lua`."""

    completed: int = 0
    failed: int = 0
    retried: int = 0
    stalled: int = 0
    rate_limited: int = 0
    started: int = 0
    waited_ms: int = 0
    ran_ms: int = 0
    spread: Mapping[int, int] = MappingProxyType({})
    """bucket -> how many, `lua/lib/minutes.lua`."""


_NUMBERS = 8
_halves = Struct(">" + "HI" * _NUMBERS).unpack_from
_NOTHING = Minute()


def minute(raw: bytes | None) -> Minute:
    """A minute as it is stored. A value of another form counts as nothing."""
    if raw is None or len(raw) < 6 * _NUMBERS:
        return _NOTHING
    spread: Mapping[int, int] = _NOTHING.spread
    if len(raw) > 6 * _NUMBERS:
        try:
            spread = _pairs(raw[6 * _NUMBERS :])
        except (msgspec.DecodeError, msgspec.ValidationError):
            return _NOTHING
    # Two weeks are 20,160 of these, so they are read in one go: a number of six bytes is one of two and one of four.
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = _halves(raw)
    return Minute(
        a << 32 | b, c << 32 | d, e << 32 | f, g << 32 | h, i << 32 | j, k << 32 | m, n << 32 | o, p << 32 | q, spread
    )


def _pairs(rest: bytes) -> Mapping[int, int]:
    flat = _read_pairs(rest)
    return dict(zip(flat[::2], flat[1::2], strict=False))


_read_pairs = msgspec.msgpack.Decoder(list[int]).decode


class _Measured(NamedTuple):
    """The totals of a queue, and the last minute in which anything happened: `lua/lib/measure_value.lua`."""

    totals: Counters = Counters()
    at: int = 0
    """The number of that minute."""
    minute: Minute = _NOTHING

    def times(self, first: int, ms: int) -> list[int]:
        """The times of the minute: the sum in ms, then how many were below 1, 2, 4 ... ms."""
        return [ms, *(self.minute.spread.get(first + i, 0) for i in range(BUCKETS))]


_TOTALS, _COUNTED = len(Counters._fields), 9
_SIZE = 4 + 6 * (_TOTALS + _COUNTED) + 4 * 2 * BUCKETS
_buckets = Struct(f">{2 * BUCKETS}I").unpack_from


def _measured(raw: bytes | None) -> _Measured:
    if raw is None or len(raw) != _SIZE:
        return _Measured()
    found = [int.from_bytes(raw[i : i + 6], "big") for i in range(4, 4 + 6 * (_TOTALS + _COUNTED), 6)]
    *counted, dropped = found[_TOTALS:]
    spread = {bucket: n for bucket, n in enumerate((*_buckets(raw, _SIZE - 4 * 2 * BUCKETS), dropped)) if n}
    return _Measured(Counters(*found[:_TOTALS]), int.from_bytes(raw[:4], "big"), Minute._make([*counted, spread]))


def _sum(one: Minute, other: Minute) -> Minute:
    spread = {
        bucket: one.spread.get(bucket, 0) + other.spread.get(bucket, 0) for bucket in {*one.spread, *other.spread}
    }
    return Minute._make([*(a + b for a, b in zip(one[:-1], other[:-1], strict=True)), spread])


def series(minutes: int, last: int | None = None, now: int | None = None) -> Call[tuple[int, list[Minute]]]:
    """The number of the last minute, by default the current one, and the minutes up to it, oldest first."""

    def parse(reply: list[Any]) -> tuple[int, list[Minute]]:
        at, values, raw_measured = reply
        found = [minute(raw) for raw in values]
        measured = _measured(raw_measured)
        if at - len(found) < measured.at <= at:
            i = len(found) - 1 - (at - measured.at)
            found[i] = _sum(found[i], measured.minute)
        return at, found

    return Call("series", arguments(minutes=minutes, last=last, now=now), parse)
