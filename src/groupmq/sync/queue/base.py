# Generated from src/groupmq/client/queue/base.py by `make sync`; do not edit.
"""The base of all parts of a queue: its settings, its connection, and jobs by their ids."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, Unpack

from groupmq.client.answers.jobs import job_from
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.known import KnownPart
from groupmq.core import middleware as middlewares
from groupmq.core.checks import Logger, whole
from groupmq.core.drafts import Draft
from groupmq.core.errors import ConfigurationError
from groupmq.core.job_log import JobLog
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.record import Stored
from groupmq.core.signatures import shows_options
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, Added, Call, Expired, Stalled, StoredJob
from groupmq.sync.connection.connections import BlockingConnection
from groupmq.sync.job import Job
from groupmq.sync.queue.walks import StateWalk, WaitingWalk, Walk

T = TypeVar("T")
Chunk = tuple[Sequence[Draft], Call[Added]]


class QueueBase:
    """The base of every part of a queue. `Queue` itself defines how a call is made and how drafts are sent."""

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
        self._set_up_client()

    def _set_up_client(self) -> None:
        """Make what only this client has."""
        raise NotImplementedError

    def _require_events(self) -> None:
        if not self.options.events:
            raise ConfigurationError("events: this queue is stored with events=False; there is nothing to listen to")

    @property
    def options(self) -> QueueOptions:
        """The options as stored with the queue, once this object has called the server; before that, those it was made
        with."""
        return self._connection.session.known.options

    def _call(self, call: Call[T], /) -> T:
        raise NotImplementedError

    def _submit(self, draft: Draft) -> Job:
        """Add one job."""
        raise NotImplementedError

    def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        """Add the jobs of an `add_many`, in order."""
        raise NotImplementedError

    def _log_ended_by_time(self, stalled: Iterable[Stalled], expired: Iterable[Expired]) -> None:
        options = self.options
        self._job_log.adopt(keeps_failed=options.keep_failed.kept != 0, on_failed=options.on_failed)
        for stall in stalled:
            self._job_log.stalled(stall)
        for expiry in expired:
            self._job_log.expired(expiry)

    def _make_job(self, job_id: str, state: str, stored: Stored) -> Job:
        options = self.options
        return Job(self, options.serializer, job_id, state, stored, options.max_attempts)

    def _walk(
        self,
        state: str,
        *,
        newest: bool = True,
        group_id: str | None = None,
        age_ms: int | None = None,
        cursor: str | None = None,
    ) -> Walk:
        """All jobs of a state, a page at a time."""
        return StateWalk(self._call, state, newest=newest, group_id=group_id, age_ms=age_ms, cursor=cursor)

    def _views(self, ids: Sequence[str]) -> list[StoredJob | None]:
        """All that is stored about jobs: as many in one call as have room in its reply."""
        views: list[StoredJob | None] = []
        while len(views) < len(ids):
            page = self._call(commands.get(ids[len(views) : len(views) + CHUNK]))
            views += page
        return views

    def get_jobs_by_id(self, ids: Sequence[str]) -> list[Job | None]:
        """Many jobs at once, in the order of `ids`; None where there is no such job."""
        views = self._views(ids)
        make = self._make_job
        return [None if view is None else job_from(make, i, view) for i, view in zip(ids, views, strict=True)]

    def _list_ids(self, state: str, limit: int, offset: int = 0, *, newest: bool = False) -> list[str]:
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        if state == "waiting":
            return self._list_waiting(limit, offset)
        ids: list[str] = []
        while len(ids) < limit:
            size = min(CHUNK, limit - len(ids))
            page = self._call(commands.list_jobs(state, offset + len(ids), size, newest=newest))
            ids += page
            if len(page) < size:
                break
        return ids

    def _list_waiting(self, limit: int, offset: int = 0, group_id: str | None = None) -> list[str]:
        """Waiting jobs of the queue, or of one group in its order."""
        walk = WaitingWalk(self._call, group_id)
        ids: list[str] = []
        while len(ids) < limit + offset:
            page = walk.next_page(min(CHUNK, limit + offset - len(ids)))
            if not page:
                break
            ids += page
        return ids[offset:]
