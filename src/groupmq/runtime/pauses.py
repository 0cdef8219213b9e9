"""Growing pauses between two tries of the same thing."""

from __future__ import annotations

from collections.abc import Iterator


def growing(first: float, longest: float, factor: float = 2.0) -> Iterator[float]:
    """Seconds to wait, for ever: the first pause, then each one longer than the one before, up to the longest."""
    pause = first
    while True:
        yield pause
        pause = min(pause * factor, longest)
