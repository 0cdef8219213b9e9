"""The schedule of faults: which fault strikes which target, and when. Pure: the same seed gives the same schedule.

Each kind of fault has its own random generator, so that leaving kinds out (`--faults kill,freeze`) does not move the
others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when it begins (seconds into the run), its target and how long it lasts."""

    at: float
    kind: str
    target: str
    length: float
    amount: float = 0.0
    """A parameter of some kinds, between 0 and 1: the delay of a slow wire, the share of clients to drop."""

    def __str__(self) -> str:
        lasts = f" for {self.length:.2f} s" if self.length else ""
        return f"{self.at:8.2f} s  {self.kind} {self.target}{lasts}"


@dataclass(frozen=True, slots=True)
class Kind:
    """How often a kind of fault occurs, its possible targets and how long it lasts."""

    gap: float
    """Mean seconds between two faults of this kind."""
    targets: str
    """Role of the targets: worker, process (any but the recorder and the operator), wire (of the network), server."""
    shortest: float = 0.0
    longest: float = 0.0


LEASE = 3.0
"""Seconds; a freeze must outlast it."""

KINDS: Mapping[str, Kind] = {
    "kill": Kind(3, "process"),
    "freeze": Kind(8, "worker", LEASE + 0.5, LEASE + 2.5),
    "leave": Kind(14, "worker"),
    "cut": Kind(3, "wire", 0.0, 1.5),
    "drop": Kind(2, "wire"),
    "truncate": Kind(3, "wire"),
    "delay": Kind(7, "wire", 0.5, 2.5),
    "hang": Kind(9, "wire", 1.0, LEASE + 1.5),
    "functions": Kind(6, "server"),
    "scripts": Kind(11, "server"),
    "clients": Kind(7, "server"),
    "stop": Kind(31, "server", 0.5, 2.0),
    "restart": Kind(19, "server", 0.05, 1.2),
    "memory": Kind(17, "server", 0.2, 1.2),
    "failover": Kind(4, "server"),
    "move": Kind(6, "server"),
}
"""Scheduled faults. `poison`, `skew`, `releases` and `operator` are not scheduled, but ways to run; see `cast.py`."""

WIRES = ("cut", "drop", "truncate", "delay", "hang")
"""Faults of the network."""
WAYS = ("poison", "skew", "releases", "operator")
ALL = (*KINDS, *WAYS)


def plan(
    seed: int,
    seconds: float,
    kinds: Collection[str],
    targets: Mapping[str, Sequence[str]],
    gaps: Mapping[str, float] | None = None,
) -> list[Fault]:
    """All faults of a run in order of time. `targets`: names by role. `gaps`: mean seconds between two of a kind."""
    found: list[Fault] = []
    gaps = gaps or {}
    for name, kind in KINDS.items():
        possible = targets.get(kind.targets, ())
        if name not in kinds or not possible:
            continue
        random, at, gap = Random(f"{seed}/{name}"), 0.0, gaps.get(name, kind.gap)
        while (at := at + random.uniform(0.3, 1.7) * gap) < seconds:
            target = possible[random.randrange(len(possible))]
            length = random.uniform(kind.shortest, kind.longest)
            found.append(Fault(round(at, 3), name, target, round(length, 3), round(random.random(), 3)))
    return sorted(found, key=lambda fault: (fault.at, fault.kind, fault.target))


def chosen(text: str | None) -> tuple[str, ...]:
    """The kinds of faults in a comma-separated list; all if it is empty. Raises ValueError for an unknown one."""
    if not text:
        return ALL
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in ALL]
    if unknown:
        raise ValueError(f"unknown faults {', '.join(unknown)}; known: {', '.join(ALL)}")
    return tuple(word for word in ALL if word in words)


def gaps_of(text: str | None) -> dict[str, float]:
    """Parse mean seconds between faults, such as "failover=1.5,move=3". Raises ValueError for anything else."""
    found = {}
    for word in (text or "").split(","):
        if not word.strip():
            continue
        name, _, seconds = word.partition("=")
        if name.strip() not in KINDS or not float(seconds or 0) > 0:
            raise ValueError(f"{word.strip()!r} is not a fault with seconds, such as failover=1.5")
        found[name.strip()] = float(seconds)
    return found
