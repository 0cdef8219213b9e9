"""The stored record of a job, byte for byte as `lua/lib/record.lua` describes it."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import msgspec

# priority, order + 2^63, arrival (2 + 4 bytes), created (2 + 4 bytes), max_attempts, flags, length of the group id
_HEAD = struct.Struct(">HQHIHIHBH")
_BODY = struct.Struct(">HBH")
_SIZE = struct.Struct(">H")
_ORDER = struct.Struct(">Q")
_OFFSET = 1 << 63

ORDER_GIVEN, HAS_TTL = 1, 2


class Record(NamedTuple):
    """The immutable part of a job."""

    priority: int
    order_ms: int
    arrival: int
    created_ms: int
    max_attempts: int
    order_given: bool
    group_id: str | None
    options: dict[str, Any]
    data: bytes


def pack_order(order_ms: int) -> bytes:
    """A signed 64-bit order as 8 bytes whose byte order is its numeric order."""
    return _ORDER.pack(order_ms + _OFFSET)


def pack_body(
    max_attempts: int,
    order_given: bool,
    group: bytes,
    options: dict[str, Any] | None,
    data: bytes,
    *,
    has_ttl: bool = False,
) -> bytes:
    """What follows `created`; the server puts place and time of creation before it."""
    packed = msgspec.msgpack.encode(options) if options else b""
    flags = (ORDER_GIVEN if order_given else 0) | (HAS_TTL if has_ttl else 0)
    head = _BODY.pack(max_attempts, flags, len(group))
    return b"".join((head, group, _SIZE.pack(len(packed)), packed, data))


def data_of(body: bytes) -> bytes:
    """The data in what `pack_body` made."""
    (size,) = _SIZE.unpack_from(body, 3)
    (options,) = _SIZE.unpack_from(body, 5 + size)
    return body[7 + size + options :]


_NO_OPTIONS: dict[str, Any] = {}
_new = tuple.__new__


def unpack(raw: bytes) -> Record:
    """Read a stored record."""
    priority, order, seq_hi, seq_lo, made_hi, made_lo, max_attempts, flags, size = _HEAD.unpack_from(raw)
    at = 27 + size
    group = raw[27:at].decode() if size else None
    (size,) = _SIZE.unpack_from(raw, at)
    at += 2
    options = msgspec.msgpack.decode(raw[at : at + size]) if size else _NO_OPTIONS
    arrival, created = (seq_hi << 32) | seq_lo, (made_hi << 32) | made_lo
    given = flags & ORDER_GIVEN != 0
    # Made without the detour through Record(): that costs as much as all the rest.
    return _new(
        Record, (priority, order - _OFFSET, arrival, created, max_attempts, given, group, options, raw[at + size :])
    )
