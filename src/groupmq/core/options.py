"""Settings of a queue and of a worker: frozen, and checked when they are made."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from groupmq.core import backoff as backoffs
from groupmq.core import limits, loggers, ordering
from groupmq.core.backoff import BackoffPolicy
from groupmq.core.checks import Logger, flag, one_of, text, whole
from groupmq.core.codec import JSON, Serializer
from groupmq.core.durations import Duration, millis, seconds
from groupmq.core.errors import ConfigurationError
from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.ordering import Ordering

OnRetry = Literal["hold", "yield"]
OnFailed = Literal["continue", "hold"]
Fairness = Literal["oldest", "round-robin"]
UNBOUNDED = -1
MAX_PRIORITY = 1023
MAX_ATTEMPTS = 65_535


@dataclass(frozen=True, slots=True)
class Retention:
    """How many finished jobs are kept (newest first) and for how long. None = no bound of that kind.

    A count or an age of 0 keeps none of the jobs that this process ends, and leaves those that other processes keep.
    """

    count: int | None = None
    age: Duration | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            whole(self.count, "Retention.count", 0, 2**31)
        if self.age is not None:
            seconds(self.age, "Retention.age")

    @property
    def kept(self) -> int:
        if self.age_ms == 0:
            return 0
        return UNBOUNDED if self.count is None else self.count

    @property
    def age_ms(self) -> int | None:
        return None if self.age is None else millis(self.age, "Retention.age")


def retention(value: object, argument: str) -> Retention:
    """A number of jobs, or a Retention."""
    if isinstance(value, Retention):
        return value
    return Retention(count=whole(value, argument, 0, 2**31))


SHARED_DEFAULTS = {"on_failed": "continue", "fairness": "oldest", "exclusive": False, "events": True}
"""What an absent shared setting means; None for the others."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Everything a queue was told, checked. Durations are milliseconds from here on."""

    name: str
    prefix: str = "groupmq"
    job_timeout_ms: int = 30_000
    max_attempts: int = 3
    backoff: BackoffPolicy = backoffs.DEFAULT
    on_retry: OnRetry = "hold"
    on_failed: OnFailed = "continue"
    breaker: Breaker | None = None
    keep_completed: Retention = Retention(count=100)
    keep_failed: Retention = Retention(count=100)
    ordering: Ordering | None = None
    fairness: Fairness = "oldest"
    group_concurrency: int = 1
    exclusive: bool = False
    rate_limit: RateLimit | None = None
    group_rate_limit: RateLimit | None = None
    max_group_size: int | None = None
    priority_ageing_ms: int | None = None
    events: bool = True
    max_payload: int = 1024 * 1024
    serializer: Serializer = JSON
    logger: Logger | None = None
    """None: the loggers of this library."""

    @classmethod
    def checked(cls, name: object, **given: Any) -> QueueOptions:
        """Make options from what the user passed; each mistake raises a ConfigurationError naming its argument."""
        serializer = given["serializer"]
        if not isinstance(serializer, Serializer):
            raise ConfigurationError.expected("serializer", "an object with encode and decode", serializer)
        size, ageing = given["max_group_size"], given["priority_ageing"]
        options = cls(
            name=queue_name(name),
            prefix=queue_name(given["prefix"], "prefix"),
            job_timeout_ms=millis(given["job_timeout"], "job_timeout", minimum=0.05),
            max_attempts=whole(given["max_attempts"], "max_attempts", 1, MAX_ATTEMPTS),
            backoff=backoffs.checked(given["backoff"], "backoff"),
            on_retry=on_retry(given["on_retry"]),
            on_failed=on_failed(given.get("on_failed", "continue")),
            breaker=limits.breaker(given.get("breaker")),
            keep_completed=retention(given["keep_completed"], "keep_completed"),
            keep_failed=retention(given["keep_failed"], "keep_failed"),
            ordering=ordering.checked(given["ordering"]),
            fairness=fairness(given["fairness"]),
            group_concurrency=whole(given["group_concurrency"], "group_concurrency", 1, 65_535),
            exclusive=flag(given["exclusive"], "exclusive"),
            rate_limit=limits.rate_limit(given["rate_limit"], "rate_limit"),
            group_rate_limit=limits.rate_limit(given["group_rate_limit"], "group_rate_limit"),
            max_group_size=None if size is None else whole(size, "max_group_size", 1, 2**31),
            priority_ageing_ms=None if ageing is None else priority_ageing(ageing),
            events=flag(given["events"], "events"),
            max_payload=whole(given["max_payload"], "max_payload", 1, 256 * 1024 * 1024),
            serializer=serializer,
            logger=loggers.checked(given["logger"]),
        )
        if options.priority_ageing_ms is not None:
            if options.fairness == "round-robin":
                raise ConfigurationError("priority_ageing: needs fairness='oldest'; groups that take turns do not age")
            if options.ordering is not None and options.ordering.kind == "event_time":
                raise ConfigurationError("priority_ageing: cannot be combined with Ordering.event_time")
        return options

    @property
    def shared(self) -> str:
        """The settings that every process of this queue must agree on, as stored with the queue.

        Those at their default are left out, so a setting that a later release brings changes nothing for old queues.
        """
        ageing = self.priority_ageing_ms
        settings = {
            "group_concurrency": self.group_concurrency,
            "on_failed": self.on_failed,
            "breaker": self.breaker and self.breaker.described(),
            "ordering": self.ordering and self.ordering.described(),
            "fairness": self.fairness,
            "exclusive": self.exclusive,
            "events": self.events,
            "rate_limit": self.rate_limit and self.rate_limit.described(),
            "group_rate_limit": self.group_rate_limit and self.group_rate_limit.described(),
            "max_group_size": self.max_group_size,
            "priority_ageing": None if ageing is None else ageing / 1000,
        }
        told = {name: value for name, value in settings.items() if value != SHARED_DEFAULTS.get(name)}
        return json.dumps(told, sort_keys=True)

    @property
    def rules(self) -> dict[str, Any]:
        """What the scripts act on, `lua/lib/meta.lua`; only what differs from the defaults."""
        window = self.ordering
        rules = {
            "event_window": window.window_ms if window and window.kind == "event_time" else None,
            "arrival_window": window.window_ms if window and window.kind == "arrival" else None,
            "max_wait": window.max_wait_ms if window and window.kind == "arrival" else None,
            "round_robin": self.fairness == "round-robin" or None,
            "rate": self.rate_limit and self.rate_limit.packed(),
            "group_rate": self.group_rate_limit and self.group_rate_limit.packed(),
            "exclusive": self.exclusive or None,
            "max_group": self.max_group_size,
            "ageing": self.priority_ageing_ms,
            "silent": None if self.events else True,
            "hold": self.on_failed == "hold" or None,
            "breaker": self.breaker and self.breaker.packed(),
        }
        return {name: value for name, value in rules.items() if value is not None}

    @property
    def keep(self) -> dict[str, int]:
        return {"completed": self.keep_completed.kept, "failed": self.keep_failed.kept}


