"""The consumers of a worker: one for its queue, or one for each partition of the queue, with shared slots.

Each calls the server for its own queue object. If the primary of a partition is away, only its consumer stops. On a
single server one connection waits for work in all partitions. In a cluster, where a blocking read can name keys of
one hash slot only, each consumer has its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from groupmq.client.job import Job
from groupmq.client.queue.access import QueueAccess
from groupmq.runtime.loops import soon
from groupmq.runtime.tasks import end_tasks
from groupmq.worker.consumer import Consumer
from groupmq.worker.duties.duty_runner import DutyRunner
from groupmq.worker.fetching.common_wake import ROUNDS, CommonWake
from groupmq.worker.health import CurrentJob, Health
from groupmq.worker.leases.loop_watch import LoopWatch
from groupmq.worker.outage import outage_log
from groupmq.worker.parts import ConsumerSetup, Cooperation
from groupmq.worker.reachability import Reachability
from groupmq.worker.sharing import SharedSlots

LEAST, SLICE = 16, 0.05
"""Slots that a partition gets at least, and seconds for which it keeps them while it has work. With 64 busy partitions
and 32 slots, two of them are served at a time by calls for several jobs, and each is served within two seconds."""
_PATIENCE = 3.0
"""Seconds that the start of a worker waits for its consumers. Those that cannot reach their server go on trying."""


class ConsumerSet:
    """The consumers of one worker, from its start to its close."""

    def __init__(
        self,
        setup: ConsumerSetup,
        access: QueueAccess,
        partitions: Sequence[QueueAccess],
        reachability: Reachability,
        slots: SharedSlots | None,
        on_change: Callable[[], None],
    ) -> None:
        """`partitions`: those of the queue; none if it is not partitioned. `reachability`: that of the queue itself.

        `slots`: shared with other workers; None: this worker has its own. `on_change` is called when a run has ended,
        when nothing is ready, and when a consumer gives up.
        """
        self._telemetry = setup.telemetry
        self._options = options = setup.options
        self._reachability = reachability
        self._on_change = on_change
        self._watch = LoopWatch(options.name, self._running_tasks, options.logger)
        self._wake: CommonWake | None = None
        self._cleanup: DutyRunner | None = None
        self._starts: list[asyncio.Task[None]] = []
        self._open = True
        self._has_drained = False
        if not partitions:
            alone = Cooperation(slots, setup.telemetry.drained)
            self._all = [Consumer(setup, alone, access, reachability, self._watch, self._has_changed, beats=True)]
            return
        endpoint = partitions[0].endpoint
        in_cluster = endpoint.slots is not None
        common = slots or SharedSlots(options.concurrency, least=LEAST, slice_length=SLICE, defer=soon)
        cooperation = Cooperation(common, self._consumer_drained, watches_marker=in_cluster, waits_until_asked=ROUNDS)
        self._all = [
            Consumer(
                setup,
                cooperation,
                part,
                self._reachability_of(part, in_cluster=in_cluster),
                self._watch,
                self._has_changed,
                # One consumer reports that the worker is alive. The others need a heartbeat once they have a job.
                beats=at == 0,
            )
            for at, part in enumerate(partitions)
        ]
        if not in_cluster:
            pokes = {part.keys.wake: consumer.poke for part, consumer in zip(partitions, self._all, strict=True)}
            self._wake = CommonWake(endpoint, pokes, common, options.blocking_timeout)
        self._cleanup = DutyRunner(access.cleanup_across_partitions, options.cleanup_interval, reachability)

    def _reachability_of(self, part: QueueAccess, *, in_cluster: bool) -> Reachability:
        """In a cluster each partition may have its own primary, and logs its own outages."""
        options, keys = self._options, part.keys
        words = f" in partition {keys.part.number + 1} of {keys.part.of}" if keys.part else ""
        if not in_cluster:
            return self._reachability.of_partition(words, self._has_changed)
        log = outage_log(options.name, part.queue.name + words, options.logger)
        return Reachability(log, self._telemetry, options.unreachable_timeout, self._has_changed)

    # Life

    async def start(self) -> None:
        """Start all consumers. Those whose server is away start when it is back; the others work meanwhile."""
        self._watch.start()
        if self._cleanup is None:
            try:
                self._all[0].begin()  # the worker has just called its queue
            except Exception:
                self.stop_taking(0.0)
                await self.leave()
                raise
            return
        loop = asyncio.get_running_loop()
        self._starts = [loop.create_task(consumer.start_when_reachable()) for consumer in self._all]
        done, _ = await asyncio.wait(self._starts, timeout=_PATIENCE)
        errors = [start.exception() for start in done if not start.cancelled() and start.exception() is not None]
        if errors and errors[0] is not None:
            self.stop_taking(0.0)
            await self.leave()
            raise errors[0]
        if not self._open:
            return  # the worker has been closed meanwhile
        for start in self._starts:
            start.add_done_callback(self._started)
        if self._wake is not None:
            self._wake.start()
        if self._options.maintenance:
            self._cleanup.start()

    def _started(self, start: asyncio.Task[None]) -> None:
        error = None if start.cancelled() else start.exception()
        if error is not None:
            options = self._options
            text = "worker %s: one partition is not served until the worker is restarted; the others continue: %s"
            options.logger.error(text, options.name, error)

    def begin_burst(self) -> None:
        """From now on, wait for no job that may become ready (`Demand.begin_burst`)."""
        for consumer in self._all:
            consumer.begin_burst()

    def stop_taking(self, limit: float) -> None:
        """Take nothing new from now on, and give running jobs `limit` seconds to end. May be called again with less."""
        self._open = False
        for consumer in self._all:
            consumer.stop_taking(limit)

    async def leave(self) -> None:
        """Wait for running jobs until the deadline, give back the others, and deregister. Call `stop_taking` first."""
        if self._cleanup is not None:
            await self._cleanup.close()
        if self._wake is not None:
            await self._wake.close()
        await asyncio.gather(*(consumer.leave() for consumer in self._all))
        await end_tasks(self._starts)
        self._watch.stop()

    def abandon(self) -> None:
        """End the threads: the event loop of the worker is closed."""
        for consumer in self._all:
            consumer.abandon()
        self._watch.stop()

    # What consumers report

    def _has_changed(self) -> None:
        if self._has_drained and self.is_idle:
            self._has_drained = False
            self._telemetry.drained()
        self._on_change()

    def _consumer_drained(self) -> None:
        """A queue with partitions has drained only when all of its consumers have."""
        self._has_drained = True

    # State

    @property
    def gave_up(self) -> BaseException | None:
        """The worker gives up only if all consumers did: as long as one primary can be reached there may be work."""
        errors = [consumer.gave_up for consumer in self._all]
        return errors[0] if all(error is not None for error in errors) else None

    @property
    def is_idle(self) -> bool:
        return all(consumer.is_idle for consumer in self._all)

    @property
    def is_processing(self) -> bool:
        return any(consumer.is_processing for consumer in self._all)

    async def has_ready_job(self) -> bool:
        return any([await consumer.has_ready_job() for consumer in self._all])

    def current_jobs(self) -> list[CurrentJob]:
        """Running jobs, the longest-running first."""
        now = time.monotonic()
        found = [job for consumer in self._all for job in consumer.current_jobs(now)]
        return sorted(found, key=lambda job: -job.processing_time)

    def _running_tasks(self) -> list[tuple[Job, asyncio.Task[None] | None]]:
        """Called from the thread of the watch."""
        return [run for consumer in self._all for run in consumer.running_tasks()]

    def health(self) -> Health:
        """The health of the worker. It is ready while one of its servers answers: a restart would not help."""
        found = [consumer.health() for consumer in self._all]
        return replace(
            max(found, key=lambda health: health.blocked_for),
            alive=any(health.alive for health in found),
            ready=any(health.ready for health in found),
            server_seen=min(health.server_seen for health in found),
        )

    def measures(self) -> dict[str, Any]:
        return {
            "running": sum(consumer.running for consumer in self._all),
            "advances": sum(consumer.advances for consumer in self._all),
            "loop_blocked": self._watch.blocked_for,
            "loop_blocks": self._watch.blocks,
        }
