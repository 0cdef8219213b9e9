"""The settings that are stored with a queue and hold for every process that uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from groupmq.core.limits import Breaker, RateLimit
from groupmq.core.options import Fairness, OnFailed, QueueOptions
from groupmq.core.ordering import Ordering


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What is stored with a queue. Options that are a process's own (job_timeout, max_attempts ...) are not here."""

    group_concurrency: int = 1
    on_failed: OnFailed = "continue"
    breaker: Breaker | None = None
    ordering: Ordering | None = None
    fairness: Fairness = "oldest"
    exclusive: bool = False
    rate_limit: RateLimit | None = None
    group_rate_limit: RateLimit | None = None
    max_group_size: int | None = None
    priority_ageing: float | None = None
    """Seconds of waiting that count as one level of priority."""
    partitions: int = 1
    events: bool = True
    unknown: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What a newer release of groupmq stored and this one does not know, as it is stored."""

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> QueueSettings:
        """The reverse of `QueueOptions.shared`; a setting that is not stored has its default."""
        known: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        names = {one.name for one in fields(cls)} - {"unknown"}
        for name, value in stored.items():
            if name not in names:
                unknown[name] = value
                continue
            try:
                known[name] = _READ[name](value) if name in _READ else value
            except (KeyError, TypeError, ValueError):
                unknown[name] = value  # of a kind that a newer release brought
        return cls(**known, unknown=unknown)

    def options(self) -> dict[str, Any]:
        """What to pass to `Queue` to agree with what is stored; only what differs from the defaults."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "unknown"}
        return {name: value for name, value in given.items() if value != getattr(DEFAULTS, name)}

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it: orderings and limits as mappings, durations in seconds."""
        found: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            found[one.name] = value.described() if isinstance(value, Ordering | RateLimit | Breaker) else value
        return found | {"unknown": dict(self.unknown)}


def _ordering(value: Any) -> Ordering | None:
    if value is None:
        return None
    make: Callable[..., Ordering] = {"event_time": Ordering.event_time, "arrival": Ordering.arrival}[value["kind"]]
    return make(**{part: value[part] for part in value if part != "kind"})


def _rate_limit(value: Any) -> RateLimit | None:
    return None if value is None else RateLimit(value["count"], per=value["per"])


def _breaker(value: Any) -> Breaker | None:
    return None if value is None else Breaker(value["failures"], value["cooldown"])


_READ: dict[str, Callable[[Any], Any]] = {
    "ordering": _ordering,
    "rate_limit": _rate_limit,
    "group_rate_limit": _rate_limit,
    "breaker": _breaker,
}
DEFAULTS = QueueSettings()
_FIELDS = tuple(one.name for one in fields(QueueSettings) if one.name not in ("unknown", "priority_ageing"))


def options_as_stored(options: QueueOptions, stored: Mapping[str, Any]) -> QueueOptions:
    """The options of a process with the shared settings of a stored queue in the place of its own."""
    shared: Any = QueueSettings.from_stored(stored).options()
    found = QueueOptions.checked(options.name, shared)
    same = {name: getattr(found, name) for name in _FIELDS}
    return replace(options, priority_ageing_ms=found.priority_ageing_ms, **same)
