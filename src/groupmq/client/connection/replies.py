"""Replies to plain commands, which a client of the user's may have decoded."""

from __future__ import annotations

from typing import Any


def decoded(value: Any) -> str:
    """Text, whether or not the client decodes replies."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
