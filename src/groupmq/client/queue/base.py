"""What a queue object is made of: its options, its connection, and how a job object is made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, Unpack

from groupmq.client.connection.connections import Connection
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.duties.presence import PresenceCleanup, WorkerRecords
from groupmq.client.duties.queue_duties import QueueDuties
from groupmq.client.job import Job
from groupmq.core import middleware as middlewares
from groupmq.core.checks import Logger
from groupmq.core.drafts import Draft
from groupmq.core.errors import ConfigurationError
from groupmq.core.job_log import Expiry, JobLog, Stall
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.record import Stored
from groupmq.core.retention import UNBOUNDED
from groupmq.core.signatures import shows_options
from groupmq.protocol.commands import Added, Call, Policy

T = TypeVar("T")
Chunk = tuple[Sequence[Draft], Call[Added]]


class QueueBase:
    """What every method of a queue uses. `QueueRuntime` defines how a call is made and how drafts are sent."""

    name: str
    _given: QueueArguments
    """The options that the object was made with."""
    logger: Logger
    _endpoint: Endpoint
    _connection: Connection
    _job_log: JobLog
    _middleware: Sequence[Any]

    @shows_options(QueueArguments, QUEUE_DEFAULTS)
    def __init__(self, name: str, redis: Any = None, **options: Unpack[QueueArguments]) -> None:
        """Check the options. Nothing is sent before the first call, but an embedded server is started.

        `redis` is a URL or a client of the redis library. Without it, $GROUPMQ_URL or $REDIS_URL is used, or
        redis://127.0.0.1:6379.

        Options:
            job_timeout: The lease: a job that gets no heartbeat for this long is taken back.
            max_attempts: How many attempts a job has if it does not set a number itself.
            backoff: The wait before the next attempt: a Backoff, seconds, or a function of the attempt, or of attempt
                and error.
            on_retry: `hold`: a group waits for the next attempt of its job. `yield`: it goes on.
            on_failed: `hold`: a job that fails for good blocks its group until it is retried, skipped or removed.
                `continue`: the group goes on.
            breaker: A group whose attempts fail this often in a row rests, then one job is tried.
            keep_completed: How many completed jobs are kept, the newest ones; 0: none.
            keep_failed: How many failed jobs are kept, the newest ones; 0: none.
            ordering: How long a job or a group waits for jobs that arrive late but sort before it.
            fairness: The order across groups: `oldest` head first, or `round-robin`.
            group_concurrency: Jobs of one group that may run at once.
            exclusive: Only one worker at a time runs jobs of this queue.
            rate_limit: The most jobs of the queue that may start in any span of a given length.
            group_rate_limit: The same for each group.
            max_group_size: The most live jobs that a group may have; adding one more raises GroupFull.
            priority_ageing: Waiting for this long counts as one level of priority.
            partitions: Hash tags over which groups are spread, so that a queue can use every primary of a cluster.
            events: Whether events are written to the queue's log.
            middleware: Hooks around adding and handling.
            max_payload: The most bytes that the data of a job, or its return value, may have.
            serializer: How data and results become bytes. `TypedJSON` keeps the types of Python.
            durability: `replicated`, `fsync`: an add returns only when its job is on replicas, or on disk.
            prefix: The prefix of all keys.
            logger: An object with the methods of a logger; True: the console.
        """
        checked = QueueOptions.checked(name, options)
        endpoint, middleware = Endpoint.of(redis), middlewares.checked(options.get("middleware", ()))
        self._set_up(options, checked, endpoint, Connection(endpoint, checked), middleware)

    def _set_up(
        self,
        given: QueueArguments,
        options: QueueOptions,
        endpoint: Endpoint,
        connection: Connection,
        middleware: Sequence[Any],
    ) -> None:
        self._given = given
        self.name = options.name
        self.logger = options.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = endpoint
        self._connection = connection
        self._middleware = middleware
        self._set_up_duties()
        self._set_up_client()

    def _set_up_duties(self) -> None:
        self._duties = self._make_duties(self._policy)

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

    async def _call(self, call: Call[T], /) -> T:
        raise NotImplementedError

    async def _submit(self, draft: Draft) -> Job:
        """Add one job."""
        raise NotImplementedError

    async def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        """Add the jobs of an `add_many`, in order."""
        raise NotImplementedError

    def _policy(self) -> Policy:
        """The policy of calls that are not made for a worker."""
        options = self.options
        return Policy(options.max_attempts, UNBOUNDED, options.keep)

    def _make_duties(self, policy: Callable[[], Policy]) -> QueueDuties:
        """The duties of this queue object, under the policy of this queue or of a worker."""
        is_part = self._connection.session.keys.part is not None
        presence = None if is_part else PresenceCleanup(self._worker_records)
        return QueueDuties(self._call, policy, lambda: self.options, presence)

    async def _worker_records(self) -> Sequence[WorkerRecords]:
        """What the server keeps about workers: a record for this queue, or for each of its partitions."""
        return [WorkerRecords(self._call, self._connection)]

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
