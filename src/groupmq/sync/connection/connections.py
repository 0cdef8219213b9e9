# Generated from src/groupmq/client/connection/connections.py by `make sync`; do not edit.
"""The connection of a queue, for calls."""

from __future__ import annotations

from typing import Any

from groupmq.client.connection.address import Node
from groupmq.client.connection.cluster import SlotMap, redirection, slot_of
from groupmq.client.connection.endpoint import CALL_TIMEOUT, Endpoint
from groupmq.client.connection.known import Known, KnownPart
from groupmq.client.connection.session import Session
from groupmq.core.partitions import Part
from groupmq.core.queue_options import QueueOptions
from groupmq.core.settings import StoredQueue
from groupmq.runtime.loops import PerProcess
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
        whole: BlockingConnection | None = None,
    ) -> None:
        """`session`: that of another connection. `known`: what another connection to the same queue or partition knows.
        `whole`: for a partition, the connection of its queue, which confirms the settings. On a single server its links
        are used, and it closes them.

        With a client of the user's, `endpoint.beside()` makes connections of our own.
        """
        self._require_kind(endpoint)
        if session is None:
            session = Session(options, endpoint.where, known, None if whole is None else whole.open)
        super().__init__(session, endpoint.patience if whole is None else whole.patience)
        self.endpoint = endpoint = endpoint.at(self.session.keys.meta)
        self._own = endpoint.client is None or endpoint.own
        self._links = PerProcess(self._make_link)
        self._borrows = False
        self._most_calls = MOST_CALLS
        self._waiting = PerProcess(self._make_waiting_link)
        """Links whose calls wait for replicas or a disk; other calls must not queue behind them."""
        self._others: PerProcess[dict[Node, Link]] = PerProcess(dict)
        """Links to other nodes of a cluster, for keys that are not of this queue."""
        if whole is not None and endpoint.slots is None:
            self._links, self._waiting, self._others = whole.lend_links()
            self._borrows = True

    def serve_tool(self, patience: float, *, make: bool) -> None:
        """From now on, accept the stored settings whatever they are. `make`: create a queue that does not exist."""
        self.patience = patience
        self.session.accept_stored_settings(make=make)

    def key(self, name: str) -> str:
        """The key of the queue, or of the partition, called `name`, one of `keys.FIXED`."""
        return self.session.keys.fixed(name)

    @property
    def stored_settings(self) -> StoredQueue:
        """The settings of the queue itself, as last read."""
        return self.session.whole.stored

    def has_repartitioned(self, to: int) -> None:
        """Record that this process has changed the number of partitions."""
        self.session.whole.has_repartitioned(to)

    def to_partition(self, endpoint: Endpoint, options: QueueOptions, part: Part) -> BlockingConnection:
        """A connection to one partition of this queue. `endpoint`: that of the queue, wherever its own keys are."""
        return BlockingConnection(endpoint, options, known=KnownPart(self.session.whole, part), whole=self)

    def lend_links(self) -> tuple[PerProcess[Link], PerProcess[Link], PerProcess[dict[Node, Link]]]:
        """The links of this connection, for those to the partitions on the same server. Their calls are bounded now."""
        self._most_calls = _MOST_SHARED_CALLS
        link = self._links.made_here()
        if link is not None:
            link.limit(_MOST_SHARED_CALLS)
        return self._links, self._waiting, self._others

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
