"""The asynchronous queue: what it has beside the parts that both clients share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, cast

from groupmq.client.connection.connections import Connection
from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.known import KnownPart
from groupmq.client.events import JobListeners
from groupmq.client.events.following_all import iterate_all
from groupmq.client.job import Job
from groupmq.client.partitions.methods import PartitionedMethods
from groupmq.client.queue.base import Chunk
from groupmq.client.queue.changes import NO_PROGRESS
from groupmq.client.queue.locality import Locality
from groupmq.client.queue.processing import OwnWorkers, Processing
from groupmq.core import middleware as middlewares
from groupmq.core.drafts import Draft
from groupmq.core.durations import Duration, seconds
from groupmq.core.emitter import Listener
from groupmq.core.errors import ConfigurationError, GroupFull, GroupMQError
from groupmq.core.events import KINDS, Event, Position
from groupmq.core.job_log import JobLog
from groupmq.core.partitions import Part
from groupmq.core.positions import Positions
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.signatures import shows_options
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.protocol.commands import Added, Call

if TYPE_CHECKING:
    from groupmq.worker.worker import Worker

T = TypeVar("T")


class Queue(PartitionedMethods):
    """A queue of jobs. Jobs of one group run strictly in order, one at a time; groups run in parallel.

    >>> async with Queue("orders") as queue:
    ...     await queue.add({"amount": 999}, group_id="user:42", max_attempts=5)
    """

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
        """`known`: of a partition."""
        self._given = given
        self.name = options.name
        self.logger = options.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = endpoint
        self._connection = Connection(self._endpoint, options, known=known)
        self._middleware = middleware
        self._local = Locality(self._connection, self._send_adds, self._send_gets)
        self._workers = OwnWorkers(self, self.name, self.logger)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def _call(self, call: Call[T], /) -> T:
        if self._local.waiting:
            await self._local.subscribe()
        return await self._connection.call(call)

    # Partitions

    def _make_parts(self, n: int) -> tuple[Queue, ...]:
        parts = tuple(self._make_part(Part(i, n)) for i in range(n))
        for kind in KINDS:
            for listener in self._local.listeners.listeners(kind):
                for part in parts:
                    part._local.listen(kind, listener)
        return parts

    def _make_part(self, part: Part) -> Queue:
        queue, whole = Queue.__new__(Queue), self._connection
        known = KnownPart(whole.session.whole, part)
        queue._set_up(self._given, self.options, self._endpoint, self._middleware, known)
        queue._parts = ()
        queue._connection.patience = whole.patience
        queue._connection.session.confirm = whole.open
        if self._endpoint.slots is None:
            queue._connection.share_lines_of(whole)
        return queue

    async def _open_once(self) -> None:
        here = self._local.here()
        if here.opening is None or here.opening.done():
            here.opening = asyncio.ensure_future(self._connection.ready())
            # The task that waited may have been cancelled. asyncio logs an error that is never retrieved.
            here.opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.shield(here.opening)

    async def _each(self, call: Callable[[Queue], Coroutine[Any, Any, T]]) -> list[T]:
        found = await asyncio.gather(*(call(part) for part in self._parts or ()), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return cast("list[T]", found)

    # Adding

    def _submit(self, draft: Draft) -> Coroutine[Any, Any, Job]:
        if self._parts == ():
            return self._local.here().adds.add(draft)
        return self._submit_somewhere(draft)

    async def _submit_somewhere(self, draft: Draft) -> Job:
        here, ended = self._local.here(), asyncio.get_running_loop().create_future()
        here.adding.add(ended)
        try:
            if not await self._learn():
                return await here.adds.add(draft)
            return await self._spread_one(draft)
        finally:
            here.adding.discard(ended)
            ended.cancel()

    async def _send_adds(self, drafts: Sequence[Draft]) -> list[Job | GroupFull]:
        jobs = await self._added_apart(drafts, await self._call(commands.add(drafts)))
        if self._job_log.debugging():
            self._job_log.added(jobs)
        return jobs

    async def _send_gets(self, ids: Sequence[str]) -> list[Job | Exception | None]:
        return list(await self.get_jobs_by_id(ids))

    async def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        if self._local.waiting:
            await self._local.subscribe()
        jobs: list[Job] = []
        chunks = iter(chunks)
        chunk = next(chunks, None)
        before: tuple[Sequence[Draft], Added] | None = None
        while chunk is not None:
            drafts, call = chunk
            flight = asyncio.ensure_future(self._connection.call(call))
            try:
                # The call is sent first. The jobs of the call before it are made while the server works.
                await asyncio.sleep(0)
                if before is not None:
                    jobs += await self._jobs_of(*before)
                chunk = next(chunks, None)
                before = drafts, await flight
            finally:
                flight.cancel()
        if before is not None:
            jobs += await self._jobs_of(*before)
        return jobs

    async def _jobs_of(self, drafts: Sequence[Draft], answer: Added) -> list[Job]:
        jobs = await self._added_together(drafts, answer)
        if self._job_log.debugging():
            self._job_log.added(jobs)
        return jobs

    # Listening

    async def events(self, since: str | None = None) -> AsyncGenerator[Event, None]:
        """What happens to the jobs of this queue, in all processes, from now on or after the event with id `since`.

        >>> async for event in queue.events():
        ...     print(event.kind, event.job_id)
        """
        parts = await self._learn()
        if not self._connection.session.opened:
            await self._open_once()  # whether there are events is stored with the queue
        self._require_events()
        if parts:
            channels = [part._local.here().channel for part in parts]
            async for event in iterate_all(channels, None if since is None else Positions.parse(since, len(parts))):
                yield event
            return
        async for event in self._local.here().channel.iterate(None if since is None else Position.parse(since)):
            yield event

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener(event)` for events of all workers in all processes. It may be async; what it raises is logged.

        It is called for everything that is done through this queue object from now on.
        """
        self._require_events()
        self._local.listen(event, listener)
        for part in self._parts or ():
            part._local.listen(event, listener)
        with contextlib.suppress(RuntimeError):
            self._spawn(self._start_listening())
        return listener

    async def _start_listening(self) -> None:
        try:
            for queue in await self._learn() or (self,):
                await queue._local.subscribe()
        except GroupMQError:
            self.logger.warning("queue %s: cannot subscribe to events yet; the next call tries again", self.name)

    def off(self, event: str, listener: Listener) -> bool:
        for part in self._parts or ():
            part._local.listeners.off(event, listener)
        return self._local.listeners.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        for queue in (self, *(self._parts or ())):
            queue._local.listeners.remove_all(event)

    def _require_events(self) -> None:
        if not self.options.events:
            raise ConfigurationError("events: this queue is stored with events=False; there is nothing to listen to")

    # What jobs ask of their queue

    async def _result_of(self, job: Snapshot, timeout: Duration | None) -> Any:
        """Wait for the end of a job; see `Job.result`."""
        limit = None if timeout is None else seconds(timeout, "timeout")
        here = self._local.here()
        return await here.results.of(here.channel, job, limit)

    def _listen_to(self, job: Job, event: str, listener: Listener) -> JobListeners:
        """Listen to one job; see `Job.on`."""
        self._require_events()
        listeners = self._local.here().channel.listeners_of(job.id, job._created_ms)
        listeners.on(event, listener)
        return listeners

    async def _report_run(self, job: Job, *, progress: Any = NO_PROGRESS, line: str | None = None) -> None:
        """Store what a handler reports; see `Job.report_progress` and `Job.log`."""
        await self._report(job.id, job.fence, progress, line)
        if progress is not NO_PROGRESS:
            job.progress = progress
            if job._on_progress is not None:
                job._on_progress(job, progress)

    # Working

    def process(self, handler: Callable[[Any], Any] | None = None, concurrency: int = 1, **options: Any) -> Processing:
        """Build a worker for this queue and start it; it is closed with the queue. Also a decorator.

        >>> worker = await queue.process(handle, concurrency=10)
        >>> @queue.process(concurrency=10)
        ... async def handle(job): ...

        Awaited, it returns the worker when it has started, or raises if it cannot. Not awaited, the worker starts in
        the background in a running event loop, else with `async with queue` or `work()`.
        """
        return Processing(
            self._workers, lambda given: self._make_worker(given, concurrency=concurrency, **options), handler
        )

    def _make_worker(self, handler: Callable[[Job], Any], **options: Any) -> Worker:
        """A worker that is closed with the queue."""
        from groupmq.worker.worker import Worker

        worker = Worker(self, handler, **options)
        self._workers.add(worker)
        return worker

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Those made by `process`."""
        return self._workers.made

    async def work(self) -> None:
        """Run the workers made by `process` until the queue is closed, or this is cancelled."""
        try:
            await self._workers.run()
        finally:
            await self.close()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Finish what was added, close workers made by `process`, and close our connections (never the user's)."""
        if self._closed:
            return
        self._closed = True
        here = self._local.here()
        while here.adding:
            await asyncio.wait(here.adding)
        await here.adds.drain()
        await self._workers.close()
        for task in tuple(self._tasks):
            if task.get_loop() is asyncio.get_running_loop():
                task.cancel()
        await here.channel.close()
        for part in self._parts or ():
            await part.close()
        await self._connection.close()

    async def __aenter__(self) -> Self:
        await self._workers.start_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"
