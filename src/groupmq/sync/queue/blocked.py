# Generated from src/groupmq/client/queue/blocked.py by `make sync`; do not edit.
"""Groups that a failed job blocks (`on_failed="hold"`), as users see them."""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.client.answers.groups import group_info
from groupmq.core.views import GroupInfo
from groupmq.protocol import commands
from groupmq.sync.queue.caller import Caller

LOOKS_PER_CALL = 100
LISTED_PER_CALL = 1_000


def blocked_groups(call: Caller, limit: int, offset: int = 0) -> list[GroupInfo]:
    """The one that has been blocked longest first."""
    listed = call(commands.list_blocked(offset, limit))
    return look_at_blocked(call, [group_id for group_id, _ in listed.found])


def look_at_blocked(call: Caller, ids: Sequence[str]) -> list[GroupInfo]:
    found: list[GroupInfo] = []
    for at in range(0, len(ids), LOOKS_PER_CALL):
        page = ids[at : at + LOOKS_PER_CALL]
        now, looks = call(commands.look_groups(page))
        # A group that was unblocked between the two calls is left out.
        found += [
            group_info(group_id, look, [], now, complete=False)
            for group_id, look in zip(page, looks, strict=True)
            if look.blocked
        ]
    return found


def blocked_since(call: Caller, limit: int) -> list[tuple[str, int]]:
    """The groups that have been blocked longest, at most `limit`, and since when each is."""
    found: list[tuple[str, int]] = []
    while len(found) < limit:
        page = call(commands.list_blocked(len(found), min(limit - len(found), LISTED_PER_CALL))).found
        if not page:
            break
        found += page
    return found
