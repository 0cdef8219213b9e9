"""Stored settings as people write them: the reverse of `setting_words`, for command lines and forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from groupmq.core.backoff import Backoff
from groupmq.core.errors import ConfigurationError
from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.ordering import Ordering
from groupmq.core.retention import Retention

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d{1,15}(?:\.\d{1,9})?|\.\d{1,9})\s*([a-z]*)")
_GROWS = re.compile(r"(.+?)\.\.(\S+)(?:\s+x([\d.]+))?(?:\s+jitter\s+([\d.]+))?")
_FLAGS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}

DURATION = "a duration: 30, 1.5, 500ms, 10m, 2h, 7d"
COUNT = "a whole number"
FLAG = "yes or no"
BACKOFF = "a duration, or 1s..5m, which grows"
KEPT = "a count and an age (10000,30d), one of them (100 or 30d), or all"
LIMIT = "a count and a time (100/1s), or none"
BREAKER = "failures in a row and a rest (5/1m), or none"
ORDERING = "event_time:2s, arrival:500ms, arrival:500ms..2s, or none"


class _Unreadable(Exception):
    """The text cannot be read; the caller adds the expected form."""


def read(name: str, text: str) -> Any:
    """The value of a setting. Raises ConfigurationError with its name, the expected form and the text.

    Whether the value is in range is left to `QueueSettings.changed`, which knows the other settings too.
    """
    if name not in _READERS:
        raise ConfigurationError(f"{name!r} is not a setting of a queue; known: {', '.join(_READERS)}")
    expected, reader = _READERS[name]
    try:
        return reader(text.strip())
    except _Unreadable:
        raise ConfigurationError.expected(name, expected, text) from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from None


def expected(name: str) -> str:
    """The form of the texts that a setting takes."""
    return _READERS[name][0]


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or (found[2] or "s") not in _UNITS:
        raise _Unreadable
    return float(found[1]) * _UNITS[found[2] or "s"]


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text.strip()):
        raise _Unreadable
    return int(text)


def _flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise _Unreadable
    return _FLAGS[text.lower()]


def _optional(reader: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text.lower() == "none" else reader(text)


def _backoff(text: str) -> Backoff:
    """`5s`, `1s..5m`, `1s..5m x3 jitter 0.1`."""
    found = _GROWS.fullmatch(text)
    if found is None:
        return Backoff.fixed(_duration(text))
    try:
        rest = {name: float(found[at]) for at, name in ((3, "factor"), (4, "jitter")) if found[at]}
    except ValueError:
        raise _Unreadable from None
    return Backoff.exponential(base=_duration(found[1]), max=_duration(found[2]), **rest)


def _kept(text: str) -> Retention:
    """`100`, `30d`, `10000,30d` or `all`: a plain number counts jobs, one with a unit is an age."""
    if text.lower() == "all":
        return Retention()
    count, age = None, None
    for part in text.split(","):
        if part.strip().isdigit():
            count = _number(part)
        else:
            age = _duration(part)
    return Retention(count=count, age=age)


def _pair(text: str) -> tuple[int, float]:
    """`100/1s`: how many, in how long."""
    count, slash, per = text.partition("/")
    if not slash:
        raise _Unreadable
    return _number(count), _duration(per)


def _ordering(text: str) -> Ordering:
    kind, _, window = text.partition(":")
    first, dots, last = window.partition("..")
    if kind == "event_time" and not dots:
        return Ordering.event_time(_duration(first))
    if kind == "arrival":
        return Ordering.arrival(_duration(first), **({"max_wait": _duration(last)} if dots else {}))
    raise _Unreadable


def _partitions(_text: str) -> int:
    raise ConfigurationError("partitions: a change moves the jobs; use `groupmq queue repartition`")


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "job_timeout": (DURATION, _duration),
    "max_attempts": (COUNT, _number),
    "backoff": (BACKOFF, _backoff),
    "on_retry": ("hold or yield", str),
    "keep_completed": (KEPT, _kept),
    "keep_failed": (KEPT, _kept),
    "group_concurrency": (COUNT, _number),
    "on_failed": ("continue or hold", str),
    "breaker": (BREAKER, _optional(lambda text: Breaker(*_pair(text)))),
    "ordering": (ORDERING, _optional(_ordering)),
    "fairness": ("oldest or round-robin", str),
    "exclusive": (FLAG, _flag),
    "rate_limit": (LIMIT, _optional(lambda text: RateLimit(*_pair(text)))),
    "group_rate_limit": (LIMIT, _optional(lambda text: RateLimit(*_pair(text)))),
    "max_group_size": (f"{COUNT}, or none", _optional(_number)),
    "priority_ageing": (f"{DURATION}, or none", _optional(_duration)),
    "partitions": (COUNT, _partitions),
    "events": (FLAG, _flag),
}
