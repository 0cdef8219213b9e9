"""When which fault strikes whom: pure, and the same for the same seed. No clock is read and nothing is done here.

Each kind of fault draws from a generator of its own, so that leaving kinds out (`--faults kill,freeze`) does not move
the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when it begins (seconds into the run), whom it strikes and for how long."""

    at: float
    kind: str
    target: str
    length: float
    amount: float = 0.0
    """What else the kind needs: the delay of a slow line, the share of clients to drop. Between 0 and 1."""

    def __str__(self) -> str:
        lasts = f" for {self.length:.2f} s" if self.length else ""
        return f"{self.at:8.2f} s  {self.kind} {self.target}{lasts}"


@dataclass(frozen=True, slots=True)
class Kind:
    """How often a kind of fault comes, whom it may strike and how long it lasts."""

    gap: float
    """Seconds between two, on average."""
    targets: str
    """Role of the targets: worker, process (any that does not keep the history), line (a network line), server."""
    shortest: float = 0.0
    longest: float = 0.0


LEASE = 3.0
"""Seconds; a freeze must outlast it."""

KINDS: Mapping[str, Kind] = {
    "kill": Kind(3, "process"),
    "freeze": Kind(8, "worker", LEASE + 0.5, LEASE + 2.5),
    "leave": Kind(14, "worker"),
    "cut": Kind(3, "line", 0.0, 1.5),
    "drop": Kind(2, "line"),
    "truncate": Kind(3, "line"),
    "delay": Kind(7, "line", 0.5, 2.5),
    "hang": Kind(9, "line", 1.0, LEASE + 1.5),
    "functions": Kind(6, "server"),
    "scripts": Kind(11, "server"),
    "clients": Kind(7, "server"),
    "stop": Kind(31, "server", 0.5, 2.0),
    "restart": Kind(19, "server", 0.05, 1.2),
    "memory": Kind(17, "server", 0.2, 1.2),
    "failover": Kind(4, "server"),
    "move": Kind(6, "server"),
}
"""Faults in time. `poison`, `skew`, `releases` and `operator` are no faults in time but ways to run; see `cast.py`."""

LINES = ("cut", "drop", "truncate", "delay", "hang")
"""Faults of the network."""
WAYS = ("poison", "skew", "releases", "operator")
ALL = (*KINDS, *WAYS)


def plan(seed: int, seconds: float, kinds: Collection[str], targets: Mapping[str, Sequence[str]]) -> list[Fault]:
    """All faults of a run, first to last. `targets`: names by role."""
    found: list[Fault] = []
    for name, kind in KINDS.items():
        possible = targets.get(kind.targets, ())
        if name not in kinds or not possible:
            continue
        random, at = Random(f"{seed}/{name}"), 0.0
        while (at := at + random.uniform(0.3, 1.7) * kind.gap) < seconds:
            target = possible[random.randrange(len(possible))]
            length = random.uniform(kind.shortest, kind.longest)
            found.append(Fault(round(at, 3), name, target, round(length, 3), round(random.random(), 3)))
    return sorted(found, key=lambda fault: (fault.at, fault.kind, fault.target))


def chosen(text: str | None) -> tuple[str, ...]:
    """The kinds of a comma-separated list; all of them without one. Raises ValueError for an unknown word."""
    if not text:
        return ALL
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in ALL]
    if unknown:
        raise ValueError(f"unknown faults {', '.join(unknown)}; known: {', '.join(ALL)}")
    return tuple(word for word in ALL if word in words)
