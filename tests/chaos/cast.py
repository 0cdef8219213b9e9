"""The queues and processes of a run: producers, workers, scheduler, recovery, operator and recorder. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from groupmq.core.partitions import Part, tag_of
from tests.chaos.schedule import LEASE

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class QueueRole:
    """A queue, with the properties that the checker must know."""

    name: str
    share: float
    """Share of the jobs that producers add here."""
    groups: int
    """Number of different groups; 0 = its jobs have no group."""
    options: dict[str, Any] = field(default_factory=dict)
    wide: int = 0
    """Number of its groups whose concurrency the operator may change."""

    def all_options(self) -> dict[str, Any]:
        """Its options with the defaults of a run; `working.options_of` turns them into options of `Queue`."""
        return {
            "job_timeout": LEASE,
            "max_attempts": 8,
            "keep_completed": 400,
            "keep_failed": 3000,
            **self.options,
        }


QUEUES = (
    QueueRole("orders", 0.55, 40, wide=4),
    QueueRole("loose", 0.12, 0),
    QueueRole("solo", 0.09, 6, {"exclusive": True}),
    QueueRole("window", 0.08, 6, {"ordering": {"kind": "event_time", "window": 0.2}}),
    QueueRole("late", 0.08, 6, {"ordering": {"kind": "arrival", "window": 0.1, "max_wait": 0.3}}),
    QueueRole("metered", 0.08, 8, {"rate_limit": {"count": 25, "per": 0.5}}),
    QueueRole("strict", 0.08, 8, {"on_failed": "hold"}),
    QueueRole("shaky", 0.05, 6, {"breaker": {"failures": 3, "cooldown": 0.4}}),
    QueueRole("bulk", 0.07, 5),
    QueueRole("spread", 0.12, 15, {"partitions": 3}, wide=2),
    QueueRole("ticks", 0.0, 4, {"fairness": "round-robin"}),
)
QUEUE_OF = {role.name: role for role in QUEUES}
HOSTILE = ("x:active", "{}", "}{", "line\nbreak", "*?[", "g:g1", "löß", "meta")
"""Every queue has groups with such names: no part of a name may end up in another key."""


def parts_of(queue: str) -> int:
    """The number of partitions of a queue."""
    n: int = QUEUE_OF[queue].options.get("partitions", 1)
    return n


def tags_of(queue: str) -> list[str]:
    """The hash tags of all keys of a queue: its own, and those of its partitions."""
    n = parts_of(queue)
    return [queue, *(tag_of(queue, Part(i, n)) for i in range(n if n > 1 else 0))]


def groups_of(role: QueueRole) -> list[str]:
    """The groups that producers use."""
    if not role.groups:
        return []
    usual = [f"{role.name}-{n}" for n in range(role.groups - min(role.groups // 3, len(HOSTILE)))]
    return usual + list(HOSTILE[: role.groups - len(usual)])


def wide_groups(role: QueueRole) -> list[str]:
    return groups_of(role)[: role.wide]


@dataclass(frozen=True, slots=True)
class Actor:
    """A process. `wire`: it reaches the server over a network wire of its own, which can be cut."""

    name: str
    role: str
    settings: dict[str, Any] = field(default_factory=dict)
    wire: bool = False


def _worker(
    name: str, *works: tuple[str, dict[str, Any]], wire: bool = False, more: dict[str, Any] | None = None
) -> Actor:
    told = [{"queue": queue, **work} for queue, work in works]
    return Actor(name, "worker", {"works": told, **(more or {})}, wire)


def actors(ways: Collection[str], *, mutant: str | None = None) -> list[Actor]:
    """All processes of a run. `ways`: which of poison, skew, releases and operator to include."""
    other = {"release": "other"} if "releases" in ways else {}
    ahead = {"skew": HOUR} if "skew" in ways else {}
    behind = {"skew": -HOUR} if "skew" in ways else {}
    poison = {"poison": "poison" in ways}
    cast = [
        _worker("one", ("orders", {"concurrency": 1}), ("ticks", {"concurrency": 2}), wire=True),
        _worker(
            "few",
            ("orders", {"concurrency": 8}),
            ("late", {"concurrency": 4}),
            ("strict", {"concurrency": 4}),
            wire=True,
            more=other,
        ),
        _worker(
            "many",
            ("orders", {"concurrency": 50, "prefetch": 0}),
            ("loose", {"concurrency": 10}),
            ("spread", {"concurrency": 6}),
            more=ahead,
        ),
        _worker(
            "threads",
            ("orders", {"concurrency": 4, "handler": "thread"}),
            ("metered", {"concurrency": 6, "handler": "thread"}),
            ("window", {"concurrency": 3}),
            ("strict", {"concurrency": 2, "handler": "thread"}),
            ("spread", {"concurrency": 3, "handler": "thread"}),
            wire=True,
        ),
        _worker(
            "children",
            ("orders", {"concurrency": 2, "handler": "process"}),
            ("ticks", {"concurrency": 1, "maintenance": False}),
            ("bulk", {"concurrency": 3, "handler": "batch", "batch": 8, "batch_wait": 0.05}),
        ),
        _worker(
            "sole-a",
            ("solo", {"concurrency": 4, "batch_size": 6}),
            ("loose", {"concurrency": 3, "prefetch": 0}),
            ("bulk", {"concurrency": 1, "handler": "batch", "batch": 30}),
            wire=True,
            more=behind,
        ),
        _worker(
            "sole-b",
            ("solo", {"concurrency": 2}),
            ("metered", {"concurrency": 10}),
            ("late", {"concurrency": 2, "prefetch": 0}),
            ("shaky", {"concurrency": 4}),
            more=other,
        ),
        _worker(
            "plain",
            ("orders", {"concurrency": 10, "maintenance": False}),
            ("window", {"concurrency": 5, "maintenance": False}),
            ("strict", {"concurrency": 1, "maintenance": False}),
            ("shaky", {"concurrency": 2}),
            ("spread", {"concurrency": 4, "prefetch": 0, "maintenance": False}),
            wire=True,
        ),
        Actor("producer-a", "producer", {"seed": 1, "style": "async", **poison}, wire=True),
        Actor("producer-b", "producer", {"seed": 2, "style": "blocking", **poison, **ahead}),
        Actor("producer-c", "producer", {"seed": 3, "style": "async", **other}),
        Actor("scheduler", "duty", {"duty": "scheduler", **behind}, wire=True),
        Actor("recovery", "duty", {"duty": "recovery", **other}),
    ]
    if "operator" in ways:
        cast.append(Actor("operator", "operator", {"seed": 9}))
    cast.append(Actor("recorder", "recorder"))
    if mutant is not None:
        cast = [Actor(a.name, a.role, {**a.settings, "release": mutant}, a.wire) for a in cast]
    return cast


def targets(cast: Collection[Actor]) -> dict[str, list[str]]:
    """The processes that faults may strike, by role. The recorder and the operator are exempt: both are witnesses."""
    return {
        "worker": [a.name for a in cast if a.role == "worker"],
        "process": [a.name for a in cast if a.role in ("worker", "producer", "duty")],
        "wire": [a.name for a in cast if a.wire],
        "server": ["server"],
    }
