"""A worker of a queue with partitions: one member for each of them, with common slots, a common handler, one name.

A member is a worker in itself: it takes jobs of its partition, keeps their leases and runs the duties there. If a
primary is away, only its members stop. On a single server one connection waits for work of all partitions. In a
cluster, where a blocking read can name keys of one slot only, each member has its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from groupmq.client.job import Job
from groupmq.client.queue.queue import Queue
from groupmq.core import middleware as middlewares
from groupmq.core.tasks import end_tasks
from groupmq.worker.closing import Closing
from groupmq.worker.common_wake import ROUNDS, CommonWake
from groupmq.worker.duties.presence import AcrossPartitions
from groupmq.worker.duties.runner import DutyRunner
from groupmq.worker.health import Health
from groupmq.worker.hooks import Hooks
from groupmq.worker.loop_watch import LoopWatch
from groupmq.worker.parts import make_parts
from groupmq.worker.runners import preparing_of
from groupmq.worker.sharing import SharedSlots
from groupmq.worker.telemetry import Telemetry
from groupmq.worker.worker import Worker

LEAST, TURN = 16, 0.05
"""Slots that a partition gets at least, and seconds for which it keeps them while it has work. With 64 busy partitions
and 32 slots, two of them are served at a time by calls for several jobs, and each has its turn within two seconds."""
_PATIENCE = 3.0
"""Seconds that the start of a worker waits for its members. Those that cannot reach their server go on trying."""


class MemberTelemetry(Telemetry):
    """Events of a member are events of the worker, except `drained`: only all members together drain the queue."""

    def __init__(self, whole: Telemetry, on_drained: Callable[[], None]) -> None:
        self.__dict__.update(whole.__dict__)
        self._on_drained = on_drained

    def drained(self) -> None:
        self._on_drained()


class SameContext(Hooks):
    """The hooks of the worker have run already."""

    def __init__(self, context: Any) -> None:
        self._shared = context

    async def start_up(self) -> Any:
        return self._shared

    async def shut_down(self, limit: float) -> None:
        pass


class Member(Worker):
    """The worker of one partition. It has the id and the name of the whole worker."""

    def __init__(self, crew: Crew, owner: Worker, queue: Queue, *, beats: bool, in_cluster: bool) -> None:
        self.id, self.name, self.logger = owner.id, owner.name, owner.logger
        self.queue = queue
        self.options = owner.options
        self._handler, self._given, self._runner = owner._handler, owner._given, None
        self._changed = asyncio.Event()
        self._on_change = crew.changed
        self._telemetry = MemberTelemetry(owner._telemetry, crew.drained)
        self._hooks = SameContext(owner._dispatcher.context)
        self._state = "new"
        self._started = 0.0
        self._loop = self._process = None
        self._deadline = Closing(self._changed)
        self._closing = None
        self._closers = set()
        self._start_over = asyncio.Event()
        self._is_shared, self._crew, self._slots = True, None, crew.slots
        invoke = middlewares.around(self.options.middleware, owner._invoke)
        self._use_parts(
            make_parts(
                self.id,
                queue,
                self.options,
                self._telemetry,
                invoke,
                self._has_changed,
                crew.slots,
                loop_watch=crew.watch,
                # On one server they would log the same outage once each. In a cluster each may have its own primary.
                outage=None if in_cluster else owner._reachability.outage,
                preparing=preparing_of(owner._runner),
                watches_marker=in_cluster,
                rounds=ROUNDS,
            )
        )
        # A partition without a job of this worker needs no heartbeat. In one partition the worker reports that it
        # lives.
        self._beats = beats
        if not beats:
            self._dispatcher.before_first_job = self._heartbeat.start

    def _adopt_settings(self) -> None:
        pass  # the worker has just adopted them; later changes are read each time they are needed

    def _begin_work(self, loop: asyncio.AbstractEventLoop) -> None:
        self._leases.start(loop)
        if self._beats:
            self._heartbeat.start()
        self._executor.use_context_of_caller()
        self._fetcher.start()
        if self.options.maintenance:
            self._maintenance.start()

    def _stop_watching_loop(self) -> None:
        pass  # the others need it

    async def _emit_ready(self) -> None:
        pass

    async def _emit_closed(self) -> None:
        pass


class Crew:
    """The members of one worker."""

    def __init__(self, owner: Worker, partitions: Sequence[Queue]) -> None:
        self._owner = owner
        options = owner.options
        self.slots = owner._slots or SharedSlots(options.concurrency, least=LEAST, turn=TURN)
        self.watch = LoopWatch(options.name, self._running_tasks, options.logger)
        self._drained = False
        endpoint = partitions[0]._connection.endpoint
        in_cluster = endpoint.slots is not None
        self._members = [
            Member(self, owner, queue, beats=at == 0, in_cluster=in_cluster) for at, queue in enumerate(partitions)
        ]
        for member in self._members:
            member._fetcher.waits_for_batches = owner._fetcher.waits_for_batches
        self._wake: CommonWake | None = None
        if not in_cluster:
            markers = [queue._connection.session.keys.wake for queue in partitions]
            fetchers = [member._fetcher for member in self._members]
            self._wake = CommonWake(endpoint, markers, fetchers, self.slots, options.blocking_timeout)
        self._cleanup = DutyRunner(
            AcrossPartitions(owner.queue._clean_across), options.cleanup_interval, owner._reachability
        )
        self._starts: list[asyncio.Task[None]] = []
        self._closes: list[asyncio.Task[None]] = []

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def _running_tasks(self) -> list[tuple[Job, asyncio.Task[None] | None]]:
        return [run for member in self._members for run in member._executor.running_tasks()]

    # Life

    async def start(self) -> None:
        """Start all of them; those that cannot reach their server start when it is back, and the others work."""
        loop = asyncio.get_running_loop()
        self.slots.defer = loop.call_soon
        self.watch.start()
        self._starts = [loop.create_task(member._start_when_reachable()) for member in self._members]
        done, _ = await asyncio.wait(self._starts, timeout=_PATIENCE)
        errors = [start.exception() for start in done if not start.cancelled() and start.exception() is not None]
        if errors and errors[0] is not None:
            await self.close(0.0)
            raise errors[0]
        for start in self._starts:
            start.add_done_callback(self._started)
        if self._wake is not None:
            self._wake.start()
        if self._owner.options.maintenance:
            self._cleanup.start()

    def _started(self, start: asyncio.Task[None]) -> None:
        error = None if start.cancelled() else start.exception()
        if error is not None:
            self._owner.logger.error(
                "worker %s: one partition is not served: %s. The others go on", self._owner.name, error
            )

    def changed(self) -> None:
        """A member may have become idle, or gives up."""
        if self._drained and all(member._is_idle() for member in self._members):
            self._drained = False
            self._owner._telemetry.drained()
        self._owner._has_changed()

    def drained(self) -> None:
        """A member has worked, and has nothing more to do."""
        self._drained = True

    @property
    def gave_up(self) -> BaseException | None:
        """Give up only if all members did: as long as one primary can be reached there may be work."""
        errors = [member._reachability.gave_up for member in self._members]
        return errors[0] if all(error is not None for error in errors) else None

    def hurry(self, limit: float) -> None:
        """Close all of them: nothing new is taken from now on."""
        for member in self._members:
            self._closes.append(asyncio.get_running_loop().create_task(member.close(limit)))

    async def close(self, limit: float) -> None:
        self.hurry(limit)
        await self._cleanup.close()
        if self._wake is not None:
            await self._wake.close()
        while self._closes:
            closes, self._closes = self._closes, []
            await asyncio.gather(*closes)
        await end_tasks(self._starts)
        self.watch.stop()

    # Looking

    def health(self) -> Health:
        """The health of all members. The worker is ready while one of its servers answers: a restart would not help."""
        found = [member.health() for member in self._members]
        return replace(
            max(found, key=lambda health: health.blocked_for),
            alive=any(health.alive for health in found),
            ready=any(health.ready for health in found),
            server_seen=min(health.server_seen for health in found),
        )

    def measures(self) -> dict[str, Any]:
        return {
            "running": sum(len(member._executor.current()) for member in self._members),
            "advances": sum(member._fetcher.advances for member in self._members),
            "loop_blocked": self.watch.blocked_for,
            "loop_blocks": self.watch.blocks,
        }