def queue_name(value: object, argument: str = "name") -> str:
    """A name that can stand inside a hash tag: no braces, or keys of a queue would part over cluster slots."""
    name = text(value, argument)
    if "{" in name or "}" in name:
        raise ConfigurationError.expected(argument, "a name without braces (they mark the hash tag)", value)
    return name


def on_retry(value: object, argument: str = "on_retry") -> OnRetry:
    return "hold" if one_of(value, argument, "hold", "yield") == "hold" else "yield"


def on_failed(value: object, argument: str = "on_failed") -> OnFailed:
    return "hold" if one_of(value, argument, "continue", "hold") == "hold" else "continue"


def fairness(value: object) -> Fairness:
    return "oldest" if one_of(value, "fairness", "oldest", "round-robin") == "oldest" else "round-robin"


def priority_ageing(value: object) -> int:
    """Milliseconds of waiting that count as one level of priority; at most a day, so that the order stays exact."""
    ms = millis(value, "priority_ageing", minimum=0.001)
    if ms > 86_400_000:
        raise ConfigurationError.expected("priority_ageing", "at most a day per level", value)
    return ms


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Everything a worker was told, checked."""

    concurrency: int
    name: str
    logger: Logger
    heartbeat: float
    max_attempts: int
    backoff: BackoffPolicy
    on_error: Callable[..., Any] | None
    maintenance: bool
    cleanup_interval: float
    stalled_interval: float
    max_stalled: int
    blocking_timeout: float
    atomic_completion: bool
    executor: Literal["thread", "process"]
    batch_size: int
    prefetch: Literal["auto"] | int
    middleware: tuple[Any, ...]
    unreachable_timeout: float | None

    @classmethod
    def checked(cls, queue: QueueOptions, default_name: str, **given: Any) -> WorkerOptions:
        """Make options from what the user passed; what was left out comes from the queue."""
        on_error, prefetch = given["on_error"], given["prefetch"]
        if on_error is not None and not callable(on_error):
            raise ConfigurationError.expected("on_error", "a callable (exc, job)", on_error)
        if prefetch != "auto" and not (type(prefetch) is int and 0 <= prefetch <= 10_000):
            raise ConfigurationError.expected("prefetch", "'auto' or an integer from 0 to 10000", prefetch)
        concurrency = whole(given["concurrency"], "concurrency", 1, 10_000)
        batch, patience = given["batch_size"], given["unreachable_timeout"]
        lease = queue.job_timeout_ms / 1000
        beat = given["heartbeat"]
        heartbeat = lease / 3 if beat is None else seconds(beat, "heartbeat", minimum=0.01)
        if heartbeat >= lease:
            raise ConfigurationError.expected("heartbeat", f"less than job_timeout ({lease:g} s)", beat)
        attempts, policy, name, stalls = (given[key] for key in ("max_attempts", "backoff", "name", "max_stalled"))
        return cls(
            concurrency=concurrency,
            name=default_name if name is None else text(name, "name"),
            logger=loggers.checked(given["logger"]) or queue.logger or logging.getLogger("groupmq.worker"),
            heartbeat=heartbeat,
            max_attempts=queue.max_attempts if attempts is None else whole(attempts, "max_attempts", 1, MAX_ATTEMPTS),
            backoff=queue.backoff if policy is None else backoffs.checked(policy, "backoff"),
            on_error=on_error,
            maintenance=flag(given["maintenance"], "maintenance"),
            cleanup_interval=seconds(given["cleanup_interval"], "cleanup_interval", minimum=0.01),
            stalled_interval=seconds(given["stalled_interval"], "stalled_interval", minimum=0.01),
            max_stalled=UNBOUNDED if stalls is None else whole(stalls, "max_stalled", 0, MAX_ATTEMPTS),
            blocking_timeout=seconds(given["blocking_timeout"], "blocking_timeout", minimum=0.05),
            atomic_completion=flag(given["atomic_completion"], "atomic_completion"),
            executor="process" if one_of(given["executor"], "executor", "thread", "process") == "process" else "thread",
            batch_size=concurrency if batch is None else whole(batch, "batch_size", 1, 10_000),
            prefetch=prefetch,
            middleware=given["middleware"],
            unreachable_timeout=None if patience is None else seconds(patience, "unreachable_timeout", minimum=0.1),
        )
