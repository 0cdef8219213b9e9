"""Numbers, durations and times in words."""

from __future__ import annotations

from datetime import UTC, datetime


def when(moment: datetime | None) -> str:
    """A time in UTC, to the second; `-` for None."""
    return "-" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: float) -> str:
    """A duration in its one or two largest units."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    for size, unit, part, smaller in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    raise AssertionError("unreachable")


def number(value: int, one: str, many: str | None = None) -> str:
    """`1 job`, `2,000 jobs`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"
