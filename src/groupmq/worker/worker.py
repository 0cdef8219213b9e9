"""The worker: wires desk, heartbeat and maintenance together, and gives them a life."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from groupmq import commands
from groupmq import middleware as middlewares
from groupmq.backoff import BackoffPolicy
from groupmq.checks import Logger
from groupmq.connection import BlockingConnection
from groupmq.durations import Duration, seconds
from groupmq.emitter import Listener
from groupmq.errors import ConfigurationError, ConnectionLost, GroupMQError
from groupmq.ids import new_id
from groupmq.job import Job
from groupmq.operations import Operations
from groupmq.options import WorkerOptions
from groupmq.queue import Queue
from groupmq.version import __version__
from groupmq.worker.desk import Desk, WorkerMetrics
from groupmq.worker.heartbeat import Heartbeat
from groupmq.worker.maintenance import Maintenance
from groupmq.worker.pools import ProcessRunner, ThreadRunner

Handler = Callable[[Job], Any]
_GOODBYE = 1.0
"""Seconds beyond its timeout that a closing worker spends on giving jobs back."""


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """A job that runs in this worker, and for how many seconds already."""

    job: Job
    processing_time: float


@dataclass(frozen=True, slots=True)
class Health:
    """How a worker is. `alive`: its loop has advanced lately. `ready`: the server has answered lately."""

    alive: bool
    ready: bool
    loop_seen: float
    """Seconds since the event loop was seen to advance."""
    server_seen: float
    """Seconds since the server last answered."""


class Worker:
    """Runs the jobs of a queue.

    >>> async def handle(job: Job) -> None:
    ...     print("processing", job.data)
    >>> await Worker(queue, handle, concurrency=8).run()
    """

    def __init__(
        self,
        queue: Queue,
        handler: Handler,
        *,
        concurrency: int = 1,
        name: str | None = None,
        logger: Logger | None = None,
        heartbeat: Duration | None = None,
        max_attempts: int | None = None,
        backoff: BackoffPolicy | Duration | None = None,
        on_error: Callable[..., Any] | None = None,
        maintenance: bool = True,
        cleanup_interval: Duration = 60,
        stalled_interval: Duration = 30,
        max_stalled: int | None = None,
        blocking_timeout: Duration = 5,
        atomic_completion: bool = True,
        batch_size: int | None = None,
        prefetch: Literal["auto"] | int = "auto",
        executor: Literal["thread", "process"] = "thread",
        middleware: Sequence[Any] = (),
        unreachable_timeout: Duration | None = None,
    ) -> None:
        if not isinstance(queue, Queue):
            raise ConfigurationError.expected("queue", "a groupmq.Queue", queue)
        if not callable(handler):
            raise ConfigurationError.expected("handler", "a callable that takes a job", handler)
        self.id = f"{queue.name}-{new_id()}"
        self.options = WorkerOptions.checked(
            queue.options,
            self.id,
            concurrency=concurrency,
            name=name,
            logger=logger,
            heartbeat=heartbeat,
            max_attempts=max_attempts,
            backoff=backoff,
            on_error=on_error,
            maintenance=maintenance,
            cleanup_interval=cleanup_interval,
            stalled_interval=stalled_interval,
            max_stalled=max_stalled,
            blocking_timeout=blocking_timeout,
            atomic_completion=atomic_completion,
            batch_size=batch_size,
            prefetch=prefetch,
            executor=executor,
            middleware=middlewares.checked(middleware),
            unreachable_timeout=unreachable_timeout,
        )
        self.queue = queue
        self.name = self.options.name
        self.logger = self.options.logger
        self._runner: ThreadRunner | ProcessRunner | None = None
        serializer, attempts = queue.options.serializer, self.options.max_attempts
        operations: Operations[Job] = Operations(
            queue.options, lambda job_id, state, stored: Job(queue, serializer, job_id, state, stored, attempts)
        )
        invoke = middlewares.around(self.options.middleware, self._invoker(handler))
        self._desk = Desk(self.id, self.options, operations, queue.connection, invoke)
        self._heartbeat = Heartbeat(
            # A beat that hangs must be given up in time for the next one to save the leases.
            lambda: BlockingConnection(
                queue.connection.endpoint,
                queue.options,
                own=True,
                timeout=min(max(self.options.heartbeat, 0.2), 10.0),
            ),
            self.id,
            self.options.heartbeat,
            queue.options.job_timeout_ms,
            self._desk.held,
            self._presence,
            self._leases_lost,
            self._tick_heard,
            self._cancel_heard,
            self.logger,
        )
        self._desk.last_beat = lambda: self._heartbeat.last_beat
        self._maintenance = Maintenance(self.options, self._desk, operations, queue.run)
        self._state: Literal["new", "starting", "running", "closing", "closed"] = "new"
        self._started = self._loop_seen = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None
        self._start_over = asyncio.Event()

    def _invoker(self, handler: Handler) -> Callable[[Job], Awaitable[Any]]:
        """How to call the handler so that it can be awaited."""
        called = handler if inspect.isroutine(handler) else getattr(handler, "__call__", handler)  # noqa: B004
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called):
            if self.options.executor == "process":
                raise ConfigurationError("executor: 'process' needs a plain `def` handler, not `async def`")
            return handler
        kind = ProcessRunner if self.options.executor == "process" else ThreadRunner
        self._runner = kind(handler, self.options.concurrency, self.name)
        return self._runner

    # Life

    async def run(self, *, burst: bool = False) -> None:
        """Work until closed; with `burst`, until nothing is runnable. Cancelling this closes the worker at once.

        Raises ConnectionLost if the server was out of reach for longer than `unreachable_timeout`.
        """
        await self.start()
        try:
            while self._state == "running" and self._desk.gave_up is None:
                self._desk.changed.clear()
                if burst and self._desk.fetcher.idle and not self.is_processing():
                    break
                await self._desk.changed.wait()
        except asyncio.CancelledError:
            await self.close(timeout=0)
            raise
        gave_up = self._desk.gave_up
        await self.close(timeout=30 if gave_up is None else 0)
        if gave_up is not None:
            patience = self.options.unreachable_timeout
            raise ConnectionLost(f"worker {self.name!r} gave up: no answer for {patience:g} s ({gave_up})") from gave_up

    async def start(self) -> Self:
        """Start working in the background. Raises if the server cannot be reached or disagrees on settings."""
        if self._state == "starting":
            await self._start_over.wait()
        if self._state == "running":
            return self
        if self._state != "new":
            raise GroupMQError(f"worker {self.name!r} is {self._state}; make a new one")
        self._state = "starting"
        self._start_over.clear()
        try:
            await self.queue.connection.call(commands.counts())
        except BaseException:
            if self._state == "starting":
                self._state = "new"
            raise
        finally:
            self._start_over.set()
        if self.is_closed():
            return self
        self._state = "running"
        self._loop = asyncio.get_running_loop()
        self._started = self._loop_seen = self._desk.last_reached = time.monotonic()
        self._heartbeat.start()
        self._desk.executor.context = copy_context()
        self._desk.fetcher.start()
        if self.options.maintenance:
            self._maintenance.start()
        self._desk.events.emit("ready")
        return self

    async def close(self, timeout: Duration = 30) -> None:
        """Take nothing new from now on, wait for what runs, then cancel it and give it back unharmed.

        A second call with a shorter timeout shortens the first: `close(timeout=0)` gives everything back at once.
        """
        limit = seconds(timeout, "timeout")
        if self._state in ("new", "starting"):
            self._state = "closed"
        if self._state == "closed":
            return
        if self._closing is None:
            self._state = "closing"
            self._desk.shut()
            self._desk.hurry(limit)
            self._closing = asyncio.get_running_loop().create_task(self._close())
        else:
            self._desk.hurry(limit)
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._desk.runs_ended()
        try:
            async with asyncio.timeout(_GOODBYE):
                self._desk.give_back()
                if not await self._desk.runs_ended(grace=_GOODBYE / 2):
                    # A handler that will not end: its job goes back without it, its lease must not outlive us.
                    self._desk.executor.abandon_all()
                await self._desk.fetcher.flushed()
                self._heartbeat.stop()
                await asyncio.to_thread(self._heartbeat.join, _GOODBYE / 4)
                await self._desk.fetcher.stop_watching()
                lanes = [lane.name for lane in self._desk.fetcher.lanes]
                await self.queue.connection.call(commands.leave([self.id], lanes), patience=0.0)
        except (TimeoutError, GroupMQError) as error:
            self.logger.warning(
                "worker %s left without a word (%r); what it held comes back by itself", self.name, error
            )
        self._heartbeat.abandon()
        await self._maintenance.close()
        await self._desk.fetcher.close()
        if self._runner is not None:
            self._runner.close()
        self._state = "closed"
        self._desk.changed.set()
        self._desk.events.emit("closed")

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What the heartbeat asks for and tells, from its thread

    def _presence(self) -> str:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._see_loop)
        return json.dumps(
            {
                "name": self.name,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "concurrency": self.options.concurrency,
                "current_jobs": len(self._desk.executor.runs),
                "jobs": [run.job.id for run in tuple(self._desk.executor.runs.values())[:100]],
                "heartbeat": self.options.heartbeat,
                "version": __version__,
            }
        )

    def _see_loop(self) -> None:
        self._loop_seen = time.monotonic()

    def _leases_lost(self, lost: Sequence[tuple[str, int]]) -> None:
        loop = self._loop
        for _, token in lost:
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._desk.executor.lease_lost, token)

    def _tick_heard(self, wait_ms: int) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._desk.tick, wait_ms)

    def _cancel_heard(self, cancelled: Sequence[int]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._desk.executor.cancel, cancelled)

    # Looking

    def is_processing(self) -> bool:
        return bool(self._desk.executor.runs)

    def is_closed(self) -> bool:
        return self._state == "closed"

    def get_current_jobs(self) -> list[CurrentJob]:
        """Running jobs, the longest-running first."""
        now = time.monotonic()
        return [CurrentJob(run.job, now - run.started) for run in self._desk.executor.runs.values()]

    def get_current_job(self) -> CurrentJob | None:
        jobs = self.get_current_jobs()
        return jobs[0] if jobs else None

    def health(self) -> Health:
        """Whether the event loop advances, and whether the server answers; each measured, neither assumed."""
        now, limit = time.monotonic(), 3 * self.options.heartbeat + 1
        reached = max(self._desk.last_reached, self._heartbeat.last_beat)
        running = self._state in ("running", "closing")
        return Health(
            alive=running and now - self._loop_seen <= limit,
            ready=self._state == "running" and now - reached <= limit,
            loop_seen=now - self._loop_seen,
            server_seen=now - reached,
        )

    def get_worker_metrics(self) -> WorkerMetrics:
        metrics = self._desk.metrics
        metrics.running = len(self._desk.executor.runs)
        metrics.advances = self._desk.fetcher.advances
        metrics.uptime = time.monotonic() - self._started if self._started else 0.0
        return metrics

    # Listening

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener` for an event of this worker. It may be sync or async; what it raises is logged."""
        return self._desk.events.on(event, listener)

    def off(self, event: str, listener: Listener) -> bool:
        return self._desk.events.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        self._desk.events.remove_all(event)

    def __repr__(self) -> str:
        return f"<Worker {self.name!r} {self._state}, {len(self._desk.executor.runs)} running>"
