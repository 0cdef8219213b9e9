"""The settings that are stored with a queue and hold for every process that uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from groupmq.core.backoff import Backoff
from groupmq.core.errors import ConfigurationError
from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.ordering import Ordering
from groupmq.core.queue_options import (
    DURATIONS,
    HANDLING,
    QUEUE_DEFAULTS,
    SHARED,
    Fairness,
    OnFailed,
    OnRetry,
    QueueArguments,
    QueueOptions,
    attribute_of,
)
from groupmq.core.retention import KEEP_COMPLETED, KEEP_FAILED, Retention
from groupmq.core.signatures import unknown_option


class StoredQueue(NamedTuple):
    """The stored entry of a queue as a whole, as it came from the server."""

    schema: str | None
    """None: there is no such queue."""
    config: str = "{}"
    """The settings that the scripts act on; only those that differ from their defaults."""
    handling: str = ""
    """The settings by which processes handle jobs. Empty: the queue was made by a release that stored none."""
    revision: bytes = b""
    """Changes with every change of the settings. Empty if a release without stored revisions made the queue."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings that are stored with a queue. Options of a process (serializer, logger ...) are not among them."""

    job_timeout: float = QUEUE_DEFAULTS["job_timeout"]
    max_attempts: int = QUEUE_DEFAULTS["max_attempts"]
    backoff: Backoff = QUEUE_DEFAULTS["backoff"]
    on_retry: OnRetry = QUEUE_DEFAULTS["on_retry"]
    keep_completed: Retention = KEEP_COMPLETED
    keep_failed: Retention = KEEP_FAILED
    group_concurrency: int = QUEUE_DEFAULTS["group_concurrency"]
    on_failed: OnFailed = QUEUE_DEFAULTS["on_failed"]
    breaker: Breaker | None = QUEUE_DEFAULTS["breaker"]
    ordering: Ordering | None = QUEUE_DEFAULTS["ordering"]
    fairness: Fairness = QUEUE_DEFAULTS["fairness"]
    exclusive: bool = QUEUE_DEFAULTS["exclusive"]
    rate_limit: RateLimit | None = QUEUE_DEFAULTS["rate_limit"]
    group_rate_limit: RateLimit | None = QUEUE_DEFAULTS["group_rate_limit"]
    max_group_size: int | None = QUEUE_DEFAULTS["max_group_size"]
    priority_ageing: float | None = QUEUE_DEFAULTS["priority_ageing"]
    """Seconds of waiting that count as one level of priority."""
    partitions: int = 1
    events: bool = QUEUE_DEFAULTS["events"]
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Settings that a newer release of groupmq has stored and this one does not know, as they are stored."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of all settings, which are those of the options of `Queue`."""
        return tuple(one.name for one in fields(cls) if one.name != "unknown")

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> QueueSettings:
        """The reverse of `QueueOptions.described`; a setting that is not stored has its default."""
        known: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        for name, value in stored.items():
            if name not in cls.names():
                unknown[name] = value
                continue
            try:
                known[name] = _READ[name](value) if name in _READ else value
            except (AttributeError, KeyError, TypeError, ValueError):
                unknown[name] = value  # of a form that a newer release added
        return cls(**known, unknown=unknown)

    @classmethod
    def of(cls, stored: StoredQueue) -> QueueSettings:
        return cls.from_stored(json.loads(stored.handling or "{}") | json.loads(stored.config))

    def options(self) -> dict[str, Any]:
        """The options with which a `Queue` agrees with these settings; only those that differ from the defaults."""
        given = {name: getattr(self, name) for name in self.names()}
        return {name: value for name, value in given.items() if value != getattr(DEFAULTS, name)}

    def changed(self, **changes: Any) -> QueueSettings:
        """The settings that `Queue.reconfigure` would store. Raises ConfigurationError as it does; nothing is sent.

        >>> settings.changed(max_attempts=0)
        Traceback (most recent call last):
        groupmq.errors.ConfigurationError: max_attempts: expected an integer from 1 to 65535, got 0
        """
        given: Any = changes
        return QueueSettings.from_stored(changed(self, "-", given).described())

    def to_dict(self) -> dict[str, Any]:
        """The settings as JSON can hold them: orderings and limits as mappings, durations in seconds."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            found[one.name] = value.described() if hasattr(value, "described") else value
        return found | {"unknown": dict(self.unknown)}


def adopted(options: QueueOptions, settings: QueueSettings) -> QueueOptions:
    """The options of a process that uses a queue with these settings. All other options stay as they are."""
    values: dict[str, Any] = {}
    for name in settings.names():
        value = getattr(settings, name)
        values[attribute_of(name)] = round(value * 1000) if name in DURATIONS and value is not None else value
    if not isinstance(options.backoff, Backoff):
        del values["backoff"]
    return replace(options, **values, is_stored=True)


def differences(mine: QueueOptions, stored: QueueSettings) -> list[str]:
    """Where the settings that this process was given differ from the stored ones, with both values."""
    here, there = mine.described(), stored.to_dict()
    return [
        f"{name} is {there[name]!r} there and {here[name]!r} here"
        for name in sorted(mine.given)
        if here[name] != there[name] and not (name == "backoff" and not isinstance(mine.backoff, Backoff))
    ]


def storable(given: QueueArguments) -> QueueArguments:
    """The options of a queue that can be stored with it."""
    found: Any = {
        name: value
        for name, value in given.items()
        if (name in SHARED and name != "partitions")
        or (name in HANDLING and not (name == "backoff" and callable(value)))
    }
    stored: QueueArguments = found
    return stored


def not_known(settings: QueueSettings) -> list[str]:
    """Settings that a newer release has stored: a process that does not know them must not act on the queue."""
    found = sorted(settings.unknown.items())
    return [f"{name} is {value!r} there, which this release of groupmq does not know" for name, value in found]


def given_too(options: QueueOptions, settings: QueueSettings, names: Iterable[str]) -> QueueOptions:
    """The options as if the process had been given the stored values of these settings."""
    stored, names = adopted(options, settings), frozenset(names)
    one_by_one: dict[str, Any] = {attribute: getattr(stored, attribute) for attribute in map(attribute_of, names)}
    return replace(options, **one_by_one, given=options.given | names)


def changed(settings: QueueSettings, name: str, changes: QueueArguments) -> QueueOptions:
    """The options to store after these changes; all other settings stay as they are stored.

    Raises ConfigurationError for an option that is not stored, and for values that do not go together.
    """
    unknown = unknown_option("Queue.reconfigure", changes, QUEUE_DEFAULTS)
    if unknown is not None:
        raise unknown
    for one in changes:
        if one == "partitions":
            raise ConfigurationError(
                "partitions: cannot be changed by reconfigure(); Queue.repartition() moves the jobs to other partitions"
            )
        if one not in HANDLING and one not in SHARED:
            raise ConfigurationError(
                f"{one}: belongs to each process and is not stored with the queue; give it to each Queue(...)"
            )
    if callable(changes.get("backoff")):
        raise ConfigurationError("backoff: a callable cannot be stored; give it to Queue(...) or to the workers")
    if settings.unknown:
        raise ConfigurationError(f"queue {name!r}: {'; '.join(not_known(settings))}; change it with the newer release")
    merged: Any = {**settings.options(), **changes}
    return QueueOptions.checked(name, merged)


def _ordering(value: Any) -> Ordering | None:
    if value is None:
        return None
    make: Callable[..., Ordering] = {"event_time": Ordering.event_time, "arrival": Ordering.arrival}[value["kind"]]
    return make(**{part: value[part] for part in value if part != "kind"})


def _rate_limit(value: Any) -> RateLimit | None:
    return None if value is None else RateLimit(value["count"], per=value["per"])


def _breaker(value: Any) -> Breaker | None:
    return None if value is None else Breaker(value["failures"], value["cooldown"])


def _retention(value: Any) -> Retention:
    return Retention(value["count"], value["age"])


def _backoff(value: Any) -> Backoff:
    return Backoff(value["base"], value["factor"], value["max"], value["jitter"])


_READ: dict[str, Callable[[Any], Any]] = {
    "backoff": _backoff,
    "keep_completed": _retention,
    "keep_failed": _retention,
    "ordering": _ordering,
    "rate_limit": _rate_limit,
    "group_rate_limit": _rate_limit,
    "breaker": _breaker,
}
DEFAULTS = QueueSettings()
