"""Values that misbehave when they are looked at."""

from __future__ import annotations


class Unprintable(Exception):
    """An exception that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Opaque:
    """A value that has no repr."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")
