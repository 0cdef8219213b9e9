"""A call of a function on the server: its arguments, its size, and how its reply is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")
SCHEMA = "7"
PARTITIONED = "5 in partitions"
"""The format of a queue whose jobs are in its partitions; each partition has SCHEMA. No function accepts it."""
MOVING = "5 moving"
"""The format of a queue, and of its partitions, while their number is changed."""
CHUNK = 100
"""Items per script call: this many take the server a millisecond or two, and no other client is served meanwhile."""

CHUNK_BYTES = 256 * 1024
"""Bytes per script call, if more than one item shares it: copying them takes the server about as long."""

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder().decode


class Call(NamedTuple, Generic[T]):
    """One script call: the data to send, and how to read the reply."""

    script: str
    args: bytes
    parse: Callable[[Any], T]
    blob: bytes = b""
    after: float = 0.0
    """Seconds to wait before it is made."""


class Policy(NamedTuple):
    """The settings that a script needs to end a run without its worker."""

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
    fence: int = 0
    """The fence of the last run."""
    error: str = ""
    """Class of the error that the last run raised, with its path."""


FRESH = StoredState()


def arguments(**named: Any) -> bytes:
    return encode({name: value for name, value in named.items() if value is not None})


def raw_text(raw: bytes) -> msgspec.Raw:
    """Bytes as an argument: the server's decoder takes any bytes as text, and has no type for bytes."""
    return msgspec.Raw(b"\xdb" + len(raw).to_bytes(4, "big") + raw)


def text(raw: bytes) -> str:
    return raw.decode()


def texts(raw: Sequence[bytes]) -> list[str]:
    return [item.decode() for item in raw]


def state_of(raw: bytes) -> StoredState:
    return StoredState(*decode(raw)) if raw else FRESH


def chunked(items: Sequence[T], size: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The items in their order, divided into as few calls as CHUNK and CHUNK_BYTES allow."""
    start = total = 0
    for at, item in enumerate(items):
        total += size(item)
        if at > start and (at - start == CHUNK or total > CHUNK_BYTES):
            yield items[start:at]
            start, total = at, size(item)
    if start < len(items):
        yield items[start:]
