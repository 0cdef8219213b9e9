"""How many outcomes one call reports, so that no call keeps the server busy for long. Pure decisions, no I/O."""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.worker.running.outcome import RunReport

HEADS, _HEAVY = 48, 400
"""Groups from which one call takes jobs, and the cost of the reports that it sends (`portion_of`): with these limits a
call takes the server one or two milliseconds."""
_BYTES_SHIFT = 11
"""A result of 2 KiB costs as much as a report."""


def portion_of(reports: Sequence[RunReport], *, kept: bool = False) -> int:
    """How many of the reports one call sends. Reports of one group that follow each other cost the server least.

    `kept`: completed jobs are kept, so each of them is stored once more.
    """
    if len(reports) <= 1:
        return len(reports)
    # Local names, and a single unpacking: this runs for each report.
    cost, at, heavy = 0, 0, _HEAVY
    same, other = (4, 7) if kept else (1, 5)
    before: object = reports
    for job, _, kind, _, result, _, _ in reports:
        group = job.group_id
        if kind == "completed":
            cost += same if group == before else other
            if result:
                cost += len(result) >> _BYTES_SHIFT
        else:
            cost += 40
        if cost > heavy and at:
            return at
        before = group
        at += 1
    return at
