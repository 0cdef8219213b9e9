"""Calls about repeating jobs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha1
from typing import Any, NamedTuple

from groupmq.core import record
from groupmq.protocol.call import Call, arguments, raw_text


class DefinitionsPage(NamedTuple):
    """Definitions as stored, by repeat id; `client/answers/repeats.py` reads them."""

    now: int
    found: dict[str, bytes]
    wait_ms: int
    cursor: str


def _parse_repeats(reply: list[Any]) -> DefinitionsPage:
    now, flat, wait_ms, cursor = reply[:4]
    return DefinitionsPage(
        now, {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}, wait_ms, cursor.decode()
    )


def repeats_due(limit: int = 100, now: int | None = None) -> Call[DefinitionsPage]:
    return Call("repeats", arguments(limit=limit, now=now), _parse_repeats)


def repeats_of(ids: Sequence[str], now: int | None = None) -> Call[DefinitionsPage]:
    return Call("repeats", arguments(ids=list(ids), now=now), _parse_repeats)


def repeats_page(cursor: str, limit: int = 100, now: int | None = None) -> Call[DefinitionsPage]:
    return Call("repeats", arguments(all=True, cursor=cursor, limit=limit, now=now), _parse_repeats)


def whole_repeat(repeat_id: str, now: int | None = None) -> Call[bytes]:
    """The definition of one repeat with the data of its jobs, even if that is stored beside it; empty if it is gone."""

    def parse(reply: list[Any]) -> bytes:
        found = _parse_repeats(reply).found.get(repeat_id, b"")
        return b"".join((found, *reply[4:])) if found else found

    return Call("repeats", arguments(ids=[repeat_id], data=True, now=now), parse)


def define(
    repeat_id: str,
    expected: bytes,
    definition: dict[str, Any],
    body: bytes = b"",
    tick_ms: int | None = None,
    now: int | None = None,
) -> Call[bool]:
    """Store a definition if the stored one is still `expected`. `tick_ms`: also add this occurrence now."""
    seen, preamble, blob = sha1(expected, usedforsecurity=False).hexdigest() if expected else "", None, body
    if len(body) > record.LARGE and len(record.data_of(body)) > record.LARGE:
        before, blob = record.divided(body)
        preamble, definition = raw_text(before), definition | {"data": sha1(blob, usedforsecurity=False).hexdigest()}
    args = arguments(id=repeat_id, seen=seen, definition=definition, tick=tick_ms, preamble=preamble, now=now)
    return Call("define", args, lambda reply: reply == 1, blob)


def undefine(repeat_id: str, expected: bytes, now: int | None = None) -> Call[bool]:
    """Remove a definition if the stored one is still `expected`."""
    return Call("undefine", arguments(id=repeat_id, now=now), lambda reply: reply == 1, expected)


class Ticked(NamedTuple):
    added: int
    wait_ms: int


def tick(ticks: Sequence[Sequence[Any]], now: int | None = None) -> Call[Ticked]:
    """Run ticks of repeats. Per repeat: id, expected tick, next tick (0 = none), ticks to add."""
    return Call("tick", arguments(ticks=[list(one) for one in ticks], now=now), lambda reply: Ticked(*reply))
