"""The clean-up of a queue with partitions, beside the one that each partition has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupmq.client.answers import merging
from groupmq.client.duties.presence import PresenceCleanup
from groupmq.client.partitions.whereabouts import PAGES, WORTHWHILE, Whereabouts, place_in
from groupmq.core.views import DutyReport

if TYPE_CHECKING:
    from groupmq.client.partitions.routing import Routing
    from groupmq.client.queue.queue import Queue


class CleanupAcross:
    """The duty that concerns all partitions: dead workers, and entries of jobs that are gone.

    A process may also have died after it changed the settings of the queue and before it wrote them to a partition. No
    call would notice that, so the settings of the queue itself are read.
    """

    task = PresenceCleanup.task

    def __init__(self, queue: Routing) -> None:
        self._queue = queue
        self._sweep = EntrySweep(queue)
        self._presence = PresenceCleanup(queue._worker_records)

    async def run_once(self) -> DutyReport:
        await self._queue._connection.reopen()
        return merging.duty([await self._sweep.run_once(), await self._presence.run_once()])


class EntrySweep:
    """Removes the entries (`Whereabouts`) of jobs that are gone. One that an add may just have written stays.

    It starts where its last run stopped, and continues while it finds enough.
    """

    task = "clean up"

    def __init__(self, queue: Routing) -> None:
        self._queue = queue
        self._swept_to: dict[int, str] = {}
        """By partition, the cursor at which the last run stopped."""

    async def run_once(self) -> DutyReport:
        swept = 0
        for at, part in enumerate(await self._queue._learn()):
            book, cursor, pages = Whereabouts(part._connection), self._swept_to.get(at, "0"), 0
            while True:
                cursor, gone = await self._gone(part, book, cursor)
                swept += await book.strike(gone)
                pages += 1
                if cursor == "0" or (pages >= PAGES and len(gone) < WORTHWHILE):
                    break
            self._swept_to[at] = cursor
        return DutyReport(swept, swept=swept)

    async def _gone(self, part: Queue, book: Whereabouts, cursor: str) -> tuple[str, dict[str, str]]:
        """The next cursor, and the entries of a page whose jobs are gone."""
        queue = self._queue
        cursor, entries = await book.old_page(cursor)
        ids = list(entries)
        places = [place_in(entries[job_id]) for job_id in ids]
        jobs = await queue._read_at(ids, [part if place is None else queue._at(place) for place in places])
        return cursor, {job_id: entries[job_id] for job_id, job in zip(ids, jobs, strict=True) if job is None}
