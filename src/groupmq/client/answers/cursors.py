"""Cursors: the position where a page ended, as text that is opaque to callers and safe in a URL."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from groupmq.core.errors import ConfigurationError

MOST = 20_000
"""Characters of the longest cursor: it has a group id and the member of a waiting job, each with the longest id."""


def packed(*parts: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(parts)).decode().rstrip("=")


def refused(cursor: object) -> ConfigurationError:
    return ConfigurationError.expected("cursor", "the cursor of an earlier page of the same search, or None", cursor)


def unpacked(cursor: object, kind: str, *types: type) -> list[Any]:
    """The parts of a cursor of this kind, which have these types. Raises for any other cursor."""
    wrong = refused(cursor)
    if not isinstance(cursor, str) or len(cursor) > MOST:
        raise wrong
    try:
        parts = msgspec.msgpack.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, RecursionError, msgspec.DecodeError):
        raise wrong from None
    if not isinstance(parts, list) or len(parts) != len(types) + 1 or parts[0] != kind:
        raise wrong
    if not all(isinstance(value, wanted) for value, wanted in zip(parts[1:], types, strict=True)):
        raise wrong
    return parts[1:]
