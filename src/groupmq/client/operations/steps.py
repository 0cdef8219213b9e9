"""What an operation is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from groupmq.core.options import QueueOptions
from groupmq.core.record import Stored
from groupmq.core.snapshot import Snapshot
from groupmq.protocol.commands import Call, Policy

T = TypeVar("T")
J = TypeVar("J", bound=Snapshot)
Steps = Generator[Call[Any], Any, T]
STATES = ("active", "waiting", "delayed", "completed", "failed")


def one(call: Call[T]) -> Steps[T]:
    """An operation of a single call."""
    answer: T = yield call
    return answer


def clipped(value: str, longest: int = 16_000) -> str:
    """Text that is safe to store: bounded, and without lone surrogates."""
    if len(value) > longest:
        value = value[: longest // 2] + "\n...\n" + value[-longest // 2 :]
    return value.encode("utf-8", "backslashreplace").decode()


class Base(Generic[J]):
    """A queue's settings, and how its job objects are made: `make` builds one from (id, state, record or its bytes)."""

    def __init__(self, options: QueueOptions, make: Callable[[str, str, Stored], J]) -> None:
        self.options = options
        self.make = make
        self.policy = Policy(options.max_attempts, -1, options.keep)
