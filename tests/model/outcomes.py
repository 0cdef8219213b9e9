"""Reports of the model as outcomes of the protocol."""

from __future__ import annotations

from groupmq.protocol import commands
from tests.model.parts import Report


def outcome_of(report: Report) -> commands.Outcome:
    if report.kind == "complete":
        return commands.completed(report.id, report.fence, report.result)
    if report.kind == "retry":
        how = report.delay, report.yields, report.reason, report.stack, report.error
        return commands.retried(report.id, report.fence, *how)
    if report.kind == "fail":
        return commands.failed(report.id, report.fence, report.reason, report.stack, report.error)
    if report.kind == "begin":
        return commands.begun(report.id, report.fence)
    if report.kind == "abandon":
        return commands.abandoned(report.id, report.fence, report.reason, report.stack, report.error)
    if report.kind == "ended":
        return commands.ended(report.id, report.fence)
    if report.kind == "snooze":
        return commands.snoozed(report.id, report.fence, report.delay, report.yields)
    if report.kind == "limited":
        return commands.rate_limited(report.id, report.fence, report.delay)
    return commands.released(report.id, report.fence, begun=report.begun)
