"""Sums up a run of several rounds, as text for the terminal and as a table for docs/reliability.md."""

from __future__ import annotations

import platform
import statistics
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version

from tests.chaos.checker.finding import RULES, Finding, Notes
from tests.chaos.checker.verdict import Verdict

SHOWN = 25
ZEROES = {
    "lost": ("S1",),
    "phantom or changed": ("S2",),
    "out of order": ("S7", "S8"),
    "overlaps": ("S4",),
    "stale outcomes accepted": ("S5", "S6"),
    "unexplained second runs": ("S3",),
    "early, after a ttl, above a rate": ("S9",),
    "wrong attempts": ("S10",),
    "ids used twice": ("S11",),
    "ticks missed or doubled": ("S12",),
    "starts after removal or pause": ("S13",),
    "starts behind a blocking job": ("S19",),
    "retention broken": ("S14",),
    "wrong counts or states": ("S15", "S16"),
    "leaked or foreign keys": ("S17", "S18"),
    "not taken back, drained or closed in time": ("L1", "L2", "L3", "L5"),
    "groups passed over": ("L4",),
    "polling, reconnecting too often or all at once": ("L6",),
    "calls over 5 ms of the server's own time": ("L7",),
    "gaps in the history": ("H",),
}


@dataclass
class Total:
    """The sum of all rounds."""

    seed: int
    server: str
    versions: dict[str, str]
    rounds: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    notes: Notes = field(default_factory=Notes)

    def add(self, verdict: Verdict, seconds: float) -> None:
        self.rounds += 1
        self.seconds += seconds
        self.findings += verdict.findings
        self.counts += verdict.counts
        self.faults += verdict.faults
        new, all_ = verdict.notes, self.notes
        all_.duplicates += new.duplicates
        all_.zombies += new.zombies
        all_.compared += new.compared
        all_.recoveries += new.recoveries
        all_.returns += new.returns
        all_.longest_ready = max(all_.longest_ready, new.longest_ready)
        all_.slow_calls += new.slow_calls
        all_.ticks += new.ticks
        all_.blocks += new.blocks
        all_.rests += new.rests
        all_.refused += new.refused
        all_.misinformed += new.misinformed

    def broken(self, rules: tuple[str, ...]) -> int:
        return sum(finding.rule in rules for finding in self.findings)

    @property
    def command(self) -> str:
        minutes = f"{self.seconds / 60:g}"
        return f'make chaos ARGS="--minutes {minutes} --seed {self.seed} --server {self.server}"'


def versions_here(server: dict[str, str]) -> dict[str, str]:
    names = {"groupmq": version("groupmq"), "redis-py": version("redis"), "Python": platform.python_version()}
    return server | names | {"kernel": platform.release().split("-")[0]}


def rows(total: Total) -> list[tuple[str, str]]:
    """The figures, each with a label."""
    counts, notes = total.counts, total.notes
    ends = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("completed", "failed", "removed"))
    faults = ", ".join(f"{kind} {n}" for kind, n in total.faults.most_common())
    duplicates = ", ".join(f"{cause} {n}" for cause, n in notes.duplicates.most_common()) or "none"
    found = [
        ("time under faults", f"{total.seconds:.0f} s in {total.rounds} rounds"),
        ("jobs", f"{counts['jobs']:,} ({ends})"),
        ("adds", f"{counts['acknowledged']:,} acknowledged, {counts['unknown']:,} with an unknown outcome"),
        ("adds of a taken id", f"{counts['answered as duplicates']:,}"),
        ("runs of handlers", f"{counts['runs']:,}, the order of {notes.compared:,} checked"),
        ("operator actions", f"{counts['operator actions']:,}"),
        ("ticks of repeating jobs", f"{notes.ticks:,}"),
        ("groups that a failed job blocked", f"{notes.blocks:,}"),
        ("rests of groups whose breaker was open", f"{notes.rests:,}"),
        ("inspections of all keys", f"{counts['looks at all keys']:,}"),
        ("faults", f"{total.faults.total():,}: {faults}"),
        *((name, str(total.broken(rules))) for name, rules in ZEROES.items()),
        ("second runs, by cause", f"{notes.duplicates.total():,}: {duplicates}"),
        ("calls over 5 ms, including waits for a processor", f"{notes.slow_calls:,}"),
        ("longest wait of a ready group", f"{notes.longest_ready:.2f} s"),
        ("handlers that ran on after their lease", f"{notes.zombies:,}"),
        ("outcomes refused and reported as lost leases", f"{notes.refused:,}"),
        ("outcomes accepted but reported as lost leases", f"{notes.misinformed:,}"),
    ]
    for name, seconds in (
        ("a dead worker's job is taken back after", notes.recoveries),
        ("first start of a worker after the server's return", notes.returns),
    ):
        if seconds:
            found.append((name, f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s"))
    return found


def text(total: Total) -> str:
    """The text for the terminal: the figures, then every broken promise by its rule."""
    width = max(len(name) for name, _ in rows(total))
    page = [f"  {name:<{width}}  {figure}" for name, figure in rows(total)]
    shown: Counter[str] = Counter()
    for finding in total.findings:
        shown[finding.rule] += 1
        if shown[finding.rule] <= SHOWN:
            page.append(f"  BROKEN {finding}")
    for rule, n in shown.items():
        if n > SHOWN:
            page.append(f"  ... and {n - SHOWN} more of {rule} ({RULES[rule]})")
    ends = "every promise held" if not total.findings else f"{len(total.findings)} broken promises"
    page.append(f"{ends}; repeat with {total.command}" if total.server else ends)
    return "\n".join(page)


def table(total: Total) -> str:
    """The table for docs/reliability.md."""
    told = ", ".join(f"{name} {which}" for name, which in total.versions.items())
    return "\n".join([f"Seed {total.seed}; {told}; `{total.command}`.", "", *rows_of(total)]) + "\n"


def rows_of(total: Total) -> list[str]:
    """The figures as the lines of a table."""
    return ["| | |", "|---|---|", *(f"| {name} | {figure} |" for name, figure in rows(total))]
