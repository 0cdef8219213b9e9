"""The stored record of a job, byte for byte as `lua/lib/record.lua` describes it."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import msgspec

# Sort key: priority, order + 2^63, arrival (2 + 4 bytes), each smaller for jobs that start later; then created
# (2 + 4 bytes), max_attempts, flags, length of the group id
_FIXED = struct.Struct(">HQHIHIHBH")
_SORT_KEY = struct.Struct(">HQ6xHI")
_MEMBER_ID_AT = 16
_BODY = struct.Struct(">HBH")
_BODY_AT = 22
_SIZE = struct.Struct(">H")
_NONE = _SIZE.pack(0)
_ORDER = struct.Struct(">Q")
_LAST_PRIORITY, _LAST_ORDER, _LAST_ARRIVAL = (1 << 16) - 1, (1 << 63) - 1, (1 << 48) - 1

ORDER_GIVEN, HAS_TTL, HOLDS, CONTINUES, BESIDE = 1, 2, 4, 8, 16
"""BESIDE: the data is not in the record but in `bodies`; code that reads a record joins the two."""
LARGE = 8 * 1024
"""Data of more bytes is stored beside its record (`lua/lib/bodies.lua`)."""


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


Stored = Record | bytes
"""A record, or its bytes, which are read when they are needed."""


def pack_order(order_ms: int) -> bytes:
    """A signed 64-bit order as 8 bytes, which are smaller for a later order."""
    return _ORDER.pack(_LAST_ORDER - order_ms)


def pack_body(
    max_attempts: int,
    order_given: bool,
    group: bytes,
    options: dict[str, Any] | None,
    data: bytes,
    *,
    has_ttl: bool = False,
    holds: bool | None = None,
) -> bytes:
    """The body of a record. The server puts the sort key and the time of creation before it.

    `holds`: whether the job blocks its group when it has failed for good; None = as the queue says.
    """
    flags = (ORDER_GIVEN if order_given else 0) | (HAS_TTL if has_ttl else 0)
    if holds is not None:
        flags |= HOLDS if holds else CONTINUES
    fixed = _BODY.pack(max_attempts, flags, len(group))
    if not options:
        return b"".join((fixed, group, _NONE, data))
    packed = msgspec.msgpack.encode(options)
    return b"".join((fixed, group, _SIZE.pack(len(packed)), packed, data))


def data_of(body: bytes) -> bytes:
    """The data of a body."""
    return body[_data_at(body) :]


def is_beside(body: bytes) -> bool:
    """Whether the server keeps the data apart from this body. If so, the body has no data unless it was joined."""
    return body[2] & BESIDE != 0


def divided(body: bytes) -> tuple[bytes, bytes]:
    """The two parts of a body: the preamble and the data."""
    at = _data_at(body)
    return body[:at], body[at:]


def _data_at(body: bytes) -> int:
    (size,) = _SIZE.unpack_from(body, 3)
    (options,) = _SIZE.unpack_from(body, 5 + size)
    return 7 + int(size) + int(options)


def settings_of(body: bytes) -> tuple[int, dict[str, Any]]:
    """The max_attempts (0 = none of its own) and the options of a body."""
    max_attempts, _, options, _, _ = parts(bytes(_BODY_AT) + body)
    return max_attempts, options


_NO_OPTIONS: dict[str, Any] = {}


def unpack(raw: bytes) -> Record:
    """Read a stored record."""
    priority, order, seq_hi, seq_lo, made_hi, made_lo, _, flags, _ = _FIXED.unpack_from(raw)
    max_attempts, group, options, data, _ = parts(raw)
    arrival, created = _LAST_ARRIVAL - ((seq_hi << 32) | seq_lo), (made_hi << 32) | made_lo
    given = flags & ORDER_GIVEN != 0
    priority, order_ms = _LAST_PRIORITY - priority, _LAST_ORDER - order
    return Record(priority, order_ms, arrival, created, max_attempts, given, group, options, data)


def parts(raw: bytes) -> tuple[int, str | None, dict[str, Any], bytes, bytes]:
    """The parts of a stored record that a run needs: max_attempts, group, options, data, rest (`read_sort_key`).

    This is half the work of reading all of it, and thousands are read in a second.
    """
    max_attempts, _, size = _BODY.unpack_from(raw, _BODY_AT)
    at = 27 + size
    group = raw[27:at].decode() if size else None
    at += 2
    if raw[at - 2] or raw[at - 1]:
        (size,) = _SIZE.unpack_from(raw, at - 2)
        options, at = msgspec.msgpack.decode(raw[at : at + size]), at + size
    else:
        options = _NO_OPTIONS
    return max_attempts, group, options, raw[at:], raw[:_BODY_AT]


def id_of(member: bytes) -> bytes:
    """The job of a member of a group: its sort key, then its id."""
    return member[_MEMBER_ID_AT:]


def read_sort_key(raw: bytes) -> tuple[int, int, int]:
    """Priority, order and time of creation, from the rest that `parts` returned."""
    priority, order, made_hi, made_lo = _SORT_KEY.unpack_from(raw)
    return _LAST_PRIORITY - priority, _LAST_ORDER - order, (made_hi << 32) | made_lo
