"""How long a failed job waits before its next attempt."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from groupmq.core.checks import takes, with_signature
from groupmq.core.durations import Duration, number, seconds
from groupmq.core.errors import ConfigurationError

BackoffFunction = Callable[[int, BaseException], float]


@dataclass(frozen=True, slots=True)
class Backoff:
    """A back-off policy: the delay after attempt 1, 2, 3 ... failed.

    >>> Backoff.exponential(base=1, factor=2, max=30, jitter=0).delay(3)
    4.0
    """

    base: float
    factor: float
    max: float
    jitter: float

    @classmethod
    def exponential(cls, base: Duration = 0.5, factor: float = 2, max: Duration = 30, jitter: float = 0.25) -> Backoff:
        """`base * factor ** (attempt - 1)`, at most `max`, then lengthened by up to `jitter` of itself."""
        return cls(
            seconds(base, "base"), number(factor, "factor", 1, 1e6), seconds(max, "max"), number(jitter, "jitter", 0, 1)
        )

    @classmethod
    def fixed(cls, delay: Duration) -> Backoff:
        """The same delay after every attempt."""
        value = seconds(delay, "delay")
        return cls(value, 1.0, value, 0.0)

    def delay(self, attempt: int) -> float:
        """Seconds to wait after attempt number `attempt` (from 1) failed."""
        try:
            grown = self.base * self.factor ** (attempt - 1)
        except OverflowError:
            grown = self.max if self.base else 0.0
        # Jitter only lengthens the delay: a retry must not come before its back-off is over.
        return min(grown, self.max) * (1 + self.jitter * random.random())  # noqa: S311

    def packed(self) -> list[float]:
        return [self.base, self.factor, self.max, self.jitter]

    def described(self) -> dict[str, float]:
        return {"base": self.base, "factor": self.factor, "max": self.max, "jitter": self.jitter}

    @classmethod
    def unpacked(cls, values: list[float]) -> Backoff:
        return cls(*values)


@dataclass(frozen=True, slots=True)
class OfAttempt:
    """A back-off function of the attempt alone, in the form of one that also takes the error."""

    function: Callable[[int], float]

    def __call__(self, attempt: int, error: BaseException) -> float:
        return self.function(attempt)


BackoffPolicy = Backoff | BackoffFunction | Callable[[int], float]
DEFAULT = Backoff.exponential()


def checked(value: object, argument: str) -> BackoffPolicy:
    """`value` as a policy: a Backoff, a number of seconds (fixed), or a callable of (attempt, exc) or (attempt)."""
    if isinstance(value, Backoff):
        return value
    if callable(value):
        return _function(value, argument)
    try:
        return Backoff.fixed(cast(Any, value))
    except ConfigurationError:
        expected = "a Backoff, seconds, or a callable (attempt, exc) -> seconds or (attempt) -> seconds"
        raise ConfigurationError.expected(argument, expected, value) from None


def _function(value: Callable[..., Any], argument: str) -> BackoffFunction:
    """`value` as a callable of attempt and error. Checked now, or a mistake would show when the first job fails."""
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):  # noqa: B004
        raise ConfigurationError(
            f"{argument}: expected a plain function that returns seconds, got the coroutine function "
            f"{with_signature(value)}"
        )
    if takes(value, 2):
        return cast(BackoffFunction, value)
    if takes(value, 1):
        return OfAttempt(value)
    raise ConfigurationError(
        f"{argument}: expected a callable of one argument (attempt) or two (attempt, exc), got {with_signature(value)}"
    )


def delay_after(policy: BackoffPolicy, attempt: int, error: BaseException) -> float:
    """The delay that a checked `policy` gives. Raises if a callable raises, or if its answer is not a duration."""
    if isinstance(policy, Backoff):
        return policy.delay(attempt)
    answer: Any = cast(BackoffFunction, policy)(attempt, error)
    if inspect.iscoroutine(answer):
        answer.close()  # refused below; Python would complain later that it was never awaited
    return seconds(answer, "backoff")
