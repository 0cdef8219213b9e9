"""Failed jobs by kind: the same class of error and the same shape of message."""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.core.durations import instant_of
from groupmq.core.message_shape import shape_of
from groupmq.core.pages import FailureGroup, FailureGroups
from groupmq.protocol import commands

SPANS = 24


def failure_groups(found: Sequence[commands.Reason], now: int, total: int, limit: int) -> FailureGroups:
    """Group failures by class and shape, the most frequent first. `found`: the failures, newest first."""
    if not found:
        return FailureGroups([], 0, total, None, None)
    since = min(one.ended for one in found)
    kinds: dict[tuple[str, str], list[commands.Reason]] = {}
    for failure in found:
        kinds.setdefault((failure.error, shape_of(failure.reason, failure.error)), []).append(failure)
    groups = [_failure_group(error, shape, members, since, now) for (error, shape), members in kinds.items()]
    groups.sort(key=lambda group: (-group.count, -group.last.timestamp()))
    return FailureGroups(groups[:limit], len(found), total, instant_of(since), instant_of(now))


def _failure_group(error: str, shape: str, members: Sequence[commands.Reason], since: int, now: int) -> FailureGroup:
    series = [0] * SPANS
    for failure in members:
        series[min(SPANS - 1, (failure.ended - since) * SPANS // max(1, now - since))] += 1
    ends = [failure.ended for failure in members]
    last = max(members, key=lambda failure: failure.ended)
    return FailureGroup(
        error or None, shape, len(members), instant_of(min(ends)), instant_of(last.ended), last.id, series
    )
