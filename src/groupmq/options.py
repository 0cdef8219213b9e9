"""Settings of a queue and of a worker: frozen, and checked when they are made."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from groupmq import backoff as backoffs
from groupmq.backoff import BackoffPolicy
from groupmq.codec import JSON, Serializer
from groupmq.durations import Duration, millis, seconds
from groupmq.errors import ConfigurationError

OnRetry = Literal["hold", "yield"]
UNBOUNDED = -1
MAX_PRIORITY = 1023
MAX_ATTEMPTS = 65_535
MAX_ID_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Retention:
    """How many finished jobs are kept (newest first) and for how long. None = no bound of that kind."""

    count: int | None = None
    age: Duration | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            whole(self.count, "Retention.count", 0, 2**31)
        if self.age is not None:
            seconds(self.age, "Retention.age")

    @property
    def kept(self) -> int:
        return UNBOUNDED if self.count is None else self.count

    @property
    def age_ms(self) -> int | None:
        return None if self.age is None else millis(self.age, "Retention.age")


def whole(value: object, argument: str, lowest: int, highest: int) -> int:
    """An integer in a range; a bool or a float is a mistake, not a number."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise ConfigurationError.expected(argument, f"an integer from {lowest} to {highest}", value)
    return value


def text(value: object, argument: str) -> str:
    """A non-empty string that fits in a key or field."""
    if not isinstance(value, str) or not value:
        raise ConfigurationError.expected(argument, "a non-empty string", value)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ConfigurationError.expected(argument, "text without lone surrogates", value) from None
    if size > MAX_ID_BYTES:
        raise ConfigurationError.expected(argument, f"at most {MAX_ID_BYTES} bytes of UTF-8", value)
    return value


def one_of(value: object, argument: str, *allowed: str) -> str:
    if value not in allowed:
        raise ConfigurationError.expected(argument, " or ".join(map(repr, allowed)), value)
    return str(value)


def flag(value: object, argument: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError.expected(argument, "True or False", value)
    return value


def retention(value: object, argument: str) -> Retention:
    """A number of jobs, or a Retention."""
    if isinstance(value, Retention):
        return value
    return Retention(count=whole(value, argument, 0, 2**31))


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Everything a queue was told, checked. Durations are milliseconds from here on."""

    name: str
    prefix: str = "groupmq"
    job_timeout_ms: int = 30_000
    max_attempts: int = 3
    backoff: BackoffPolicy = backoffs.DEFAULT
    on_retry: OnRetry = "hold"
    keep_completed: Retention = Retention(count=100)
    keep_failed: Retention = Retention(count=100)
    group_concurrency: int = 1
    max_payload: int = 1024 * 1024
    serializer: Serializer = JSON

    @classmethod
    def checked(cls, name: object, **given: Any) -> QueueOptions:
        """Make options from what the user passed; each mistake raises a ConfigurationError naming its argument."""
        serializer = given["serializer"]
        if not isinstance(serializer, Serializer):
            raise ConfigurationError.expected("serializer", "an object with encode and decode", serializer)
        return cls(
            name=queue_name(name),
            prefix=queue_name(given["prefix"], "prefix"),
            job_timeout_ms=millis(given["job_timeout"], "job_timeout", minimum=0.05),
            max_attempts=whole(given["max_attempts"], "max_attempts", 1, MAX_ATTEMPTS),
            backoff=backoffs.checked(given["backoff"], "backoff"),
            on_retry=on_retry(given["on_retry"]),
            keep_completed=retention(given["keep_completed"], "keep_completed"),
            keep_failed=retention(given["keep_failed"], "keep_failed"),
            group_concurrency=whole(given["group_concurrency"], "group_concurrency", 1, 65_535),
            max_payload=whole(given["max_payload"], "max_payload", 1, 256 * 1024 * 1024),
            serializer=serializer,
        )

    @property
    def shared(self) -> str:
        """The settings that every process of this queue must agree on, as stored with the queue."""
        return json.dumps({"group_concurrency": self.group_concurrency}, sort_keys=True)

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


class Logger(Protocol):
    """What groupmq needs of a logger; `logging.Logger` and most others fit."""

    def debug(self, msg: str, *args: Any) -> Any: ...
    def info(self, msg: str, *args: Any) -> Any: ...
    def warning(self, msg: str, *args: Any) -> Any: ...
    def error(self, msg: str, *args: Any) -> Any: ...


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

    @classmethod
    def checked(cls, queue: QueueOptions, default_name: str, **given: Any) -> WorkerOptions:
        """Make options from what the user passed; what was left out comes from the queue."""
        on_error, logger, prefetch = given["on_error"], given["logger"], given["prefetch"]
        if on_error is not None and not callable(on_error):
            raise ConfigurationError.expected("on_error", "a callable (exc, job)", on_error)
        if logger is not None and not all(
            callable(getattr(logger, level, None)) for level in ("debug", "info", "warning", "error")
        ):
            raise ConfigurationError.expected("logger", "an object with debug, info, warning and error", logger)
        if prefetch != "auto":
            whole(prefetch, "prefetch", 0, 10_000)
        if given["batch_size"] is not None:
            whole(given["batch_size"], "batch_size", 1, 10_000)
        lease = queue.job_timeout_ms / 1000
        beat = given["heartbeat"]
        heartbeat = lease / 3 if beat is None else seconds(beat, "heartbeat", minimum=0.01)
        if heartbeat >= lease:
            raise ConfigurationError.expected("heartbeat", f"less than job_timeout ({lease:g} s)", beat)
        attempts, policy, name, stalls = (given[key] for key in ("max_attempts", "backoff", "name", "max_stalled"))
        return cls(
            concurrency=whole(given["concurrency"], "concurrency", 1, 10_000),
            name=default_name if name is None else text(name, "name"),
            logger=logging.getLogger("groupmq.worker") if logger is None else logger,
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
        )
