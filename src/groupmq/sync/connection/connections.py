# Generated from src/groupmq/client/connection/connections.py by `make sync`; do not edit.
"""The connection of a queue, for calls."""

from __future__ import annotations

from typing import Any

from groupmq.client.connection.address import Node
from groupmq.client.connection.cluster import SlotMap, redirection, slot_of
from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.known import Known, KnownPart
from groupmq.client.connection.session import Session
from groupmq.core.loops import PerProcess
from groupmq.core.queue_options import QueueOptions
from groupmq.sync.connection.link import MOST_CALLS, Link
from groupmq.sync.connection.runtime import ConnectionRuntime

_MOST_SHARED_CALLS = 8
"""Calls that all partitions of a queue on one server have under way at a time. Their timers fire together, and without
a bound each of these calls would open a connection that stays."""
_MOST_REDIRECTIONS = 3


class BlockingConnection(ConnectionRuntime):
    """The connection of one queue object, wherever it is used: each event loop and process has its own links."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: QueueOptions,
        *,
        session: Session | None = None,
        known: Known | KnownPart | None = None,
    ) -> None:
        """`session`: that of another connection. `known`: what another connection to the same queue or partition knows.

        With a client of the user's, `endpoint.beside()` makes connections of our own.
        """
        self._require_kind(endpoint)
        super().__init__(Session(options, endpoint.where, known) if session is None else session, endpoint.patience)
        self.endpoint = endpoint = endpoint.at(self.session.keys.meta)
        self._own = endpoint.client is None or endpoint.own
        self._links = PerProcess(self._make_link)
        self._borrows = False
        self._most_calls = MOST_CALLS
        self._waiting = PerProcess(self._make_waiting_link)
        """Links whose calls wait for replicas or a disk; other calls must not queue behind them."""
        self._others: PerProcess[dict[Node, Link]] = PerProcess(dict)
        """Links to other nodes of a cluster, for keys that are not of this queue."""

    def belongs_to(self, whole: BlockingConnection) -> None:
        """These are calls to a partition of that queue: they are as patient, and the queue confirms its settings."""
        self.patience = whole.patience
        self.session.confirm_with(whole.open)

    def share_links_of(self, other: BlockingConnection) -> None:
        """Use the connections of another object to the same server; that object closes them. For partitions."""
        self._links, self._waiting, self._others, self._borrows = other._links, other._waiting, other._others, True
        other._most_calls = _MOST_SHARED_CALLS
        link = other._links.made_here()
        if link is not None:
            link.limit(_MOST_SHARED_CALLS)

    def _make_link(self) -> Link:
        if not self._own:
            self._claim(self.endpoint.client)
        return Link(self.endpoint, own=self._own, most_calls=self._most_calls)

    def _make_waiting_link(self) -> Link:
        durability = self.session.options.durability
        wait = 0.0 if durability is None else durability.timeout_ms / 1000
        return Link(self.endpoint.beside(wait + CALL_TIMEOUT), own=True)

    # A cancelled command drops its connection: a late reply must not reach the next call.

    def execute(self, *parts: Any) -> Any:
        return self._links.here().execute(*parts)

    def execute_and_wait(self, *parts: Any) -> Any:
        return self._waiting.here().execute(*parts, wait=self.session.confirmation())

    def execute_for(self, key: str, *parts: Any) -> Any:
        slots = self.endpoint.slots
        if slots is None or slot_of(key) == self.endpoint.slot:
            return self.execute(*parts)
        return self._execute_elsewhere(slots, slot_of(key), parts)

    def _execute_elsewhere(self, slots: SlotMap, slot: int, parts: tuple[Any, ...]) -> Any:
        for left in range(_MOST_REDIRECTIONS, -1, -1):
            node, locator = slots.owner(slot), self._locator_of(self.endpoint)
            if node is None and locator is not None:
                node = locator.run(slots.search(slot))
            try:
                return self._link_to(node).execute(*parts)
            except Exception as error:
                redirect = redirection(error, node)
                if redirect is None or left == 0:
                    raise
            if not redirect.for_good:
                return self._link_to(redirect.node).execute_asking(*parts)
        raise AssertionError("unreachable")

    def execute_at(self, node: Node | None, *parts: Any) -> Any:
        return self._link_to(node).execute(*parts)

    def _link_to(self, node: Node | None) -> Link:
        if node is None:
            return self._links.here()
        links = self._others.here()
        if node not in links:
            links[node] = Link(self.endpoint.at_node(node), own=True)
        return links[node]

    def whereabouts(self) -> str:
        return self.endpoint.whereabouts()

    def primaries(self) -> list[Node | None]:
        slots, locator = self.endpoint.slots, self._locator_of(self.endpoint)
        if slots is None or locator is None:
            return [None]
        locator.run(slots.search(self.endpoint.slot))
        return [*slots.primaries()]

    def sleep(self, seconds: float) -> None:
        return self._sleep(seconds)

    def close(self) -> None:
        """Close the connections of this event loop. Those of other event loops are closed when those loops end."""
        self.session.closed = True
        if self._borrows:
            return
        others = self._others.known()
        for known in (self._links.known(), self._waiting.known(), *(others or {}).values()):
            if known is not None:
                known.close()
