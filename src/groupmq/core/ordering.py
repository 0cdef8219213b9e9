"""How a group waits for jobs that arrive out of order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from groupmq.core.durations import Duration, millis
from groupmq.core.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Ordering:
    """A window in which late jobs of a group are still sorted in. Made by its two class methods.

    >>> Ordering.event_time(2).window_ms
    2000
    """

    kind: Literal["event_time", "arrival"]
    window_ms: int
    max_wait_ms: int = 0

    @classmethod
    def event_time(cls, window: Duration) -> Ordering:
        """A job waits until `window` after its `order_ms` (an epoch time in milliseconds) has passed."""
        return cls("event_time", millis(window, "window", minimum=0.001))

    @classmethod
    def arrival(cls, window: Duration, max_wait: Duration | None = None) -> Ordering:
        """The first job of an idle group waits for `window`; each arrival extends that, to at most `max_wait`."""
        window_ms = millis(window, "window", minimum=0.001)
        max_wait_ms = 3 * window_ms if max_wait is None else millis(max_wait, "max_wait", minimum=0.001)
        if max_wait_ms < window_ms:
            raise ConfigurationError.expected("max_wait", f"at least the window ({window_ms / 1000:g} s)", max_wait)
        return cls("arrival", window_ms, max_wait_ms)

    def described(self) -> dict[str, Any]:
        """As stored with the queue."""
        found: dict[str, Any] = {"kind": self.kind, "window": self.window_ms / 1000}
        return found | ({"max_wait": self.max_wait_ms / 1000} if self.max_wait_ms else {})


def checked(value: object, argument: str = "ordering") -> Ordering | None:
    if value is None or isinstance(value, Ordering):
        return value
    raise ConfigurationError.expected(argument, "Ordering.event_time(...), Ordering.arrival(...) or None", value)
