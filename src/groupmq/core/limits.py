"""Limits: how often jobs may start, and which adds count as one job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groupmq.core.checks import text, whole
from groupmq.core.durations import Duration, millis
from groupmq.core.errors import ConfigurationError

MAX_STARTS = 1_000_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `count` starts in any span of `per` seconds, wherever it begins.

    >>> RateLimit(100, per=1.0)
    RateLimit(count=100, per=1.0)
    """

    count: int
    per: Duration

    def __post_init__(self) -> None:
        whole(self.count, "RateLimit.count", 1, MAX_STARTS)
        millis(self.per, "RateLimit.per", minimum=0.001)

    def packed(self) -> list[int]:
        """Starts and milliseconds."""
        return [self.count, millis(self.per, "RateLimit.per")]

    def described(self) -> dict[str, Any]:
        count, per_ms = self.packed()
        return {"count": count, "per": per_ms / 1000}


@dataclass(frozen=True, slots=True)
class Breaker:
    """A group whose attempts fail `failures` times in a row rests for `cooldown`, then one job is tried.

    If that one completes, the group goes on; if it fails, the group rests again. Resting uses no attempt.

    >>> Breaker(failures=3, cooldown=10)
    Breaker(failures=3, cooldown=10)
    """

    failures: int = 5
    cooldown: Duration = 60

    def __post_init__(self) -> None:
        whole(self.failures, "Breaker.failures", 1, 1_000_000)
        millis(self.cooldown, "Breaker.cooldown", minimum=0.001)

    def packed(self) -> list[int]:
        """Failures and milliseconds."""
        return [self.failures, millis(self.cooldown, "Breaker.cooldown")]

    def described(self) -> dict[str, Any]:
        failures, cooldown_ms = self.packed()
        return {"failures": failures, "cooldown": cooldown_ms / 1000}


@dataclass(frozen=True, slots=True)
class Throttle:
    """The first add to a group with this key adds a job. Until `ttl` is over, further adds return that job."""

    key: str
    ttl: Duration

    def __post_init__(self) -> None:
        text(self.key, "Throttle.key")
        millis(self.ttl, "Throttle.ttl", minimum=0.001)

    def packed(self) -> list[Any]:
        return [1, self.key, millis(self.ttl, "Throttle.ttl")]


@dataclass(frozen=True, slots=True)
class Debounce:
    """A job that starts `delay` after the last add to its group with this key; the last data wins."""

    key: str
    delay: Duration

    def __post_init__(self) -> None:
        text(self.key, "Debounce.key")
        millis(self.delay, "Debounce.delay", minimum=0.001)

    @property
    def delay_ms(self) -> int:
        return millis(self.delay, "Debounce.delay")

    def packed(self) -> list[Any]:
        return [2, self.key, self.delay_ms]


Dedupe = Throttle | Debounce


def rate_limit(value: object, argument: str) -> RateLimit | None:
    if value is None or isinstance(value, RateLimit):
        return value
    raise ConfigurationError.expected(argument, "a RateLimit(count, per=seconds) or None", value)


def breaker(value: object) -> Breaker | None:
    if value is None or isinstance(value, Breaker):
        return value
    raise ConfigurationError.expected("breaker", "a Breaker(failures=5, cooldown=60) or None", value)


def dedupe(value: object) -> Dedupe | None:
    if value is None or isinstance(value, Throttle | Debounce):
        return value
    raise ConfigurationError.expected("dedupe", "a Throttle(key, ttl) or a Debounce(key, delay)", value)
