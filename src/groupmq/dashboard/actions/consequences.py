"""Sentences about what a change of settings means for the waiting jobs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupmq.dashboard.actions.action import jobs_of
from groupmq.dashboard.documents.starting import rate_words
from groupmq.dashboard.filters import duration

if TYPE_CHECKING:
    from groupmq import JobCounts, QueueSettings, RateLimit

_CHANGE_THE_ORDER = ("ordering", "fairness", "priority_ageing")


def effects(after: QueueSettings, changed: Sequence[str], counts: JobCounts) -> list[str]:
    """Sentences about the limits and about what stops a group; for other settings the new values say enough."""
    waiting, n = jobs_of(counts.waiting, "waiting"), after.group_concurrency
    groups = "1 group" if counts.unique_groups == 1 else f"{counts.unique_groups:,} groups"
    sentences = {
        "rate_limit": _paced(waiting, after.rate_limit, counts.waiting),
        "group_rate_limit": (
            f"No group is limited any more, unless it has a limit of its own; {waiting} in {groups}."
            if after.group_rate_limit is None
            else f"Each group starts at most {rate_words(after.group_rate_limit)}, unless it has a limit of its own; "
            f"{waiting} in {groups}."
        ),
        "group_concurrency": (
            f"One job of a group runs at a time; {waiting} in {groups}. Those that run now finish."
            if n == 1
            else f"Up to {n} jobs of a group run at once; {waiting} in {groups}."
        ),
        "exclusive": (
            "One worker at a time takes jobs; the others wait for their turn."
            if after.exclusive
            else "All workers take jobs at the same time."
        ),
        "on_failed": (
            "A job that fails for good from now on blocks its group until somebody resolves it."
            if after.on_failed == "hold"
            else "A job that fails for good no longer blocks its group. Groups that are blocked now stay blocked."
        ),
        "events": (
            "Events are written again."
            if after.events
            else "The event log is deleted: listeners, and this dashboard, no longer see what happens."
        ),
    }
    return [sentences[name] for name in changed if name in sentences]


def _paced(waiting: str, limit: RateLimit | None, n: int) -> str:
    if limit is None:
        return f"{waiting} may start as fast as workers take them."
    per = limit.per.total_seconds() if hasattr(limit.per, "total_seconds") else limit.per
    sentence = f"The whole queue starts at most {rate_words(limit)}"
    if n <= limit.count:
        return f"{sentence}; {waiting}."
    return f"{sentence}: {waiting} take at least {duration((n - 1) // limit.count * per)}."


def order(after: QueueSettings, changed: Sequence[str]) -> str:
    if any(name in changed for name in _CHANGE_THE_ORDER):
        return "Jobs that wait already are put into the new order."
    sentences = []
    if "group_concurrency" in changed and after.group_concurrency > 1:
        sentences.append("Jobs of a group still start in order, but a later one may finish before an earlier one.")
    if "on_retry" in changed and after.on_retry == "yield":
        sentences.append("While a job waits for its next attempt, jobs of its group behind it run first.")
    if "on_retry" in changed and after.on_retry == "hold":
        sentences.append("No job overtakes one of its group that waits for its next attempt.")
    return " ".join(sentences) or "The order of the waiting jobs stays as it is."
