"""The part of a queue that needs event loops: calls and adds of many tasks, listening, workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from groupmq.client.events import JobListeners, subscription_of
from groupmq.client.events.followed import followed
from groupmq.client.job import Job
from groupmq.client.partitions.methods import PartitionedMethods
from groupmq.client.queue.adding import added_apart, added_together
from groupmq.client.queue.base import Chunk
from groupmq.client.queue.changes import append_log, report_progress
from groupmq.client.queue.locality import Locality
from groupmq.client.queue.pipelining import pipelined
from groupmq.client.queue.processing import OwnWorkers, Processing
from groupmq.core.drafts import Draft
from groupmq.core.errors import GroupFull, GroupMQError
from groupmq.core.events import KINDS, Event
from groupmq.core.signatures import shows_options
from groupmq.core.snapshot import Snapshot
from groupmq.core.worker_options import WORKER_DEFAULTS, ProcessArguments, WorkerArguments
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.protocol.requesters import Predecessor, Request
from groupmq.runtime.emitter import Emitter, Listener

if TYPE_CHECKING:
    from groupmq.client.queue.queue import Queue
    from groupmq.worker.worker import Worker

T = TypeVar("T")

_NO_PROGRESS: Any = object()


class QueueRuntime(PartitionedMethods):
    """A queue in any number of event loops, which may also run its workers."""

    def _set_up_client(self) -> None:
        self._local = Locality(self._connection, self._send_adds, self._send_gets)
        self._workers = OwnWorkers(self, self.name, self.logger)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def _call(self, call: Call[T], /) -> T:
        if self._local.waiting:
            await self._local.subscribe()
        return await self._connection.call(call)

    # Partitions

    def _make_parts(self, n: int) -> tuple[Queue, ...]:
        parts = super()._make_parts(n)
        for kind in KINDS:
            for listener in self._local.listeners.listeners(kind):
                for part in parts:
                    part._local.listen(kind, listener)
        return parts

    async def _open_once(self) -> None:
        here = self._local.here()
        if here.opening is None or here.opening.done():
            here.opening = asyncio.ensure_future(self._connection.ready())
            # The waiting task may have been cancelled, and asyncio logs an error that is never retrieved.
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
        return await added_apart(self, drafts, await self._call(commands.add(drafts)))

    async def _send_gets(self, ids: Sequence[str]) -> list[Job | Exception | None]:
        return list(await self.get_jobs_by_id(ids))

    async def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        if self._local.waiting:
            await self._local.subscribe()
        connection, session = self._connection, self._connection.session

        async def add(chunk: Chunk, request: Request, before: Predecessor | None) -> list[Job]:
            if before and not session.opened:
                await before.succeeded()  # the first call opens the queue
            drafts, call = chunk
            return await added_together(self, drafts, await connection.call(call, request=request, follows=before))

        return [job for jobs in await pipelined(chunks, session.requesters, add) for job in jobs]

    # Listening

    async def _events(self, since: str | None) -> AsyncGenerator[Event, None]:
        channels = [queue._local.here().channel for queue in await self._logs()]
        async for event in followed(subscription_of(channels, since)):
            yield event

    @property
    def _listeners(self) -> Emitter:
        return self._local.listeners

    def _listen(self, event: str, listener: Listener) -> None:
        for queue in (self, *(self._parts or ())):
            queue._local.listen(event, listener)
        with contextlib.suppress(RuntimeError):
            self._spawn(self._start_listening())

    async def _start_listening(self) -> None:
        try:
            for queue in await self._learn() or (self,):
                await queue._local.subscribe()
        except GroupMQError:
            self.logger.warning("queue %s: cannot subscribe to events yet; the next call will try again", self.name)

    # What jobs ask of their queue

    def _result_of(self, job: Snapshot, timeout: float | None) -> Coroutine[Any, Any, Any]:
        here = self._local.here()
        return here.results.of(here.channel, job, timeout)

    def _listen_to(self, job: Job, event: str, listener: Listener) -> JobListeners:
        listeners = self._local.here().channel.listeners_of(job.id, job._created_ms)
        listeners.on(event, listener)
        return listeners

    def _stop_listening_to(self, listeners: JobListeners, event: str, listener: Listener) -> bool:
        return listeners.off(event, listener)

    async def _report_run(self, job: Job, *, progress: Any = _NO_PROGRESS, line: str | None = None) -> None:
        """Store what a handler reports; see `Job.report_progress` and `Job.log`."""
        if line is not None:
            await append_log(self, job.id, job.fence, line)
        if progress is not _NO_PROGRESS:
            await report_progress(self, job.id, job.fence, progress)
            job.progress = progress
            if job._on_progress is not None:
                job._on_progress(job, progress)

    # Working

    @shows_options(WorkerArguments, WORKER_DEFAULTS)
    def process(
        self, handler: Callable[[Any], Any] | None = None, concurrency: int = 1, **options: Unpack[ProcessArguments]
    ) -> Processing:
        """Build a worker for this queue and start it; it is closed with the queue. Can be used as a decorator.

        >>> worker = await queue.process(handle, concurrency=10)
        >>> @queue.process(concurrency=10)
        ... async def handle(job): ...

        Awaited, it returns the worker when it has started, or raises if it cannot. Not awaited, the worker starts in
        the background in a running event loop, else with `async with queue` or `work()`.

        Options:
            concurrency: Jobs that run at once.
            name: The name in `get_workers` and in log lines. Default: the queue and the id of the worker.
            logger: An object with the methods of a logger; True: the console.
            heartbeat: The time between two renewals of leases. Default: a third of `job_timeout`.
            max_attempts: How many attempts a job has if it does not set a number itself. Default: the queue's.
            backoff: How long a job without its own back-off waits for its next attempt. Default: the queue's.
            on_error: Called with the error and the job of each failed attempt; without a job if the server is out of
                reach.
            maintenance: Whether this worker also runs the scheduler, the recovery and the clean-up.
            cleanup_interval: The time between two clean-ups.
            stalled_interval: The longest time between two checks for expired leases. Usually a check comes when a lease
                is due.
            max_stalled: A job whose lease has expired more often than this fails for good.
            blocking_timeout: The longest time for which one read waits for work.
            atomic_completion: Whether one call may report outcomes and take new jobs.
            batch_size: Jobs of one turn, in an exclusive queue. Default: `concurrency`.
            batch: The handler gets up to this many jobs of one group, as a list.
            batch_wait: How long a group waits for its batch to fill.
            on_startup: Awaited before the first job; every handler finds the value that it returns in `job.context`.
            on_shutdown: Awaited after the last job.
            prefetch: `auto`: jobs are prefetched while handlers are short. A number: at most that many; 0: none.
            executor: Where a `def` handler runs.
            middleware: Hooks around each run.
            unreachable_timeout: `run` raises ConnectionLost when the server has been out of reach for this long.
                Default: it tries for ever.
        """
        return Processing(
            self._workers, lambda given: self._make_worker(given, concurrency=concurrency, **options), handler
        )

    def _make_worker(self, handler: Callable[[Job], Any], **options: Unpack[WorkerArguments]) -> Worker:
        """A worker that is closed with the queue."""
        from groupmq.worker.worker import Worker

        worker = Worker(cast("Queue", self), handler, **options)
        self._workers.add(worker)
        return worker

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The workers made by `process`."""
        return self._workers.made

    async def work(self) -> None:
        """Run the workers made by `process` until the queue is closed, or this is cancelled."""
        try:
            await self._workers.run()
        finally:
            await cast("Queue", self).close()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self) -> None:
        await self._workers.start_all()

    async def _end(self) -> None:
        here = self._local.here()
        while here.adding:
            await asyncio.wait(here.adding)
        await here.adds.drain()
        await self._workers.close()
        for task in tuple(self._tasks):
            if task.get_loop() is asyncio.get_running_loop():
                task.cancel()
        await here.channel.close()
