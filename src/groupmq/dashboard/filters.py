"""How templates write times, durations and numbers. Times are relative; scripts put exact ones in the reader's zone."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

NONE = "\N{EN DASH}"
DASH = Markup('<span class="none">{}</span>').format(NONE)
_STEPS = ((60, "second", 1), (3600, "minute", 60), (86_400, "hour", 3600), (2_592_000, "day", 86_400))


def iso(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def exact(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _element(moment: datetime | None, kind: str, text: str) -> Markup:
    if moment is None:
        return DASH
    return Markup('<time class="{}" datetime="{}" title="{}">{}</time>').format(kind, iso(moment), exact(moment), text)


def ago(moment: datetime | None) -> Markup:
    """`3 minutes ago`, `in 12 seconds`."""
    return _element(moment, "ago", "" if moment is None else relative(moment, datetime.now(UTC)))


def time(moment: datetime | None) -> Markup:
    return _element(moment, "time", "" if moment is None else exact(moment))


def clock(moment: datetime | None) -> Markup:
    """`14:03:21`, in UTC until a script puts it in the reader's zone."""
    return _element(moment, "clock", "" if moment is None else moment.astimezone(UTC).strftime("%H:%M:%S"))


def relative(moment: datetime, now: datetime) -> str:
    seconds = (now - moment).total_seconds()
    size = abs(seconds)
    if size < 1:
        return "now"
    text = f"{size / 31_536_000:.1f} years" if size >= 31_536_000 else f"{int(size // 86_400)} days"
    for below, unit, one in _STEPS:
        if size < below:
            n = int(size // one)
            text = f"{n} {unit}" if n == 1 else f"{n} {unit}s"
            break
    return f"{text} ago" if seconds > 0 else f"in {text}"


def duration(seconds: float | None) -> str:
    """`240 ms`, `3.2 s`, `1 m 3 s`, `2 h 5 m`, `3 d 4 h`."""
    if seconds is None:
        return NONE
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def number(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def compact(value: float | None) -> str:
    """`12.3k`."""
    if value is None:
        return NONE
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"


def size(value: int | None) -> str:
    """`1.2 MB`."""
    if value is None:
        return NONE
    for unit_size, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if value >= unit_size:
            return f"{value / unit_size:.1f} {unit}"
    return f"{value} B"


def percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.0%}".replace("%", " %")


def clip(text: str | None, most: int = 12) -> str:
    text = text or ""
    return text if len(text) <= most else text[: most - 1] + "…"


FILTERS = {
    "iso": iso,
    "dt": iso,
    "ago": ago,
    "time": time,
    "clock": clock,
    "duration": duration,
    "number": number,
    "num": number,
    "compact": compact,
    "size": size,
    "percent": percent,
    "clip": clip,
    "short": clip,
}
