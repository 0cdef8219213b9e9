"""Which partition a call is for: by the id of a job, or by a group."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groupmq.client.duties.presence import WorkerRecords
from groupmq.client.job import Job
from groupmq.client.partitions.overriding import across
from groupmq.client.partitions.whereabouts import Whereabouts
from groupmq.client.queue.directory import Directory
from groupmq.client.queue.methods import QueueMethods
from groupmq.core.errors import GroupMQError
from groupmq.core.partitions import Part, carried, home_of

if TYPE_CHECKING:
    from groupmq.client.queue.queue import Queue

T = TypeVar("T")


class Routing(Directory):
    """A queue that may have partitions, each of which is a queue object."""

    _parts: tuple[Queue, ...] | None = None
    """None = it is not known yet how many there are; empty = there is one, and it is this object."""

    def _make_parts(self, n: int) -> tuple[Queue, ...]:
        return tuple(self._make_part(Part(i, n)) for i in range(n))

    def _make_part(self, part: Part) -> Queue:
        from groupmq.client.queue.queue import Queue

        queue, options = Queue.__new__(Queue), self.options
        connection = self._connection.to_partition(self._endpoint, options, part)
        queue._set_up(self._given, options, self._endpoint, connection, self._middleware)
        queue._parts = ()
        return queue

    async def _open_once(self) -> None:
        """Open the queue; calls that wait for it go on in the order in which they came."""
        raise NotImplementedError

    async def _each(self, call: Callable[[Queue], Coroutine[Any, Any, T]]) -> list[T]:
        """The answers of all partitions, in their order. If a call fails, its error is raised when all have ended."""
        raise NotImplementedError

    async def _learn(self) -> tuple[Queue, ...]:
        """The partitions. The first call opens the queue to find out how many there are; later ones send nothing."""
        if self._parts is None:
            await self._open_once()
            n = self.options.partitions or 1
            if self._parts is None:  # another task may have been faster
                self._parts = self._make_parts(n) if n > 1 else ()
        return self._parts

    async def _worker_records(self) -> Sequence[WorkerRecords]:
        return [WorkerRecords(part._call, part._connection) for part in await self._learn() or (self,)]

    async def _logs(self) -> tuple[Queue, ...]:
        """The queues whose logs have the events: the partitions, or this one. Raises if the queue has no events."""
        parts = await self._learn()
        if not self._connection.session.opened:
            await self._open_once()  # whether there are events is stored with the queue
        self._require_events()
        return parts or (cast("Queue", self),)

    def _at(self, place: int) -> Queue:
        parts = self._parts
        if not parts:
            raise GroupMQError("this queue has no partitions")
        return parts[place % len(parts)]

    async def _find(self, ids: Sequence[str]) -> list[Queue]:
        """The partition of each job, with one call to each home of ids that users gave, and no call for other ids."""
        found = [self._at(home_of(job_id)) for job_id in ids]
        by_home: dict[int, list[int]] = {}
        for i, job_id in enumerate(ids):
            if carried(job_id) is None:
                by_home.setdefault(id(found[i]), []).append(i)
        for given in by_home.values():
            places = await Whereabouts(found[given[0]]._connection).find([ids[i] for i in given])
            for i, place in zip(given, places, strict=True):
                if place is not None:
                    found[i] = self._at(place)
        return found

    @across(QueueMethods.get_jobs_by_id)
    async def get_jobs_by_id(self, ids: Sequence[str]) -> list[Job | None]:
        parts = await self._find(ids)
        jobs = await self._read_at(ids, parts)
        # An entry may outlive its job. A job without a group may have the same id: look for it at home.
        again = [i for i, job in enumerate(jobs) if job is None and parts[i] is not self._at(home_of(ids[i]))]
        if again:
            homes = [self._at(home_of(ids[i])) for i in again]
            for i, job in zip(again, await self._read_at([ids[i] for i in again], homes), strict=True):
                jobs[i] = job
        return jobs

    async def _read_at(self, ids: Sequence[str], parts: Sequence[Queue]) -> list[Job | None]:
        jobs: list[Job | None] = [None] * len(ids)
        by_part: dict[int, list[int]] = {}
        for i, part in enumerate(parts):
            by_part.setdefault(id(part), []).append(i)
        for there in by_part.values():
            found = await parts[there[0]].get_jobs_by_id([ids[i] for i in there])
            for i, job in zip(there, found, strict=True):
                jobs[i] = job
        return jobs

    async def _home_of(self, job_id: str) -> Queue:
        """The partition of one job; its home if the job does not exist."""
        (part,) = await self._find([job_id])
        home = self._at(home_of(job_id))
        if part is not home:
            (job,) = await part.get_jobs_by_id([job_id])
            if job is None:
                return home
        return part
