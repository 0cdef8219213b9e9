"""How many finished jobs are kept, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groupmq.core.checks import whole
from groupmq.core.durations import Duration, millis, seconds

UNBOUNDED = -1


@dataclass(frozen=True, slots=True)
class Retention:
    """How many finished jobs are kept (newest first) and for how long. None = no bound of that kind.

    A count or an age of 0 keeps none of the jobs that this process ends, and leaves those that other processes keep.
    """

    count: int | None = None
    age: Duration | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            whole(self.count, "Retention.count", 0, 2**31)
        if self.age is not None:
            seconds(self.age, "Retention.age")

    @property
    def kept(self) -> int:
        if self.age_ms == 0:
            return 0
        return UNBOUNDED if self.count is None else self.count

    @property
    def age_ms(self) -> int | None:
        return None if self.age is None else millis(self.age, "Retention.age")

    def described(self) -> dict[str, Any]:
        return {"count": self.count, "age": None if self.age_ms is None else self.age_ms / 1000}


def retention(value: object, argument: str) -> Retention:
    """A number of jobs, or a Retention."""
    if isinstance(value, Retention):
        return value
    return Retention(count=whole(value, argument, 0, 2**31))


KEEP_COMPLETED = Retention(count=100)
KEEP_FAILED = Retention(count=10_000, age=30 * 86_400)
"""Enough to look through all failures of a bad deployment, and to retry them."""
