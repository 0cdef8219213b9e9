"""Groups as users see them: what holds each of them, and which come first in an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from groupmq.client.answers.measures import LATEST_MS
from groupmq.core.durations import instant_of
from groupmq.core.limits import RateLimit
from groupmq.core.views import GroupInfo, HeldGroup
from groupmq.protocol.commands import GroupLook, ListedRun, ScannedGroup


def group_info(group_id: str, look: GroupLook, runs: Sequence[ListedRun], now: int, *, complete: bool) -> GroupInfo:
    """Describe a group. `runs`: those of this group, in the order in which they began; `complete`: whether these are
    all."""
    held = None
    if look.why:
        reason, job_id, attempt = look.why, look.holder, look.attempts
        if reason == "running" and runs:
            job_id, attempt = runs[0].id, runs[0].attempt
        elif reason == "running" and complete:
            reason = "stopping"  # its slots are taken, but by no job that has a lease
        held = HeldGroup(
            group_id,
            reason,
            job_id or None,
            attempt or None,
            instant_of(look.since or now),
            instant_of(look.until) if 0 < look.until < LATEST_MS else None,
            look.waiting,
            max(0, now - (look.since or now)) / 1000,
            look.failures or None,
        )
    rate = RateLimit(look.rate[0], look.rate[1] / 1000) if look.rate else None
    return GroupInfo(
        group_id,
        look.state,
        look.waiting,
        look.running,
        look.delayed,
        look.limit,
        look.paused == 1,
        None if look.held_ms < 0 else look.held_ms / 1000,
        held,
        rate,
        look.blocked_by or None,
        instant_of(look.blocked) if look.blocked else None,
        look.blockers,
        look.failures,
        instant_of(look.opened_since) if look.opened_since else None,
        instant_of(look.opened) if look.opened else None,
    )


def first_groups(groups: Iterable[ScannedGroup], sort: str, limit: int) -> list[str]:
    """The groups that can be among the first `limit`.

    A head has waited since its arrival or since its order. Its record says since which, and that is not read yet, so
    the first groups by either are returned.
    """
    found = list(groups)
    if sort == "name":
        return [group.id for group in sorted(found, key=lambda group: group.id)[:limit]]
    if sort == "deepest":
        return [group.id for group in sorted(found, key=lambda group: (-group.waiting, group.id))[:limit]]
    if sort == "busiest":
        found.sort(key=lambda group: (-group.running, -group.waiting, group.id))
        return [group.id for group in found[:limit]]
    chosen: dict[str, None] = {}
    for by in ("arrival", "order"):
        found.sort(key=lambda group: (_rank(group, sort), getattr(group, by), group.id))
        chosen.update((group.id, None) for group in found[:limit])
    return list(chosen)


def _rank(group: ScannedGroup, sort: str) -> int:
    """The rank of a group: held groups come before others, and groups with a waiting job before those without."""
    if not group.has_head:
        return 2
    return 0 if sort == "oldest" or group.state in ("busy", "parked", "paused", "blocked") else 1


def order_of(info: GroupInfo, look: GroupLook, sort: str) -> tuple[Any, ...]:
    if sort == "name":
        return (info.id,)
    if sort == "blocked":
        return look.blocked, info.id
    if sort == "opened":
        return look.opened_since, info.id
    if sort == "deepest":
        return -info.waiting, info.id
    if sort == "busiest":
        return -info.active, -info.waiting, info.id
    held = sort == "oldest" or info.held is not None
    return (2 if not look.since else 0 if held else 1), look.since, info.id
