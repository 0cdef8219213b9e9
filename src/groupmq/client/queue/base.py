"""What all parts of a queue share: its settings, its connection, and jobs by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from groupmq.client.answers.jobs import job_from
from groupmq.client.connection.connections import Connection
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.job import Job
from groupmq.client.queue.walks import StateWalk, WaitingWalk, Walk
from groupmq.core.checks import Logger, whole
from groupmq.core.drafts import Draft
from groupmq.core.job_log import JobLog
from groupmq.core.queue_options import QueueArguments, QueueOptions
from groupmq.core.record import Stored
from groupmq.protocol import commands
from groupmq.protocol.commands import CHUNK, Added, Call, StoredJob

T = TypeVar("T")
Chunk = tuple[Sequence[Draft], Call[Added]]


class QueueBase:
    """The base of every part of a queue. `Queue` itself says how a call is made and how drafts are sent."""

    name: str
    _given: QueueArguments
    """The options that the object was made with."""
    logger: Logger
    _endpoint: Endpoint
    _connection: Connection
    _job_log: JobLog
    _middleware: Sequence[Any]

    @property
    def options(self) -> QueueOptions:
        """As they are stored with the queue, once this object has called the server; before, as it was made."""
        return self._connection.session.known.options

    async def _call(self, call: Call[T], /) -> T:
        raise NotImplementedError

    async def _submit(self, draft: Draft) -> Job:
        """Add one job."""
        raise NotImplementedError

    async def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        """Add the jobs of an `add_many`, in order."""
        raise NotImplementedError

    def _make_job(self, job_id: str, state: str, stored: Stored) -> Job:
        return Job(self, self.options.serializer, job_id, state, stored, self.options.max_attempts)

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

    async def _views(self, ids: Sequence[str]) -> list[StoredJob | None]:
        """All that is stored about jobs: as many in one call as have room in its reply."""
        views: list[StoredJob | None] = []
        while len(views) < len(ids):
            page = await self._call(commands.get(ids[len(views) : len(views) + CHUNK]))
            views += page
        return views

    async def get_jobs_by_id(self, ids: Sequence[str]) -> list[Job | None]:
        """Many jobs at once, in the order of `ids`; None where there is no such job."""
        views = await self._views(ids)
        make = self._make_job
        return [None if view is None else job_from(make, i, view) for i, view in zip(ids, views, strict=True)]

    async def _list_ids(self, state: str, limit: int, offset: int = 0, *, newest: bool = False) -> list[str]:
        whole(limit, "limit", 0, 2**31)
        whole(offset, "offset", 0, 2**53)
        if state == "waiting":
            return await self._list_waiting(limit, offset)
        ids: list[str] = []
        while len(ids) < limit:
            size = min(CHUNK, limit - len(ids))
            page = await self._call(commands.list_jobs(state, offset + len(ids), size, newest=newest))
            ids += page
            if len(page) < size:
                break
        return ids

    async def _list_waiting(self, limit: int, offset: int = 0, group_id: str | None = None) -> list[str]:
        """Waiting jobs of the queue, or of one group in its order."""
        walk = WaitingWalk(self._call, group_id)
        ids: list[str] = []
        while len(ids) < limit + offset:
            page = await walk.next_page(min(CHUNK, limit + offset - len(ids)))
            if not page:
                break
            ids += page
        return ids[offset:]
