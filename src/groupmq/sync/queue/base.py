# Generated from src/groupmq/client/queue/base.py by `make sync`; do not edit.
"""What a queue object is made of: its options, its connection, and how a job object is made."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar, Unpack

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.known import KnownPart
from groupmq.core import middleware as middlewares
from groupmq.core.checks import Logger
from groupmq.core.drafts import Draft
from groupmq.core.errors import ConfigurationError
from groupmq.core.job_log import Expiry, JobLog, Stall
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.record import Stored
from groupmq.core.signatures import shows_options
from groupmq.protocol.commands import Added, Call
from groupmq.sync.connection.connections import BlockingConnection
from groupmq.sync.duties.scheduler import Scheduler
from groupmq.sync.job import Job

T = TypeVar("T")
Chunk = tuple[Sequence[Draft], Call[Added]]


class QueueBase:
    """What every method of a queue uses. `QueueRuntime` defines how a call is made and how drafts are sent."""

    name: str
    _given: QueueArguments
    """The options that the object was made with."""
    logger: Logger
    _endpoint: Endpoint
    _connection: BlockingConnection
    _job_log: JobLog
    _middleware: Sequence[Any]

    @shows_options(QueueArguments, QUEUE_DEFAULTS)
    def __init__(self, name: str, redis: Any = None, **options: Unpack[QueueArguments]) -> None:
        checked = QueueOptions.checked(name, options)
        self._set_up(options, checked, Endpoint.of(redis), middlewares.checked(options.get("middleware", ())))

    def _set_up(
        self,
        given: QueueArguments,
        options: QueueOptions,
        endpoint: Endpoint,
        middleware: Sequence[Any],
        known: KnownPart | None = None,
    ) -> None:
        """`known`: for the queue object of a partition, what is known of the partition."""
        self._given = given
        self.name = options.name
        self.logger = options.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = endpoint
        self._connection = BlockingConnection(self._endpoint, options, known=known)
        self._middleware = middleware
        self._scheduler = Scheduler(self._call)
        self._set_up_client()

    def _set_up_client(self) -> None:
        """Make the parts that only this client has."""
        raise NotImplementedError

    def _require_events(self) -> None:
        if not self.options.events:
            raise ConfigurationError("events: this queue is stored with events=False; there is nothing to listen to")

    @property
    def options(self) -> QueueOptions:
        """The options as stored with the queue, once this object has called the server; before that, those it was made
        with."""
        return self._connection.session.known.options

    @property
    def address(self) -> str:
        """The address of the server, without secrets."""
        return self._connection.session.where

    @property
    def calls_by(self) -> Literal["function", "script"]:
        """How this process calls the server: as functions of a library, or as scripts where functions are refused.

        Known after the first call.
        """
        return self._connection.session.calls_by

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"

    def _call(self, call: Call[T], /) -> T:
        raise NotImplementedError

    def _submit(self, draft: Draft) -> Job:
        """Add one job."""
        raise NotImplementedError

    def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        """Add the jobs of an `add_many`, in order."""
        raise NotImplementedError

    def _log_ended_by_time(self, stalled: Iterable[Stall], expired: Iterable[Expiry]) -> None:
        options = self.options
        self._job_log.adopt(keeps_failed=options.keep_failed.kept != 0, on_failed=options.on_failed)
        for stall in stalled:
            self._job_log.stalled(stall)
        for expiry in expired:
            self._job_log.expired(expiry)

    def _make_job(self, job_id: str, state: str, stored: Stored) -> Job:
        options = self.options
        return Job(self, options.serializer, job_id, state, stored, options.max_attempts)
