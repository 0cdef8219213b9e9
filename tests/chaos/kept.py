"""Verdicts of rounds, stored beside their histories, so that the rounds of many runs can be summed up in one record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.verdict import Verdict

FILE = "verdict.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A verdict, and the round that it belongs to."""

    verdict: Verdict
    seed: int
    seconds: float
    server: str
    """The server, followed by the other options of the command line."""
    versions: dict[str, str]


def save(folder: Path, kept: Kept) -> None:
    verdict = kept.verdict
    told = {
        "seed": kept.seed,
        "seconds": kept.seconds,
        "server": kept.server,
        "versions": kept.versions,
        "findings": list(verdict.findings),
        "counts": verdict.counts,
        "faults": verdict.faults,
        "notes": vars(verdict.notes),
    }
    (folder / FILE).write_text(json.dumps(told, indent=1), encoding="utf-8")


def has(folder: Path) -> bool:
    return (folder / FILE).exists()


def load(folder: Path) -> Kept:
    told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    notes = Notes(**told["notes"])
    notes.duplicates = Counter(notes.duplicates)
    verdict = Verdict(
        [Finding(*one) for one in told["findings"]], notes, _counter(told["counts"]), _counter(told["faults"])
    )
    return Kept(verdict, told["seed"], told["seconds"], told["server"], told["versions"])


def _counter(told: Mapping[str, Any]) -> Counter[str]:
    return Counter({name: int(n) for name, n in told.items()})


def all_of(folders: Iterable[Path]) -> list[Kept]:
    """The verdicts of all rounds in these `--keep` folders, ordered by server and seed."""
    found = [load(path.parent) for folder in folders for path in folder.glob(f"*/{FILE}")]
    return sorted(found, key=lambda kept: (kept.server, kept.seed))


def played(rounds: Iterable[Kept]) -> list[str]:
    """One line for each kind of server, with the versions and seeds of its rounds."""
    kinds: dict[tuple[str, str], list[Kept]] = {}
    for kept in rounds:
        versions = ", ".join(f"{name} {which}" for name, which in kept.versions.items())
        kinds.setdefault((kept.server, versions), []).append(kept)
    return [
        f"`--server {server}`: {versions}; {len(some)} rounds, {sum(one.seconds for one in some):.0f} s; "
        f"seeds {', '.join(str(one.seed) for one in some)}"
        for (server, versions), some in kinds.items()
    ]
