"""What was counted and measured: `lua/stats.lua`, `lua/series.lua`."""

from __future__ import annotations

from typing import Any, NamedTuple

from groupmq.commands.call import Call, arguments, decode

LARGEST_BUCKET = 24
"""Times are counted below 1, 2, 4 ... ms, up to this power of two and above it."""


class Counters(NamedTuple):
    """Since the queue was created, as `lua/stats.lua` lists them."""

    processed: int
    failed: int
    retried: int
    stalled: int
    lost: int
    rate_limited: int
    lease_lost: int


class Stats(NamedTuple):
    now: int
    counters: Counters
    workers: dict[str, bytes]
    failures: list[list[Any]]
    wait: list[int]
    """ms in all, then how many were below 1, 2, 4 ... ms, see `lua/lib/measure.lua`."""
    run: list[int]
    oldest_ms: int
    ready: int
    """Groups that may start a job."""
    due: int
    """Groups whose head has to wait: for a back-off, a window, a rate."""
    overrides: int
    """Groups with settings of their own."""


def numbers(raw: bytes | None, count: int) -> list[int]:
    """What `lua/lib/measure.lua` stores: so many numbers of six bytes. Anything else is not ours and counts as 0."""
    if raw is None or len(raw) != 6 * count:
        return [0] * count
    return [int.from_bytes(raw[i : i + 6], "big") for i in range(0, len(raw), 6)]


def stats(failures: int = 0, now: int | None = None) -> Call[Stats]:
    def parse(reply: list[Any]) -> Stats:
        pairs = reply[2]
        workers = {pairs[i].decode(): pairs[i + 1] for i in range(0, len(pairs), 2)}
        failures = [decode(raw) for raw in reply[3]]
        wait, run = (numbers(raw, LARGEST_BUCKET + 2) for raw in reply[4])
        return Stats(reply[0], Counters(*reply[1]), workers, failures, wait, run, reply[5], *reply[6])

    return Call("stats", arguments(failures=failures, now=now), parse)


def count_paused(cursor: str) -> Call[tuple[str, int]]:
    """Where to go on, '0' = nowhere, and how many paused groups there are in this page."""
    return Call("count_paused", arguments(cursor=cursor), lambda reply: (reply[0].decode(), reply[1]))


class Minute(NamedTuple):
    """What happened in a minute, `lua/lib/measure.lua`."""

    processed: int
    failed: int
    retried: int
    stalled: int
    rate_limited: int
    started: int
    waited_ms: int
    ran_ms: int


def series(minutes: int, now: int | None = None) -> Call[tuple[int, list[Minute]]]:
    """The number of this minute, and what happened in the last ones, oldest first."""

    def parse(reply: list[Any]) -> tuple[int, list[Minute]]:
        return reply[0], [Minute(*numbers(raw, len(Minute._fields))) for raw in reply[1]]

    return Call("series", arguments(minutes=minutes, now=now), parse)
