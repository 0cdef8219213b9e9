# Generated from src/groupmq/client/queue/directory.py by `make sync`; do not edit.
"""The queues of a server: how they are found, opened as they are stored, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.patience import PATIENCE
from groupmq.core.checks import Logger
from groupmq.core.codec import JSON, Serializer
from groupmq.core.durations import Duration, seconds
from groupmq.core.errors import QueueNotFound
from groupmq.core.queue_options import DEFAULT_PREFIX, QueueArguments, QueueOptions, queue_name
from groupmq.core.server_views import Finding, QueueInfo
from groupmq.sync import libraries, registry, server
from groupmq.sync.connection.connections import BlockingConnection
from groupmq.sync.queue.methods import QueueMethods

# In the class below `list` is a method, so annotations there cannot use it as a type.
QueueInfos = list[QueueInfo]
Findings = list[Finding]
Names = list[str]


class Directory(QueueMethods):
    """The class methods of a queue: queues by name."""

    if TYPE_CHECKING:

        def close(self) -> None: ...

    @classmethod
    def attach(
        cls,
        name: str,
        redis: Any = None,
        *,
        make: bool = False,
        patience: Duration = PATIENCE,
        call_timeout: Duration | None = None,
        **options: Unpack[QueueArguments],
    ) -> Self:
        """A queue object for tools, which accepts the stored settings whatever they are. Nothing is sent yet.

        While the queue does not exist, its methods raise QueueNotFound, or create it if `make` is set. `patience`: how
        long a call is tried again while the server cannot be reached. `call_timeout`: how long one read may take.
        `redis` may also be another queue object, of either client: the server is the same, the connections are not.
        `options` are those of `Queue`. Those that say how jobs are handled (`max_attempts`, `keep_failed` ...) apply to
        this object in place of the stored ones.
        """
        other = getattr(redis, "_endpoint", None)
        endpoint = Endpoint.of(redis) if other is None else other.beside()
        if call_timeout is not None:
            endpoint = endpoint.beside(seconds(call_timeout, "call_timeout"))
        queue = cls(name, endpoint, **options)
        queue._connection.serve_tool(seconds(patience, "patience"), make=make)
        return queue

    @classmethod
    def open(
        cls,
        name: str,
        redis: Any = None,
        *,
        prefix: str = DEFAULT_PREFIX,
        serializer: Serializer = JSON,
        logger: Logger | Literal[True] | None = None,
    ) -> Self:
        """A queue as it is stored, with its stored settings. Raises QueueNotFound if there is none; never creates one.

        For tools that look at a queue and act on its jobs.

        >>> queue = Queue.open("orders")
        """
        queue = cls.attach(name, redis, prefix=prefix, serializer=serializer, logger=logger)
        try:
            queue.get_settings()
        except BaseException:
            queue.close()
            raise
        return queue

    @classmethod
    def list(cls, redis: Any = None, *, prefix: str = DEFAULT_PREFIX) -> QueueInfos:
        """The queues of a server, by name. Queues under other prefixes are not listed.

        >>> [queue.name for queue in Queue.list()]
        """
        options = QueueOptions("-", queue_name(prefix, "prefix"))
        connection = BlockingConnection(Endpoint(redis), options)
        try:
            found = registry.names(connection, options.prefix)
        finally:
            connection.close()
        return [QueueInfo(name, options.prefix) for name in found]

    @staticmethod
    def address_of(redis: Any = None) -> str:
        """The address that a URL or client leads to, without secrets. Raises ConfigurationError if the URL is wrong.

        Nothing is sent, but an embedded server is started, and belongs to this process.
        """
        return Endpoint.of(redis).where

    @classmethod
    def check_server(cls, redis: Any = None) -> Findings:
        """Test whether a server is fit for queues: the findings of `check` about the server, without a queue."""
        connection = BlockingConnection(Endpoint.of(redis), QueueOptions("-"))
        try:
            return server.examine(connection)
        finally:
            connection.close()

    @classmethod
    def prune_libraries(cls, redis: Any = None, *, prefix: str = DEFAULT_PREFIX) -> Names:
        """Delete the function libraries of other releases that no worker of any queue uses, and return their names."""
        used = set()
        for info in cls.list(redis, prefix=prefix):
            queue = cls.attach(info.name, redis, prefix=info.prefix)
            try:
                used |= {worker.library for worker in queue.get_workers()}
            except QueueNotFound:
                continue  # it was removed meanwhile
            finally:
                queue.close()
        connection = BlockingConnection(Endpoint.of(redis), QueueOptions("-"))
        try:
            return libraries.prune(connection, used)
        finally:
            connection.close()
