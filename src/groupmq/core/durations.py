"""Durations and instants as users write them, turned into the milliseconds the server works with."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from groupmq.core.errors import ConfigurationError

Duration = int | float | timedelta
Instant = datetime | int | float

LONGEST_MS = 100 * 366 * 86_400_000
"""A hundred years. A longer duration is a mistake in the unit."""


def seconds(value: object, argument: str, *, minimum: float = 0.0) -> float:
    """A duration in seconds. Refuses a value that is not a number, not finite, below `minimum` or beyond a century."""
    if isinstance(value, timedelta):
        number = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = _as_float(value)
    else:
        raise ConfigurationError.expected(argument, "seconds (int, float) or a timedelta", value)
    if not math.isfinite(number) or number < minimum or number * 1000 > LONGEST_MS:
        raise ConfigurationError.expected(argument, f"between {minimum:g} s and 100 years", value)
    return number


def number(value: object, argument: str, lowest: float, highest: float) -> float:
    """A plain number in a range. NaN is refused."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        raise ConfigurationError.expected(argument, f"a number from {lowest:g} to {highest:g}", value)
    return float(value)


def millis(value: object, argument: str, *, minimum: float = 0.0) -> int:
    """A duration in whole milliseconds, rounded up so that nothing is ever early."""
    checked = seconds(value, argument, minimum=minimum)
    if isinstance(value, timedelta):
        return -(-value // timedelta(milliseconds=1))  # exact, also where a float would not be
    ms = checked * 1000
    return math.ceil(ms - max(5e-7, ms * 4.5e-16))  # a smaller excess is float noise


def epoch_millis(value: object, argument: str) -> int:
    """An instant as epoch milliseconds, rounded up. A naive datetime is refused: it names no instant."""
    if isinstance(value, datetime):
        if value.tzinfo is None or value.utcoffset() is None:
            raise ConfigurationError.expected(argument, "an aware datetime (with a time zone)", value)
        number = (value - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = _as_float(value) * 1000
    else:
        raise ConfigurationError.expected(argument, "an aware datetime or epoch seconds", value)
    if not math.isfinite(number) or abs(number) > 2**47:
        raise ConfigurationError.expected(argument, "an instant before the year 6000", value)
    return math.ceil(round(number, 3))


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def instant_of(ms: int | float) -> datetime:
    """Epoch milliseconds as an aware datetime."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def moment(ms: int | float) -> datetime | None:
    """Like `instant_of`, but 0 means "never" and gives None."""
    return instant_of(ms) if ms else None
