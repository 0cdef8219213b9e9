"""The worker: wires fetcher, executor, heartbeat and maintenance together."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

from groupmq import backoff as backoffs
from groupmq import commands
from groupmq.backoff import BackoffPolicy
from groupmq.commands import Policy, Stalled, Taken
from groupmq.connection import BlockingConnection, WakeConnection
from groupmq.durations import Duration, seconds
from groupmq.errors import ConfigurationError, GroupMQError
from groupmq.ids import new_id
from groupmq.job import Job
from groupmq.operations import Operations
from groupmq.options import MAX_ATTEMPTS, Logger, WorkerOptions, flag, one_of, text, whole
from groupmq.queue import Queue
from groupmq.record import Record
from groupmq.version import __version__
from groupmq.worker.emitter import Emitter, Listener
from groupmq.worker.executor import Executor, Run
from groupmq.worker.fetcher import Fetcher
from groupmq.worker.heartbeat import Heartbeat
from groupmq.worker.maintenance import Maintenance
from groupmq.worker.outcome import Judge, Report
from groupmq.worker.pools import ProcessRunner, ThreadRunner

Handler = Callable[[Job], Any]
EVENTS = (
    "ready",
    "active",
    "completed",
    "retrying",
    "failed",
    "stalled",
    "progress",
    "lease-lost",
    "error",
    "graceful-timeout",
    "drained",
    "closed",
)


@dataclass(frozen=True, slots=True)
class CurrentJob:
    """A job that runs in this worker, and for how many seconds already."""

    job: Job
    processing_time: float


@dataclass(slots=True)
class WorkerMetrics:
    """Counters of one worker object."""

    name: str
    completed: int = 0
    retried: int = 0
    failed: int = 0
    released: int = 0
    lease_lost: int = 0
    stalled_seen: int = 0
    connection_errors: int = 0
    advances: int = 0
    running: int = 0
    uptime: float = 0.0

    @property
    def processed(self) -> int:
        return self.completed + self.retried + self.failed


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
        prefetch: Literal["auto"] | int = "auto",
        executor: Literal["thread", "process"] = "thread",
    ) -> None:
        if not isinstance(queue, Queue):
            raise ConfigurationError.expected("queue", "a groupmq.Queue", queue)
        if not callable(handler):
            raise ConfigurationError.expected("handler", "a callable that takes a job", handler)
        if on_error is not None and not callable(on_error):
            raise ConfigurationError.expected("on_error", "a callable (exc, job)", on_error)
        if prefetch != "auto":
            whole(prefetch, "prefetch", 0, 10_000)
        settings = queue.options
        lease = settings.job_timeout_ms / 1000
        beat = lease / 3 if heartbeat is None else seconds(heartbeat, "heartbeat", minimum=0.01)
        if beat >= lease:
            raise ConfigurationError.expected("heartbeat", f"less than job_timeout ({lease:g} s)", heartbeat)
        self.id = f"{settings.name}-{new_id()}"
        self.options = WorkerOptions(
            concurrency=whole(concurrency, "concurrency", 1, 10_000),
            name=self.id if name is None else text(name, "name"),
            logger=logging.getLogger("groupmq.worker") if logger is None else logger,
            heartbeat=beat,
            max_attempts=settings.max_attempts
            if max_attempts is None
            else whole(max_attempts, "max_attempts", 1, MAX_ATTEMPTS),
            backoff=settings.backoff if backoff is None else backoffs.checked(backoff, "backoff"),
            on_error=on_error,
            maintenance=flag(maintenance, "maintenance"),
            cleanup_interval=seconds(cleanup_interval, "cleanup_interval", minimum=0.01),
            stalled_interval=seconds(stalled_interval, "stalled_interval", minimum=0.01),
            max_stalled=-1 if max_stalled is None else whole(max_stalled, "max_stalled", 0, MAX_ATTEMPTS),
            blocking_timeout=seconds(blocking_timeout, "blocking_timeout", minimum=0.05),
            atomic_completion=flag(atomic_completion, "atomic_completion"),
            executor="process" if one_of(executor, "executor", "thread", "process") == "process" else "thread",
        )
        self.queue = queue
        self.name = self.options.name
        self.logger = self.options.logger
        self.policy = Policy(self.options.max_attempts, self.options.max_stalled, settings.keep)
        self._operations: Operations[Job] = Operations(settings, self._make_job)
        self._emitter = Emitter(EVENTS, self.logger)
        self._metrics = WorkerMetrics(self.name)
        self._runner: ThreadRunner | ProcessRunner | None = None
        self._executor = Executor(self._invoker(handler), Judge(settings, self.options.backoff), self._run_ended)
        self._fetcher: Fetcher | None = None
        self._heartbeat: Heartbeat | None = None
        self._maintenance: Maintenance | None = None
        self._state: Literal["new", "running", "closing", "closed"] = "new"
        self._changed = asyncio.Event()
        self._started = 0.0
        self._worked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None

    def _make_job(self, job_id: str, state: str, stored: Record) -> Job:
        return Job(self.queue, self.queue.options.serializer, job_id, state, stored, self.options.max_attempts)

    def _invoker(self, handler: Handler) -> Callable[[Job], Awaitable[Any]]:
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
        """Work until closed; with `burst`, until nothing is runnable. Cancelling this closes the worker at once."""
        await self.start()
        try:
            while self._state == "running":
                self._changed.clear()
                if burst and self._is_done():
                    break
                await self._changed.wait()
        except asyncio.CancelledError:
            await self.close(timeout=0)
            raise
        await self.close()

    async def start(self) -> Self:
        """Start working in the background. Raises if the server cannot be reached or disagrees on settings."""
        if self._state != "new":
            if self._state == "running":
                return self
            raise GroupMQError(f"worker {self.name!r} is {self._state}; make a new one")
        self._state = "running"
        self._loop = asyncio.get_running_loop()
        self._started = time.monotonic()
        endpoint, settings = self.queue.connection.endpoint, self.queue.options
        try:
            await self.queue.connection.call(commands.counts())
        except BaseException:
            self._state = "new"
            raise
        self._fetcher = Fetcher(
            self,
            self.queue.connection,
            lambda: WakeConnection(
                endpoint, self.queue.connection.dialogue.keys.wake, self.options.blocking_timeout
            ),
            worker=self.id,
            concurrency=self.options.concurrency,
            lease_ms=settings.job_timeout_ms,
            policy=self.policy,
            longest_sleep=self.options.stalled_interval,
            atomic=self.options.atomic_completion,
        )
        self._heartbeat = Heartbeat(
            lambda: BlockingConnection(endpoint, settings, own=True),
            self.id,
            self.options.heartbeat,
            settings.job_timeout_ms,
            self._executor.held,
            self._presence,
            self._leases_lost,
            self.logger,
        )
        self._heartbeat.start()
        self._fetcher.start()
        if self.options.maintenance:
            self._maintenance = Maintenance(self, self._operations)
            self._maintenance.start()
        self._emitter.emit("ready")
        return self

    async def close(self, timeout: Duration = 30) -> None:
        """Take nothing new from now on, wait for what runs, then cancel it and give it back unharmed."""
        limit = seconds(timeout, "timeout")
        if self._state == "new":
            self._state = "closed"
            return
        if self._closing is None:
            self._state = "closing"
            self._closing = asyncio.get_running_loop().create_task(self._close(limit))
        await asyncio.shield(self._closing)

    async def _close(self, timeout: float) -> None:
        assert self._fetcher is not None and self._heartbeat is not None
        self._fetcher.stop_taking()
        self._changed.set()
        await self._wait_for_runs(timeout)
        for run in list(self._executor.runs.values()):
            self._emitter.emit("graceful-timeout", run.job)
            self._executor.stop(run, "closing")
        try:
            async with asyncio.timeout(1.0):
                # A handler that will not end is given back without it; its lease must not outlive the worker.
                await self._wait_for_runs(0.5)
                for run in list(self._executor.runs.values()):
                    self._executor._abandon(run)
                await self._fetcher.flushed()
                lanes = [lane.name for lane in self._fetcher.lanes]
                self._heartbeat.stop()
                await asyncio.get_running_loop().run_in_executor(None, self._heartbeat.join, 0.2)
                await self.queue.connection.call(commands.leave([self.id], lanes), patience=0.0)
        except (TimeoutError, GroupMQError) as error:
            self.logger.warning("worker %s could not say goodbye (%r); its leases expire by themselves", self.name, error)
        self._heartbeat.stop()
        if self._maintenance is not None:
            await self._maintenance.close()
        await self._fetcher.close()
        if self._runner is not None:
            self._runner.close()
        self._state = "closed"
        self._changed.set()
        self._emitter.emit("closed")

    async def _wait_for_runs(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while self._executor.runs and (left := end - loop.time()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                return

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _is_done(self) -> bool:
        return self._fetcher is not None and self._fetcher.idle and not self._executor.runs

    # What the fetcher asks for and tells

    def room(self) -> int:
        return self.options.concurrency - len(self._executor.runs)

    def take_on(self, taken: list[Taken], now: int) -> None:
        listening = self._emitter.emit
        self._worked = True
        for one in taken:
            job = self._operations.job_taken(one, now, self.name)
            if self._state != "running":
                # Taken by a call that was under way when closing began.
                self._send(Report(job, commands.released(job.id, job.fence), "released"))
                continue
            listening("active", job)
            self._executor.start(job)

    def _run_ended(self, run: Run, report: Report | None) -> None:
        if report is None:
            self._lost(run.job)
        else:
            if report.error is not None:
                self._tell(report.error, run.job)
            self._send(report)
        self._changed.set()

    def _send(self, report: Report) -> None:
        assert self._fetcher is not None
        self._fetcher.report(report)

    def accepted(self, report: Report) -> None:
        job, event = report.job, report.event
        if event == "completed":
            self._metrics.completed += 1
            job.attempts_made += 1
            job.state, job._raw_result = "completed", report.result
            job._finished_ms = int(time.time() * 1000)
        elif event == "released":
            self._metrics.released += 1
            job.state = "waiting"
            return
        else:
            job.attempts_made += 1
            job.failed_reason, job.stacktrace = report.outcome[0][-2:]
        if event == "retrying":
            self._metrics.retried += 1
            job.state = "delayed" if report.outcome[0][4] or job.group_id is None else "waiting"
            self._emitter.emit("retrying", job, report.error)
            return
        if event == "failed":
            self._metrics.failed += 1
            job.state = "failed"
            job._finished_ms = int(time.time() * 1000)
        self._emitter.emit(event, job)

    def refused(self, report: Report) -> None:
        """The server says the lease is another's: nothing of this run was recorded."""
        self._lost(report.job)

    def _lost(self, job: Job) -> None:
        self._metrics.lease_lost += 1
        self.logger.warning("worker %s lost the lease of job %s; its outcome was not recorded", self.name, job.id)
        self._emitter.emit("lease-lost", job)

    def stalled(self, stalled: Stalled) -> None:
        self._metrics.stalled_seen += 1
        self.logger.warning(
            "job %s stalled: its lease expired, %s", stalled.id, "it failed for good" if stalled.final else "it runs again"
        )
        self._emitter.emit("stalled", stalled.id, stalled.group_id)

    def trouble(self, error: BaseException) -> None:
        self._metrics.connection_errors += 1
        self.logger.warning("worker %s: %s; trying again", self.name, error)
        self._tell(error, None)

    def _tell(self, error: BaseException, job: Job | None) -> None:
        if job is None:
            self._emitter.emit("error", error)
        if self.options.on_error is not None:
            try:
                outcome = self.options.on_error(error, job)
                if inspect.isawaitable(outcome):
                    task = asyncio.ensure_future(outcome)
                    task.add_done_callback(lambda done: done.cancelled() or done.exception())
            except BaseException as broken:
                self.logger.error("on_error raised %s: %s", type(broken).__name__, broken)

    def dry(self) -> None:
        """Nothing is ready."""
        if self._worked and not self._executor.runs:
            self._worked = False
            self._emitter.emit("drained")
        self._changed.set()

    # What the heartbeat asks for and tells, from its thread

    def _presence(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "concurrency": self.options.concurrency,
                "current_jobs": len(self._executor.runs),
                "heartbeat": self.options.heartbeat,
                "version": __version__,
            }
        )

    def _leases_lost(self, lost: Sequence[tuple[str, int]]) -> None:
        assert self._loop is not None
        for _, token in lost:
            try:
                self._loop.call_soon_threadsafe(self._executor.lease_lost, token)
            except RuntimeError:
                return  # the loop is closed, and every run with it

    # Looking

    def is_processing(self) -> bool:
        return bool(self._executor.runs)

    def is_closed(self) -> bool:
        return self._state == "closed"

    def get_current_jobs(self) -> list[CurrentJob]:
        """Running jobs, the longest-running first."""
        now = time.monotonic()
        return [CurrentJob(run.job, now - run.started) for run in self._executor.runs.values()]

    def get_current_job(self) -> CurrentJob | None:
        jobs = self.get_current_jobs()
        return jobs[0] if jobs else None

    def get_worker_metrics(self) -> WorkerMetrics:
        metrics = self._metrics
        metrics.running = len(self._executor.runs)
        metrics.advances = self._fetcher.advances if self._fetcher else 0
        metrics.uptime = time.monotonic() - self._started if self._started else 0.0
        return metrics

    # Listening

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener` for an event of this worker. It may be sync or async; what it raises is logged."""
        return self._emitter.on(event, listener)

    def off(self, event: str, listener: Listener) -> bool:
        return self._emitter.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        self._emitter.remove_all(event)

    def __repr__(self) -> str:
        return f"<Worker {self.name!r} {self._state}, {len(self._executor.runs)} running>"
