"""Taking turns, so that drift of the machine hits all alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def rotated(items: Sequence[T], by: int) -> list[T]:
    """Nobody always goes first: each round begins with another."""
    shift = by % len(items) if items else 0
    return [*items[shift:], *items[:shift]]
