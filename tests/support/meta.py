"""The decoded `meta` of a queue as a dictionary of strings, for tests of what is stored."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

NUMBERS = (
    *(("stamp", 7), ("seq", 6), ("order", 6), ("due", 7), ("limit", 4), ("repeat_at", 6), ("limited_until", 6)),
    *(("stopping", 6), ("period", 6), ("resent", 6), ("asked", 6), ("logged", 6), ("log_bytes", 4), ("epoch", 6)),
    *((name, 1) for name in ("paused", "overrides", "ttls", "progress", "large", "interrupts", "attempts", "loose")),
    ("held", 1),
    *(("blocks", 1), ("breakers", 1), ("uniques", 1), ("spared", 7)),
)
"""The name and size in bytes of each number, as in `lua/lib/numbers.lua`."""
TOTALS = ("completed", "failed", "retried", "stalled", "lost", "rate_limited", "lease_lost")
PLACES = 50


class Measures(NamedTuple):
    """The decoded value of `lua/lib/measure_value.lua`."""

    totals: dict[str, int]
    minute: int
    counted: list[int]
    """The eight numbers of a minute."""
    spread: dict[int, int]


def numbers(raw: bytes) -> dict[str, str]:
    """The numbers that are not 0."""
    found, at = {}, 0
    for name, size in NUMBERS:
        value = int.from_bytes(raw[at : at + size], "big")
        at += size
        if value:
            found[name] = str(value)
    assert at == len(raw), f"{len(raw)} bytes of numbers"
    return found


def measures(raw: bytes) -> Measures:
    values = [int.from_bytes(raw[i : i + 6], "big") for i in range(4, 100, 6)]
    spread = dict(enumerate((*struct.unpack(f">{PLACES}I", raw[100:]), values[-1])))
    totals = dict(zip(TOTALS, values, strict=False))
    return Measures(totals, int.from_bytes(raw[:4], "big"), values[7:15], {i: n for i, n in spread.items() if n})


def decode(fields: dict[str, bytes]) -> dict[str, str]:
    """All fields except the packed values `rules` and `turn`."""
    texts = {name: raw.decode() for name, raw in fields.items() if name not in ("numbers", "measures", "rules", "turn")}
    if "numbers" in fields:
        texts |= numbers(fields["numbers"])
    if "measures" in fields:
        texts |= {name: str(n) for name, n in measures(fields["measures"]).totals.items() if n}
    return texts


def zero(client: Any, key: str, name: str) -> bytes:
    """Damage `meta`: set one of the numbers to 0. Returns the value stored then."""
    raw, at = bytearray(client.hget(key, "numbers")), 0
    for known, size in NUMBERS:
        if known == name:
            raw[at : at + size] = bytes(size)
        at += size
    client.hset(key, "numbers", bytes(raw))
    return bytes(raw)
