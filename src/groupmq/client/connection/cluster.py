"""Cluster: which node owns which slot. One queue is one slot, so its connections follow that slot. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from redis.crc import key_slot

from groupmq.client.connection.address import Ask, Node, PrimarySearch, Route
from groupmq.client.connection.failed_search import FailedSearch
from groupmq.client.connection.faults import is_away, is_cluster_down
from groupmq.client.connection.replies import decoded

SLOTS = 16384
_REDIRECTION = re.compile(r"(?:(MOVED|ASK) )?(\d+) (\S*):(\d+)")
_UNKNOWN_HOSTS = ("", "?")


class Redirection(NamedTuple):
    """The node to which another node redirects us for a slot."""

    slot: int
    node: Node
    for_good: bool
    """True for MOVED: the node owns the slot. False for ASK: it has this key already, and is going to own the slot."""


def redirection(error: BaseException, asked: Node | None) -> Redirection | None:
    """The redirection in a MOVED or ASK error; None for any other error. Without a host, that of `asked` is meant."""
    names = [cls.__name__ for cls in type(error).__mro__]
    found = _REDIRECTION.match(str(error))
    if found is None:
        return None
    kind = found[1] or ("MOVED" if "MovedError" in names else "ASK" if "AskError" in names else None)
    if kind is None:
        return None
    host = found[3].strip("[]")
    if host in _UNKNOWN_HOSTS:
        if asked is None:
            return None
        host = asked[0]
    return Redirection(int(found[2]), (host, int(found[4])), kind == "MOVED")


def slot_of(key: str) -> int:
    return int(key_slot(key.encode()))


class SlotMap:
    """What this process knows about a cluster: the owner of each slot, and which nodes to ask."""

    def __init__(self, seeds: Sequence[Node]) -> None:
        self._seeds = list(seeds)
        self._order = list(seeds)
        """The nodes to ask, in this order."""
        self._owners: list[Node | None] = [None] * SLOTS

    def owner(self, slot: int) -> Node | None:
        return self._owners[slot]

    def primaries(self) -> list[Node]:
        return sorted({node for node in self._owners if node is not None})

    def patch(self, slot: int, node: Node) -> None:
        """Record the owner of a slot, as a node has named it."""
        self._owners[slot] = node
        if node not in self._order:
            self._order.append(node)

    def lost(self, node: Node) -> None:
        """Forget the slots of a node that cannot be reached, or does not own them as we thought, and ask it last."""
        self._owners = [None if owner == node else owner for owner in self._owners]
        self._order = [*(other for other in self._order if other != node), node]

    def search(self, slot: int) -> PrimarySearch:
        """Find the owner of a slot, and learn the owners of the other slots on the way."""
        search = FailedSearch()
        for node in tuple(dict.fromkeys((*self._order, *self._seeds))):
            reply = yield Ask(node, ("CLUSTER", "SLOTS"))
            if isinstance(reply, Exception):
                search.add(node, reply)
                continue
            self._learn(reply, node)
            owner = self._owners[slot]
            if owner is not None:
                # The next search asks another node: this one may be cut off, and would give the same answer for ever.
                self._order = [*(other for other in self._order if other != node), node]
                return owner
            search.add(node, f"nobody owns slot {slot}")
        raise search.error("no node of the cluster says where the queue is", "cluster")

    def _learn(self, reply: Any, asked: Node) -> None:
        owners: list[Node | None] = [None] * SLOTS
        nodes: dict[Node, None] = {}
        for first, last, *servers in reply:
            addresses = [_address(server, asked) for server in servers]
            nodes |= dict.fromkeys(addresses)
            owners[first : last + 1] = [addresses[0]] * (last + 1 - first)
        self._owners = owners
        known = {node: None for node in self._order if node in nodes}
        self._order = list(known | nodes) or list(self._seeds)


def _address(server: Any, asked: Node) -> Node:
    """A node as CLUSTER SLOTS lists it; without a host, that of the asked node is meant."""
    host = "" if server[0] is None else decoded(server[0])
    return (asked[0] if host in _UNKNOWN_HOSTS else host), int(server[1])


class SlotRoute(Route):
    """The primary that owns one slot of a cluster."""

    def __init__(self, slots: SlotMap, slot: int) -> None:
        super().__init__()
        self.slots = slots
        self.slot = slot

    def search(self) -> PrimarySearch:
        return self.slots.search(self.slot)

    def lost(self, node: Node) -> None:
        super().lost(node)
        self.slots.lost(node)

    def observe(self, error: BaseException, since: int) -> bool:
        redirect = redirection(error, self.node or self._last)
        if redirect is None or not redirect.for_good:
            if since == self.moves and self.node is not None and (is_away(error) or is_cluster_down(error)):
                self.slots.lost(self.node)
                if is_cluster_down(error):  # this node may be cut off, and its replica promoted
                    self.node = None
                    self._move()
            return super().observe(error, since)
        if redirect.slot != self.slot:
            return False
        if redirect.node != self.node:
            self.slots.patch(redirect.slot, redirect.node)
            self.node = self._last = redirect.node
            self._move()
        return True


class NodeRoute(Route):
    """One node of a cluster, for commands about keys of other slots."""

    def __init__(self, slots: SlotMap, node: Node) -> None:
        super().__init__()
        self.slots = slots
        self._fixed = self.node = node

    def search(self) -> PrimarySearch:
        yield from ()
        return self._fixed

    def lost(self, node: Node) -> None:
        super().lost(node)
        self.slots.lost(node)

    def observe(self, error: BaseException, since: int) -> bool:
        redirect = redirection(error, self._fixed)
        if redirect is not None and redirect.for_good:
            self.slots.patch(redirect.slot, redirect.node)
        elif is_away(error):
            self.slots.lost(self._fixed)
        return super().observe(error, since)
