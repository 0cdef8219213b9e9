"""Values that raise when they are turned into text."""

from __future__ import annotations


class Unprintable(Exception):
    """An exception whose `str` and `repr` raise."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Opaque:
    """A value whose `repr` raises."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")
