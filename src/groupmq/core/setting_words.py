"""Stored settings in words: as people read them, and as `groupmq queue settings --set` takes them."""

from __future__ import annotations

from groupmq.core.backoff import Backoff
from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.ordering import Ordering
from groupmq.core.queue_options import DURATIONS
from groupmq.core.retention import Retention

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def duration(seconds: float) -> str:
    """A duration in the largest unit in which it is a whole number: 30s, 5m, 1500ms."""
    ms = round(seconds * 1000)
    for unit, size in _UNITS:
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def spelled(name: str, value: object) -> str:
    """The value of a setting in one word or two."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Backoff):
        return _backoff(value)
    if isinstance(value, Retention):
        return _retention(value)
    if isinstance(value, RateLimit):
        limit = value.described()
        return f"{limit['count']}/{duration(limit['per'])}"
    if isinstance(value, Breaker):
        breaker = value.described()
        return f"{breaker['failures']}/{duration(breaker['cooldown'])}"
    if isinstance(value, Ordering):
        return _ordering(value)
    if name in DURATIONS and isinstance(value, int | float):
        return duration(value)
    return str(value)


def _backoff(policy: Backoff) -> str:
    if policy.base == policy.max or policy.factor == 1:
        return duration(policy.base)
    rest = [f"x{policy.factor:g}"] if policy.factor != 2 else []
    if policy.jitter != 0.25:
        rest.append(f"jitter {policy.jitter:g}")
    return " ".join([f"{duration(policy.base)}..{duration(policy.max)}", *rest])


def _retention(kept: Retention) -> str:
    age = None if kept.age_ms is None else duration(kept.age_ms / 1000)
    if kept.count is None:
        return "all" if age is None else age
    return str(kept.count) if age is None else f"{kept.count},{age}"


def _ordering(ordering: Ordering) -> str:
    parts = ordering.described()
    until = f"..{duration(parts['max_wait'])}" if parts["kind"] == "arrival" else ""
    return f"{parts['kind']}:{duration(parts['window'])}{until}"
