"""A consumer of a worker: it takes and runs the jobs of one queue, or of one partition of a queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal

from groupmq.client.job import Job
from groupmq.client.queue.access import QueueAccess
from groupmq.core.errors import GroupMQError
from groupmq.protocol import commands
from groupmq.worker.health import CurrentJob, Health
from groupmq.worker.leases.loop_watch import LoopWatch
from groupmq.worker.life.deadline import Deadline
from groupmq.worker.life.leaving import leave
from groupmq.worker.life.starting import start_when_reachable
from groupmq.worker.outage import START
from groupmq.worker.parts import ConsumerSetup, Cooperation, make_parts
from groupmq.worker.reachability import Reachability


class Consumer:
    """Has connections, leases and duties of its own. All consumers of a worker share its handler, name and slots."""

    def __init__(
        self,
        setup: ConsumerSetup,
        cooperation: Cooperation,
        access: QueueAccess,
        reachability: Reachability,
        loop_watch: LoopWatch,
        on_change: Callable[[], None],
        *,
        beats: bool,
    ) -> None:
        """`on_change` is called when a run has ended, and when nothing is ready.

        `beats`: its heartbeat reports that the worker is alive. Otherwise that begins with the first job.
        """
        self._access = access
        self._connection = access.connection
        self._reachability = reachability
        self._options = setup.options
        self._on_change = on_change
        self._watch = loop_watch
        self._beats = beats
        self._changed = asyncio.Event()
        self._state: Literal["new", "running", "closing", "closed"] = "new"
        self._deadline = Deadline(self._changed)
        self._parts = make_parts(setup, cooperation, access, reachability, loop_watch, self._has_changed)
        if not beats:
            self._parts.dispatcher.on_first_jobs(self._parts.heartbeat.start)

    def _has_changed(self) -> None:
        self._changed.set()
        self._on_change()

    # Life

    async def start_when_reachable(self) -> None:
        """Begin to work once the server answers, unless the worker closes or gives up first."""
        await start_when_reachable(
            self._start,
            self._reachability,
            self._changed,
            lambda: self._state == "new",
            self._options.unreachable_timeout,
        )

    async def _start(self, patience: float) -> None:
        began = time.monotonic()
        await self._connection.ready(patience)
        await self._connection.call(commands.counts(), patience)
        self._reachability.reached(began, START)
        if self._state == "new":
            self.begin()

    def begin(self) -> None:
        """Begin to work. Handlers see the context variables that are set where this is called."""
        self._state = "running"
        parts = self._parts
        parts.leases.start(asyncio.get_running_loop())
        if self._beats:
            parts.heartbeat.start()
        parts.executor.use_context_of_caller()
        parts.fetcher.start()
        if self._options.maintenance:
            parts.maintenance.start()

    def begin_burst(self) -> None:
        """From now on, wait for no job that may become ready (`Demand.begin_burst`)."""
        self._parts.fetcher.begin_burst()

    def poke(self) -> None:
        """There may be work: ask for it."""
        self._parts.fetcher.poke()

    def stop_taking(self, limit: float) -> None:
        """Take nothing new from now on, and give running jobs `limit` seconds to end. May be called again with less."""
        if self._state == "new":
            self._state = "closed"
        elif self._state == "running":
            self._state = "closing"
            self._parts.fetcher.stop_taking()
            self._parts.dispatcher.shut()
        self._deadline.hurry(limit)

    async def leave(self) -> None:
        """Wait for running jobs until the deadline, give back the others, and deregister. Call `stop_taking` first."""
        if self._state != "closing":
            return
        options, parts = self._options, self._parts
        await leave(options.name, self._access, parts, self._deadline, options.logger)
        parts.heartbeat.abandon()
        parts.executor.close()
        await parts.maintenance.close()
        await parts.fetcher.close()

    def abandon(self) -> None:
        """End its thread: the event loop of the worker is closed."""
        self._parts.heartbeat.abandon()

    # State

    @property
    def is_processing(self) -> bool:
        return self._parts.executor.slots_used > 0

    @property
    def is_idle(self) -> bool:
        """Whether it works and, as far as it knows, has nothing to do."""
        return self._state == "running" and self._parts.fetcher.idle and not self.is_processing

    async def has_ready_job(self) -> bool:
        """Whether a waiting job may start now, according to the server; True if the server does not answer."""
        try:
            return await self._connection.call(commands.runnable(), patience=0.0)
        except GroupMQError as error:
            self._reachability.unreached(error)
            return True

    @property
    def gave_up(self) -> BaseException | None:
        """Why it gave up: its server was out of reach for too long."""
        return self._reachability.gave_up

    @property
    def advances(self) -> int:
        """How many calls about jobs the server has answered."""
        return self._parts.fetcher.advances

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._parts.executor.current())

    def current_jobs(self, now: float) -> list[CurrentJob]:
        return [CurrentJob(job, now - started) for job, started in self._parts.executor.current()]

    def running_tasks(self) -> list[tuple[Job, asyncio.Task[None] | None]]:
        """Called from any thread."""
        return self._parts.executor.running_tasks()

    def health(self) -> Health:
        now, limit, watch = time.monotonic(), 3 * self._options.heartbeat + 1, self._watch
        answered = self._reachability.last_answer
        running = self._state in ("running", "closing")
        return Health(
            alive=running and now - watch.seen <= limit,
            ready=self._state == "running" and now - answered <= limit,
            loop_seen=now - watch.seen,
            server_seen=now - answered,
            blocked_for=watch.blocked_for,
            blocked_in=watch.blocked_in,
        )
