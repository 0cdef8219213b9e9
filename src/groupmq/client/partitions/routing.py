"""Which partition a call is for: by the id of a job, or by a group."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from groupmq.client.connection.known import KnownPart
from groupmq.client.job import Job
from groupmq.client.partitions.whereabouts import Whereabouts
from groupmq.client.queue.directory import Directory
from groupmq.core.checks import text
from groupmq.core.errors import GroupMQError
from groupmq.core.partitions import Part, carried, home_of, place_of

if TYPE_CHECKING:
    from groupmq.client.queue.queue import Queue

T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class Routing(Directory):
    """A queue that may have partitions, each of which is a queue object."""

    _parts: tuple[Queue, ...] | None = None
    """None = it is not known yet how many there are; empty = there is one, and it is this object."""

    def _make_parts(self, n: int) -> tuple[Queue, ...]:
        return tuple(self._make_part(Part(i, n)) for i in range(n))

    def _make_part(self, part: Part) -> Queue:
        from groupmq.client.queue.queue import Queue

        queue, whole = Queue.__new__(Queue), self._connection
        known = KnownPart(whole.session.whole, part)
        queue._set_up(self._given, self.options, self._endpoint, self._middleware, known)
        queue._parts = ()
        queue._connection.belongs_to(whole)
        if self._endpoint.slots is None:
            queue._connection.share_links_of(whole)
        return queue

    async def _open_once(self) -> None:
        """Open the queue; calls that wait for it go on in the order in which they came."""
        raise NotImplementedError

    async def _each(self, call: Callable[[Queue], Coroutine[Any, Any, T]]) -> list[T]:
        """The answer of each partition, in their order. One that fails is raised when all have ended."""
        raise NotImplementedError

    async def _learn(self) -> tuple[Queue, ...]:
        """The partitions. The first call of a process opens the queue for that; others do nothing."""
        if self._parts is None:
            await self._open_once()
            n = self.options.partitions or 1
            if self._parts is None:  # another task may have been faster
                self._parts = self._make_parts(n) if n > 1 else ()
        return self._parts

    async def _logs(self) -> tuple[Queue, ...]:
        """The queues whose logs have the events: the partitions, or this one. Raises if there are no events."""
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
        """The partition of each job: one call for all ids of a partition that users gave, none for others."""
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

    async def get_jobs_by_id(self, ids: Sequence[str]) -> list[Job | None]:
        if not await self._learn():
            return await super().get_jobs_by_id(ids)
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
        """The partition of one job; its home if it is nowhere."""
        (part,) = await self._find([job_id])
        home = self._at(home_of(job_id))
        if part is not home:
            (job,) = await part.get_jobs_by_id([job_id])
            if job is None:
                return home
        return part


def by_id(method: M) -> M:
    """The same method, of the partition in which the job is."""

    @wraps(method)
    async def routed(self: Routing, job_id: str, *args: Any, **kwargs: Any) -> Any:
        if not await self._learn():
            return await method(self, job_id, *args, **kwargs)
        part = await self._home_of(text(job_id, "job_id"))
        return await method(part, job_id, *args, **kwargs)

    return cast(M, routed)


def by_group(method: M) -> M:
    """The same method, of the partition in which the group is."""

    @wraps(method)
    async def routed(self: Routing, group_id: str, *args: Any, **kwargs: Any) -> Any:
        if not await self._learn():
            return await method(self, group_id, *args, **kwargs)
        part = self._at(place_of(text(group_id, "group_id")))
        return await method(part, group_id, *args, **kwargs)

    return cast(M, routed)


def informed(method: M) -> M:
    """The same method, once it is known how many partitions there are."""

    @wraps(method)
    async def learned(self: Routing, *args: Any, **kwargs: Any) -> Any:
        await self._learn()
        return await method(self, *args, **kwargs)

    return cast(M, learned)
