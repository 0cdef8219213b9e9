"""What every call is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")
SCHEMA = "1"
CHUNK = 1000
"""Items per script call; `unpack` on the server fails near 8,000 values."""

CHUNK_BYTES = 16 * 1024 * 1024
"""Bytes per script call, if more than one item shares it; the server takes at most 512 MB in one argument."""

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


class Call(NamedTuple, Generic[T]):
    """One script call: what to send, and how to read what comes back."""

    script: str
    args: bytes
    parse: Callable[[Any], T]
    blob: bytes = b""


class Policy(NamedTuple):
    """What a script must know to end a run on its own."""

    max_attempts: int
    max_stalled: int
    keep: dict[str, int]

    def packed(self) -> dict[str, Any]:
        return {"max_attempts": self.max_attempts, "max_stalled": self.max_stalled, "keep": self.keep}


class StoredState(NamedTuple):
    """The mutable record of a job, `lua/lib/state.lua`."""

    attempts: int = 0
    stalls: int = 0
    started: int = 0
    finished: int = 0
    worker: str = ""
    reason: str = ""
    stack: str = ""


FRESH = StoredState()


def arguments(**named: Any) -> bytes:
    return encode({name: value for name, value in named.items() if value is not None})


def text(raw: bytes) -> str:
    return raw.decode()


def texts(raw: Sequence[bytes]) -> list[str]:
    return [item.decode() for item in raw]


def state_of(raw: bytes) -> StoredState:
    return StoredState(*decode(raw)) if raw else FRESH


def chunked(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The items in their order, as few calls as a call may hold."""
    start = total = 0
    for at, item in enumerate(items):
        total += size(item)
        if at > start and (at - start == CHUNK or total > CHUNK_BYTES):
            yield items[start:at]
            start, total = at, size(item)
    if start < len(items):
        yield items[start:]
