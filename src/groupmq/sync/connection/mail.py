"""The connection of a worker's heartbeat, which has a thread of its own and waits for mail in it."""

from __future__ import annotations

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.faults import understood
from groupmq.client.connection.known import Known, KnownPart
from groupmq.core.queue_options import QueueOptions
from groupmq.sync.connection.connections import BlockingConnection


class MailConnection(BlockingConnection):
    """A blocking connection of our own, even if the user gave a client. Its reads end after `timeout` seconds."""

    def __init__(self, endpoint: Endpoint, options: QueueOptions, timeout: float, known: Known | KnownPart) -> None:
        super().__init__(endpoint.beside(timeout), options, known=known)
        self._longest_block = timeout / 2
        self._blocks = False
        self.endpoint.address.watch(self)

    def wait_for_mail(self, worker: str, timeout: float) -> bool:
        """Block until there is mail for a worker (True), or for some time, at most `timeout` (False)."""
        key = self.session.keys.mail(worker)
        try:
            self._blocks = True
            block = min(timeout, self._longest_block)
            return self.execute("BZPOPMIN", key, block) is not None
        except Exception as error:
            raise understood(error, self.session.where) from error
        finally:
            self._blocks = False

    def interrupt(self) -> None:
        """End a wait of another thread."""
        self._links.here().interrupt()

    def primary_moved(self, *, failover: bool) -> None:
        """End a wait for mail at the old primary, where no mail arrives any more."""
        if self._blocks:
            self._links.here()._drop_soon()
