"""Runs all checks over one history and sums up their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.chaos.checker import blocking, costs, fairness, groups, jobs, keys, liveness, resting, runs, times
from tests.chaos.checker.finding import Finding, Notes
from tests.chaos.checker.parts import Line
from tests.chaos.checker.story import Story, assemble


@dataclass
class Verdict:
    """The findings and figures of one history."""

    findings: list[Finding]
    notes: Notes
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def broken(self, *rules: str) -> int:
        return sum(finding.rule in rules for finding in self.findings)


def judge(lines: Iterable[Line]) -> Verdict:
    story = assemble(lines)
    notes = Notes()
    findings = [
        *jobs.check(story),
        *runs.check(story, notes),
        *groups.check(story, notes),
        *times.check(story, notes),
        *blocking.check(story, notes),
        *resting.check(story, notes),
        *keys.check(story),
        *liveness.check(story, notes),
        *fairness.check(story, notes),
        *costs.check(story, notes),
    ]
    faults = Counter(fault.kind for fault in story.faults)
    faults["poison"] += len(story.of_kind("poison"))
    faults -= Counter(line["kind"] for line in story.of_kind("no fault"))
    return Verdict(findings, notes, _counts(story), +faults)


def _counts(story: Story) -> Counter[str]:
    ends = Counter(life.last_end.kind for life in story.lives if life.last_end is not None)
    return Counter(
        {
            "jobs": len(story.lives),
            "acknowledged": sum(spec.acked for spec in story.specs),
            "answered as duplicates": sum(spec.ack is not None and bool(spec.ack["dup"]) for spec in story.specs),
            "unknown": sum(spec.ack is None for spec in story.specs),
            "runs": len(story.runs),
            "operator actions": len(story.actions),
            "looks at all keys": len(story.of_kind("sample")),
            **ends,
        }
    )
