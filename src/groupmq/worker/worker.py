"""The worker: its life from start to close. The work is done by its consumers, which are made when it starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from groupmq.client.job import Job
from groupmq.client.queue.access import QueueAccess
from groupmq.client.queue.queue import Queue
from groupmq.core import middleware as middlewares
from groupmq.core.durations import Duration, seconds
from groupmq.core.errors import ConfigurationError, ConnectionLost, GroupMQError
from groupmq.core.ids import new_id
from groupmq.core.signatures import shows_options
from groupmq.core.worker_options import WORKER_DEFAULTS, WorkerArguments, WorkerOptions
from groupmq.protocol import commands
from groupmq.runtime.loops import this_process
from groupmq.worker.consumer_set import ConsumerSet
from groupmq.worker.life.bequest import bequest_of, take_back
from groupmq.worker.life.burst import is_over
from groupmq.worker.life.deadline import Deadline
from groupmq.worker.life.hooks import Hooks, StartupRaised
from groupmq.worker.life.leaving import GOODBYE
from groupmq.worker.life.starting import not_a_queue, start_when_reachable
from groupmq.worker.outage import START, outage_log
from groupmq.worker.parts import ConsumerSetup
from groupmq.worker.reachability import Reachability
from groupmq.worker.runners import checked_handler, invoker, preparing_of
from groupmq.worker.sharing import Membership
from groupmq.worker.telemetry import Telemetry
from groupmq.worker.view import WorkerView

Handler = Callable[[Job], Any]
BatchHandler = Callable[[list[Job]], Any]


class Worker(WorkerView):
    """Runs the jobs of a queue.

    >>> async def handle(job: Job) -> None:
    ...     print("processing", job.data)
    >>> await Worker(queue, handle, concurrency=8).run()

    With `batch`, the handler gets a list of jobs of one group, in order, or of jobs without a group.
    """

    @shows_options(WorkerArguments, WORKER_DEFAULTS)
    def __init__(self, queue: Queue, handler: Handler | BatchHandler, **options: Unpack[WorkerArguments]) -> None:
        """Check the handler and the options. No job is taken before `run` or `start`.

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
        if not isinstance(queue, Queue):
            raise not_a_queue(queue)
        checked_handler(handler)
        self.id = f"{queue.name}-{new_id()}"
        self.queue = queue
        self._access = QueueAccess(queue)
        self._handler = handler
        self._changed = asyncio.Event()
        """Set when the state of the worker or of its runs may have changed."""
        self._membership: Membership | None = None
        """Set once it has joined other workers."""
        self._state: Literal["new", "starting", "running", "closing", "closed"] = "new"
        self._made = time.monotonic()
        self._started = 0.0
        self._runner: Any = None
        self._given = options
        self._use_options(options, self.id)
        self._telemetry = Telemetry(queue.options, self._options)
        self._reachability = Reachability(
            outage_log(self.name, queue.name, self.logger),
            self._telemetry,
            self._options.unreachable_timeout,
            self._has_changed,
        )
        self._hooks = Hooks(self._options, self.name)
        self._bursts = False
        self._consumers: ConsumerSet | None = None
        """The parts that do the work; made when the worker starts."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process: object = None
        self._deadline = Deadline(self._changed)
        self._closing: asyncio.Task[None] | None = None
        self._closers: set[asyncio.Task[Any] | None] = set()
        self._start_over = asyncio.Event()

    def _use_options(self, given: WorkerArguments, default_name: str) -> None:
        """Check the options against the settings of the queue, and make the callable that runs the handler."""
        found = self.queue.options
        options = WorkerOptions.checked(found, default_name, given)  # if it raises, nothing has changed
        invoke, runner = invoker(self._handler, options)
        if self._runner is not None:
            self._runner.close()
        self._used, self._checked_for = given, found
        self._options, self.name, self.logger = options, options.name, options.logger
        self._runner = runner
        self._invoke = middlewares.around(options.middleware, invoke)

    def _has_changed(self) -> None:
        self._changed.set()
        if self._membership is not None:
            self._membership.on_change()

    def _join(self, membership: Membership) -> None:
        """Work together with other workers from now on (workers.py)."""
        if self._state != "new" or self._membership is not None:
            raise ConfigurationError(f"workers: worker {self.name!r} is in use already")
        self._membership = membership

    def _adopt_settings(self) -> None:
        """Check the options again if the stored settings of the queue differ from those that the worker was made for,
        or if its slots are those of several workers.

        Raises ConfigurationError if they do not fit, before any job is taken.
        """
        given = self._given
        if self._membership is not None:
            total = self._membership.slots.total
            given = given.copy()
            given["concurrency"] = min(total, given.get("concurrency", total))
        if given != self._used or self.queue.options.as_stored != self._checked_for.as_stored:
            self._use_options(given, self.name)
            self._telemetry.adopt(self.queue.options)

    # Life

    async def run(self, *, burst: bool = False) -> None:
        """Work until closed; with `burst`, until nothing is runnable. Cancelling this closes the worker at once.

        While the server is away, at the start too, the worker keeps trying. Raises ConnectionLost if the server was out
        of reach for longer than `unreachable_timeout`. At the start this also raises errors that another try would not
        fix: settings that differ, or credentials that are refused.
        """
        await self._run(burst=burst)

    async def _run(self, *, burst: bool, bursts_later: bool = False) -> None:
        """`bursts_later`: this run is part of a burst that ends when no worker has anything to do."""
        try:
            self._bursts = burst or bursts_later
            if self._bursts and self._consumers is not None:
                self._consumers.begin_burst()
            await self._start_when_reachable()
            while self._state == "running" and self._gave_up is None:
                if burst and await is_over([self], self._changed):
                    break
                await self._changed.wait()
                self._changed.clear()
        except asyncio.CancelledError:
            await self.close(timeout=0)
            raise
        gave_up = self._gave_up
        await self.close(timeout=30 if gave_up is None else 0)
        if gave_up is not None:
            patience = self._options.unreachable_timeout
            raise ConnectionLost(f"worker {self.name!r} gave up: no answer for {patience:g} s ({gave_up})") from gave_up

    @property
    def _gave_up(self) -> BaseException | None:
        return self._reachability.gave_up if self._consumers is None else self._consumers.gave_up

    def _is_idle(self) -> bool:
        """Whether it works and, as far as it knows, has nothing to do."""
        return self._consumers is not None and self._consumers.is_idle

    async def _has_ready_job(self) -> bool:
        """Whether a waiting job may start now, according to the server; True if the server does not answer."""
        return self._consumers is None or await self._consumers.has_ready_job()

    async def start(self) -> Self:
        """Start working in the background. Raises if the server cannot be reached for 3 s, or if settings differ.

        Asynchronous listeners of "ready" have ended when this returns; the first job is taken after that.
        """
        try:
            return await self._start(self._access.connection.patience)
        except StartupRaised as raised:
            raise raised.error from None

    async def _start_when_reachable(self, wanted: Callable[[], bool] = lambda: True) -> None:
        """Start, however long the server is away, unless the worker is closed, gives up or is no longer `wanted`."""
        if self.is_closed():
            await self._start(0.0)  # raises the error
        try:
            await start_when_reachable(
                self._start,
                self._reachability,
                self._changed,
                lambda: not self.is_closed() and wanted(),
                self._options.unreachable_timeout,
            )
        except StartupRaised as raised:
            raise raised.error from None

    async def _start(self, patience: float) -> Self:
        if self._state == "starting":
            await self._start_over.wait()
        if self._state == "running":
            return self
        if self._state != "new":
            raise GroupMQError(f"worker {self.name!r} is {self._state}; make a new one")
        self._state = "starting"
        self._start_over.clear()
        began, connection = time.monotonic(), self._access.connection
        try:
            await connection.ready(patience)
            partitions = await self._access.partitions()
            if not partitions:
                await connection.call(commands.counts(), patience)
            self._adopt_settings()
            self._reachability.reached(began, START)
            context = await self._hooks.start_up()
            await self._telemetry.events.emit_and_wait("ready")
        except StartupRaised:
            self._state = "closed"
            self._has_changed()
            raise
        except BaseException:
            await self._hooks.shut_down(GOODBYE)
            if self._state == "starting":
                self._state = "new"
            raise
        finally:
            self._start_over.set()
        if self.is_closed():
            await self._hooks.shut_down(GOODBYE)
            return self
        self._state = "running"
        self._loop, self._process = asyncio.get_running_loop(), this_process()
        self._started = time.monotonic()
        self._consumers = self._make_consumers(partitions, context)
        try:
            await self._consumers.start()
        except asyncio.CancelledError:
            # Only some of its partitions would have been served, and nothing would have waited for their work.
            await self.close(timeout=0)
            raise
        except Exception:
            # All its consumers are closed. A worker that stayed "running" would look alive and serve nothing.
            self._state = "closed"
            await self._hooks.shut_down(GOODBYE)
            self._has_changed()
            raise
        return self

    def _make_consumers(self, partitions: Sequence[QueueAccess], context: Any) -> ConsumerSet:
        setup = ConsumerSetup(
            worker=self.id,
            options=self._options,
            telemetry=self._telemetry,
            invoke=self._invoke,
            preparing=preparing_of(self._runner),
            context=context,
        )
        slots = None if self._membership is None else self._membership.slots
        consumers = ConsumerSet(setup, self._access, partitions, self._reachability, slots, self._has_changed)
        if self._bursts:
            consumers.begin_burst()
        return consumers

    async def close(self, timeout: Duration = 30) -> None:
        """Take no new jobs, wait for the running ones, then cancel those that still run and give them back.

        A job that is given back uses no attempt. A second call with a shorter timeout shortens the first:
        `close(timeout=0)` gives everything back at once.
        """
        limit = seconds(timeout, "timeout")
        if self._state in ("new", "starting"):
            self._state = "closed"
            self._has_changed()
        if self._state == "closed" or self._is_elsewhere():
            return
        self._deadline.hurry(limit)
        if self._consumers is not None:
            self._consumers.stop_taking(limit)
        if self._closing is None:
            self._state = "closing"
            self._closing = asyncio.get_running_loop().create_task(self._close())
        # A listener (of "drained", for example) that closes the worker waits for the closing, so the closing must not
        # wait for that listener.
        self._closers.add(asyncio.current_task())
        await asyncio.shield(self._closing)

    def _is_elsewhere(self) -> bool:
        """True if there is nothing to close here: the worker ran in a loop that is closed, or in a parent process."""
        loop = self._loop
        if loop is asyncio.get_running_loop():
            return False
        if self._process is this_process():
            if loop is not None and not loop.is_closed():
                raise GroupMQError(f"worker {self.name!r} runs in another event loop; close it there")
            if self._consumers is not None:
                self._consumers.abandon()
        self._state = "closed"
        return True

    async def _close(self) -> None:
        if self._consumers is not None:
            await self._consumers.leave()
        if self._runner is not None:
            self._runner.close()
        await self._hooks.shut_down(self._deadline.left(GOODBYE))
        self._state = "closed"
        self._has_changed()
        events = self._telemetry.events
        events.emit("closed")
        await events.wait_for_listeners(self._deadline.left(GOODBYE), self._closers)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # After its process has died

    def bequest(self) -> str | None:
        """The text that `Worker.take_back` needs after the process of this worker has died. It holds the server's URL.

        None if the leases have to expire: the queue was made with your own client, or handlers run in processes, which
        outlive the worker.
        """
        return bequest_of(self.id, self._options, self._access)

    @staticmethod
    async def take_back(bequest: str) -> list[str]:
        """End the leases of a worker whose process has ended, and return the ids of the jobs that were running.

        Each of them uses an attempt, as after a stall. Call this only if the process is known to be gone, for
        example from the parent that has waited for it. If the process were alive, its jobs would run twice at once.
        """
        return await take_back(bequest)


async def start_in_background(worker: Worker, wanted: Callable[[], bool]) -> None:
    """Start a worker of `queue.process`, however long the server is away, unless it is no longer `wanted`."""
    await worker._start_when_reachable(wanted)
