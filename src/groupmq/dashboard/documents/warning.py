"""What is wrong with a queue, judged from numbers that a page has anyway. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.dashboard.documents.held import WORDS
from groupmq.dashboard.documents.payload import cut
from groupmq.dashboard.documents.record import record
from groupmq.dashboard.filters import duration

if TYPE_CHECKING:
    from groupmq import HeldGroup, JobCounts, ServerInfo

HELD_FOR_LONG = 300.0
WAITS_FOR_LONG = 300.0
_LONGEST_NAME = 80


@record
class QueueWarning:
    level: str
    """warn or fail."""
    text: str
    hint: str
    link: str | None
    """Name of the page that shows more."""
    state: str | None = None
    """The state to which the link limits that page."""


def warnings(
    counts: JobCounts,
    *,
    workers: int,
    paused: bool,
    longest_held: HeldGroup | None,
    longest_held_unpaused: HeldGroup | None,
    blocked: int,
    breakers_open: int,
    oldest_wait: float | None,
    dropped: int,
    server: ServerInfo | None,
) -> list[QueueWarning]:
    """The worst first."""
    found: list[QueueWarning] = []

    def add(level: str, text: str, hint: str, link: str | None, state: str | None = None) -> None:
        found.append(QueueWarning(level=level, text=text, hint=hint, link=link, state=state))

    if counts.total and not workers:
        add("fail", "This queue has no worker.", "Its jobs wait until a worker starts.", "workers")
    if blocked:
        groups = "A failed job blocks its group." if blocked == 1 else f"Failed jobs block {blocked:,} groups."
        add(
            "warn",
            groups,
            "No job of a blocked group starts until its failed job is retried, skipped or removed.",
            "lanes",
            "blocked",
        )
    if breakers_open:
        groups = (
            "The breaker of a group is open."
            if breakers_open == 1
            else f"The breakers of {breakers_open:,} groups are open."
        )
        add("warn", groups, "Their jobs fail in a row. After a rest, one job is tried.", "lanes", "breaker")
    # Blocked groups have a warning of their own, above.
    for held in longest_held_unpaused, longest_held:
        if held is not None and held.wait > HELD_FOR_LONG and held.reason != "blocked":
            waits = f"The first job of {cut(held.group_id, _LONGEST_NAME)} has waited for"
            why = WORDS.get(held.reason, held.reason)
            add("warn", f"{waits} {duration(held.wait)}.", f"{why[:1].upper()}{why[1:]}.", "lanes")
            break
    if oldest_wait is not None and oldest_wait > WAITS_FOR_LONG and workers and not paused:
        add(
            "warn",
            "Jobs that could start have waited for a long time.",
            "More workers, or a higher concurrency, would help.",
            "workers",
        )
    if server is not None and server.maxmemory and server.eviction_policy != "noeviction":
        hint = f"The server may evict jobs (maxmemory-policy {server.eviction_policy}). Set it to noeviction."
        add("fail", "Jobs can be lost to eviction.", hint, "settings")
    if dropped:
        hint = "Dropped jobs cannot be seen or retried any more. Keep more with keep_failed."
        add("warn", "Retention drops failed jobs.", hint, "failures")
    return sorted(found, key=lambda one: one.level != "fail")
