"""Alternation, so that drift of the machine affects all libraries alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def rotated(items: Sequence[T], by: int) -> list[T]:
    """The items in rotation, so that each round begins with another one."""
    shift = by % len(items) if items else 0
    return [*items[shift:], *items[:shift]]
