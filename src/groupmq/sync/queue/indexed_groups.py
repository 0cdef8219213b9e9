# Generated from src/groupmq/client/queue/indexed_groups.py by `make sync`; do not edit.
"""The groups that have an index by time: those that a failed job blocks, and those whose breaker is open."""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.client.answers.groups import group_info
from groupmq.core.views import GroupInfo
from groupmq.protocol import commands
from groupmq.protocol.commands import Index
from groupmq.sync.queue.caller import Caller

LOOKS_PER_CALL = 60
LISTED_PER_CALL = 1_000


def groups_of(call: Caller, index: Index, limit: int, offset: int = 0) -> list[GroupInfo]:
    """The groups of an index, the one that has been in it longest first."""
    listed = call(commands.list_since(index, offset, limit))
    return look_at_groups(call, index, [group_id for group_id, _ in listed.found])


def look_at_groups(call: Caller, index: Index, ids: Sequence[str]) -> list[GroupInfo]:
    found: list[GroupInfo] = []
    for at in range(0, len(ids), LOOKS_PER_CALL):
        page = ids[at : at + LOOKS_PER_CALL]
        now, looks = call(commands.look_groups(page))
        # A group that has left the index between the two calls is left out.
        found += [
            group_info(group_id, look, [], now, complete=False)
            for group_id, look in zip(page, looks, strict=True)
            if look.since_of(index)
        ]
    return found


def ids_since(call: Caller, index: Index, limit: int) -> list[tuple[str, int]]:
    """The groups that have been in the index longest, at most `limit`, each with the time since which it is there."""
    found: list[tuple[str, int]] = []
    while len(found) < limit:
        page = call(commands.list_since(index, len(found), min(limit - len(found), LISTED_PER_CALL))).found
        if not page:
            break
        found += page
    return found
