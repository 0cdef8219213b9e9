"""How many outcomes one call reports, so that no call keeps the server busy for long. Pure decisions, no I/O."""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.protocol import commands
from groupmq.worker.outcome import RunReport

HEADS, _HEAVY = 48, 240
"""Groups from which one call takes jobs, and the cost of the reports that it sends (`portion_of`): with these limits a
call takes the server one or two milliseconds."""
_BYTES_SHIFT = 12
"""A result of 4 KiB costs as much as a report."""


def portion_of(reports: Sequence[RunReport], *, kept: bool = False) -> int:
    """How many of the reports one call sends. Reports of one group that follow each other cost the server least.

    `kept`: completed jobs are kept, so each of them is stored once more.
    """
    if len(reports) <= 1:
        return len(reports)
    cost, of_kept = 0, 1 if kept else 0
    before: object = reports
    for at, report in enumerate(reports):
        outcome, group = report.outcome, report.job.group_id
        if outcome[0] == commands.COMPLETE:
            cost += (1 if group == before else 3) + of_kept
            if outcome[3]:
                cost += len(outcome[3]) >> _BYTES_SHIFT
        else:
            cost += 24
        if cost > _HEAVY and at > 0:
            return at
        before = group
    return len(reports)
