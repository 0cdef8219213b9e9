# Generated from src/groupmq/client/queue/caller.py by `make sync`; do not edit.
"""How the functions of a queue call the server."""

from __future__ import annotations

from typing import Protocol, TypeVar

from groupmq.protocol.call import Call

T = TypeVar("T")


class Caller(Protocol):
    """Makes one call and returns its parsed answer."""

    def __call__(self, call: Call[T], /) -> T: ...
