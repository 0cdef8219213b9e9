"""A position in the event logs of all partitions of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from groupmq.core.errors import ConfigurationError
from groupmq.core.events import Position

_BETWEEN = "~"


class Positions(NamedTuple):
    """One position for each partition, in their order. As text it is an `event.id`."""

    each: list[Position]

    @classmethod
    def joined(cls, ids: Sequence[str]) -> Positions:
        return cls([Position.parse(one) for one in ids])

    @classmethod
    def parse(cls, text: object, n: int) -> Positions:
        """Read the id of an event of a queue with `n` partitions."""
        found = str(text).split(_BETWEEN)
        if len(found) != n:
            raise ConfigurationError.expected("since", f"the id of an event of this queue, with {n} partitions", text)
        return cls.joined(found)

    def __str__(self) -> str:
        return _BETWEEN.join(map(str, self.each))
