"""Sentinel: finds the primary that the sentinels have agreed on. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from groupmq.client.connection.address import Ask, Node, PrimarySearch, Route
from groupmq.client.connection.failed_search import FailedSearch
from groupmq.client.connection.replies import decoded


class SentinelRoute(Route):
    """The primary that the sentinels name for one service."""

    checks_role = True  # for some seconds after a failover a sentinel may still name the old primary

    def __init__(self, sentinels: Sequence[Node], service: str) -> None:
        super().__init__()
        self._sentinels = list(sentinels)
        self._service = service

    def search(self) -> PrimarySearch:
        search = FailedSearch()
        for sentinel in tuple(self._sentinels):
            reply = yield Ask(sentinel, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service))
            if isinstance(reply, Exception):
                search.add(sentinel, reply)
            elif reply is None:
                search.add(sentinel, f"knows no service {self._service!r}")
            else:
                self._put(sentinel, 0)  # the first that answers is asked first from now on
                return decoded(reply[0]), int(reply[1])
        raise search.error("no sentinel names a primary", "sentinel")

    def lost(self, node: Node) -> None:
        if self.node == node:
            # The sentinel that named it may be cut off from the others, and would name it for ever.
            self._put(self._sentinels[0], len(self._sentinels) - 1)
        super().lost(node)

    def _put(self, sentinel: Node, at: int) -> None:
        others = [other for other in self._sentinels if other != sentinel]
        self._sentinels = [*others[:at], sentinel, *others[at:]]
