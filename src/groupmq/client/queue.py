"""The queue, asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from groupmq.client import operations
from groupmq.client.browsing import Browsing
from groupmq.client.changes import Acting
from groupmq.client.connection.connections import Connection, Endpoint
from groupmq.client.duties import Duties
from groupmq.client.events import JobListeners
from groupmq.client.inspection import Looking
from groupmq.client.job import Job
from groupmq.client.locality import Locality
from groupmq.client.operations import Operations
from groupmq.client.oversight import Overseeing
from groupmq.client.processing import Processing, Workers
from groupmq.client.repeats import Repeating
from groupmq.core import middleware as middlewares
from groupmq.core.backoff import DEFAULT, BackoffPolicy
from groupmq.core.checks import Logger
from groupmq.core.codec import JSON, Serializer
from groupmq.core.draft_chain import JobDraft
from groupmq.core.drafts import Draft, check, draft
from groupmq.core.durations import Duration, Instant, seconds
from groupmq.core.emitter import Listener
from groupmq.core.errors import ConfigurationError, GroupFull, GroupMQError
from groupmq.core.events import Event, Position
from groupmq.core.job_log import JobLog
from groupmq.core.limits import Dedupe, RateLimit
from groupmq.core.options import Fairness, OnRetry, QueueOptions, Retention
from groupmq.core.ordering import Ordering
from groupmq.core.record import Stored
from groupmq.core.schedule import Repeat
from groupmq.protocol.commands import Added

if TYPE_CHECKING:
    from groupmq.worker.worker import Worker

T = TypeVar("T")


class Queue(Looking, Browsing, Acting, Overseeing):
    """A queue of jobs. Jobs of one group run strictly in order, one at a time; groups run in parallel.

    >>> async with Queue("orders") as queue:
    ...     await queue.add({"amount": 999}, group_id="user:42", max_attempts=5)
    """

    def __init__(
        self,
        name: str,
        redis: Any = None,
        *,
        job_timeout: Duration = 30,
        max_attempts: int = 3,
        backoff: BackoffPolicy | Duration = DEFAULT,
        on_retry: OnRetry = "hold",
        keep_completed: int | Retention = 100,
        keep_failed: int | Retention = 100,
        ordering: Ordering | None = None,
        fairness: Fairness = "oldest",
        group_concurrency: int = 1,
        exclusive: bool = False,
        rate_limit: RateLimit | None = None,
        group_rate_limit: RateLimit | None = None,
        max_group_size: int | None = None,
        priority_ageing: Duration | None = None,
        events: bool = True,
        middleware: Sequence[Any] = (),
        max_payload: int = 1024 * 1024,
        serializer: Serializer = JSON,
        prefix: str = "groupmq",
        logger: Logger | Literal[True] | None = None,
    ) -> None:
        self.options = QueueOptions.checked(
            name,
            job_timeout=job_timeout,
            max_attempts=max_attempts,
            backoff=backoff,
            on_retry=on_retry,
            keep_completed=keep_completed,
            keep_failed=keep_failed,
            ordering=ordering,
            fairness=fairness,
            group_concurrency=group_concurrency,
            exclusive=exclusive,
            rate_limit=rate_limit,
            group_rate_limit=group_rate_limit,
            max_group_size=max_group_size,
            priority_ageing=priority_ageing,
            events=events,
            max_payload=max_payload,
            serializer=serializer,
            prefix=prefix,
            logger=logger,
        )
        self.name = self.options.name
        self.logger = self.options.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = Endpoint.of(redis)
        self._connection = Connection(self._endpoint, self.options)
        self._operations: Operations[Job] = Operations(self.options, self._make_job)
        self._repeating = Repeating(self._operations)
        self._duties = Duties(self._operations, self._repeating)
        self._middleware = middlewares.checked(middleware)
        self._local = Locality(self._connection, self._send_adds, self._send_gets)
        self._workers = Workers(self, self.name, self.logger)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def _make_job(self, job_id: str, state: str, stored: Stored) -> Job:
        return Job(self, self.options.serializer, job_id, state, stored, self.options.max_attempts)

    async def _run(self, steps: operations.Steps[T]) -> T:
        """Carry out an operation: make each call it yields, and send back the answer."""
        await self._local.listeners_placed()
        return await self._connection.carry(steps)

    # Adding

    async def add(
        self,
        data: Any,
        *,
        group_id: str | None = None,
        order_ms: int | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        run_at: Instant | None = None,
        max_attempts: int | None = None,
        timeout: Duration | None = None,
        backoff: BackoffPolicy | Duration | None = None,
        on_retry: OnRetry | None = None,
        job_id: str | None = None,
        ttl: Duration | None = None,
        dedupe: Dedupe | None = None,
        repeat: Repeat | None = None,
    ) -> Job:
        """Add a job. Once this returns, the job runs to completion or is recorded as failed, whatever dies.

        An existing `job_id` adds nothing: the existing job is returned with `job.duplicate` set. With `repeat` a job
        is defined that is added anew at each tick; what is returned is its next occurrence, which exists from its
        tick on.
        """
        given: dict[str, Any] = {
            "group_id": group_id,
            "order_ms": order_ms,
            "priority": priority,
            "delay": delay,
            "run_at": run_at,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "backoff": backoff,
            "on_retry": on_retry,
            "job_id": job_id,
            "ttl": ttl,
            "dedupe": dedupe,
            "headers": middlewares.headers(self._middleware),
        }
        if repeat is not None:
            job = await self._run(self._repeating.add(data, repeat, **given))
            if self._job_log.debugging():
                self._job_log.repeats(job)
            return job
        return await self._local.here().adds.add(draft(self.options, data, **given))

    async def _send_adds(self, drafts: Sequence[Any]) -> list[Job | GroupFull]:
        jobs = await self._run(self._operations.add(drafts))
        if self._job_log.debugging():
            self._job_log.added(jobs)
        return jobs

    async def _send_gets(self, ids: Sequence[str]) -> list[Job | Exception | None]:
        return list(await self._run(self._operations.get_jobs_by_id(ids)))

    async def add_many(self, items: Iterable[Mapping[str, Any] | JobDraft[Any]]) -> list[Job]:
        """Add many jobs, in order, atomically per 100. A bad item is refused before anything is written."""
        await self._local.listeners_placed()
        jobs: list[Job] = []
        chunks = self._operations.chunks(items, middlewares.headers(self._middleware))
        chunk = next(chunks, None)
        before: tuple[Sequence[Draft], Added] | None = None
        while chunk is not None:
            drafts, call = chunk
            flight = asyncio.ensure_future(self._connection.call(call))
            try:
                # The call leaves first; while the server works on it, we do our own work for its neighbours.
                await asyncio.sleep(0)
                if before is not None:
                    jobs += await self._added(*before)
                chunk = next(chunks, None)
                before = drafts, await flight
            finally:
                flight.cancel()
        if before is not None:
            jobs += await self._added(*before)
        return jobs

    async def _added(self, drafts: Sequence[Draft], answer: Added) -> list[Job]:
        jobs = await self._run(self._operations.added(drafts, answer))
        if self._job_log.debugging():
            self._job_log.added(jobs)
        return jobs

    def create_job(self, data: Any) -> JobDraft[Coroutine[Any, Any, Job]]:
        """A job to be described step by step, then saved: `await queue.create_job(d).group("g").delay(5).save()`."""
        return JobDraft(self.options, self.add, data)

    def check_job(self, fields: Mapping[str, Any]) -> None:
        """Raise what `add_many` would raise for this item; nothing is sent."""
        check(self.options, fields)

    async def save_all(self, drafts: Iterable[JobDraft[Any]]) -> list[Job]:
        """Save many drafts at once, in order."""
        return await self.add_many(drafts)

    async def remove_repeating_job(self, group_id: str | None, repeat_or_key: Repeat | str) -> bool:
        """Stop a repeating job; what it has added already stays. False if there is no such repeat."""
        return await self._run(self._repeating.remove(group_id, repeat_or_key))

    # Time and settings

    async def reconfigure(self) -> None:
        """Store the shared settings of this object (ordering, limits ...) with the queue, whatever was there before."""
        await self._connection.drive(self._connection.dialogue.open(replace=True))
        await self.repair()

    async def run_scheduler_once(self) -> int:
        """Do everything that is due now: repeats, delayed jobs, back-offs, expired leases; how many things it did."""
        return await self._run(self._duties.run_all_due())

    async def wait_for_empty(self, timeout: Duration = 60) -> bool:
        """Wait until no job is active, waiting or delayed; False if that takes longer than `timeout`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds(timeout, "timeout")
        pause = 0.005
        while (await self.get_job_counts()).total:
            left = end - loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.25)
        return True

    # Listening

    async def events(self, since: str | None = None) -> AsyncGenerator[Event, None]:
        """What happens to the jobs of this queue, in all processes, from now on or after the event with id `since`.

        >>> async for event in queue.events():
        ...     print(event.kind, event.job_id)
        """
        self._require_events()
        async for event in self._local.here().channel.iterate(None if since is None else Position.parse(since)):
            yield event

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener(event)` for events of all workers in all processes. It may be async; what it raises is logged.

        What is done through this queue object after this is heard for sure.
        """
        self._require_events()
        self._local.listen(event, listener)
        with contextlib.suppress(RuntimeError):
            self._spawn(self._start_listening())
        return listener

    async def _start_listening(self) -> None:
        try:
            await self._local.listeners_placed()
        except GroupMQError:
            self.logger.warning("queue %s: nobody can be heard yet; the next call tries again", self.name)

    def off(self, event: str, listener: Listener) -> bool:
        return self._local.listeners.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        self._local.listeners.remove_all(event)

    def _require_events(self) -> None:
        if not self.options.events:
            raise ConfigurationError("events: this queue was made with events=False; there is nothing to listen to")

    # What jobs ask of their queue

    async def _result_of(self, job: Job, timeout: Duration | None) -> Any:
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

    async def _say(self, job: Job, *, progress: Any = operations.NOTHING, line: str | None = None) -> None:
        """What a handler says about its job; see `Job.report_progress` and `Job.log`."""
        await self._run(self._operations.say(job.id, job.fence, progress, line))
        if progress is not operations.NOTHING:
            job.progress = progress
            heard = getattr(job, "_heard", None)
            if heard is not None:
                heard(job, progress)

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
        await here.adds.drain()
        await self._workers.close()
        for task in tuple(self._tasks):
            if task.get_loop() is asyncio.get_running_loop():
                task.cancel()
        await here.channel.close()
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
