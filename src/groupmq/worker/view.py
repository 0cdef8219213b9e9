"""What can be seen of a worker: its runs, its health, its counters, its events."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from groupmq.core.emitter import Listener
from groupmq.core.worker_options import WorkerOptions
from groupmq.worker.execution import JobExecutor
from groupmq.worker.fetcher import Fetcher
from groupmq.worker.health import CurrentJob, Health
from groupmq.worker.loop_watch import LoopWatch
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry, WorkerMetrics

if TYPE_CHECKING:
    from groupmq.worker.partitions import Crew


class WorkerView:
    """The methods of a worker that only look at it."""

    name: str
    options: WorkerOptions
    _state: Literal["new", "starting", "running", "closing", "closed"]
    _started: float
    _telemetry: Telemetry
    _executor: JobExecutor
    _fetcher: Fetcher
    _watch: LoopWatch
    _reachability: Reachability
    _crew: Crew | None

    def is_processing(self) -> bool:
        """Whether this worker runs a job."""
        if self._crew is not None:
            return any(member.is_processing() for member in self._crew)
        return self._executor.slots_used > 0

    def is_closed(self) -> bool:
        """Whether the worker has been closed."""
        return self._state == "closed"

    def get_current_jobs(self) -> list[CurrentJob]:
        """Running jobs, the longest-running first."""
        if self._crew is not None:
            found = [job for member in self._crew for job in member.get_current_jobs()]
            return sorted(found, key=lambda job: -job.processing_time)
        now = time.monotonic()
        return [CurrentJob(job, now - started) for job, started in self._executor.current()]

    def get_current_job(self) -> CurrentJob | None:
        """The job that has run longest; None if none runs."""
        jobs = self.get_current_jobs()
        return jobs[0] if jobs else None

    def health(self) -> Health:
        """Whether the event loop advances, and whether the server answers. Both are measured."""
        if self._crew is not None:
            return self._crew.health()
        now, limit = time.monotonic(), 3 * self.options.heartbeat + 1
        reached = self._reachability.last_answer
        running = self._state in ("running", "closing")
        return Health(
            alive=running and now - self._watch.seen <= limit,
            ready=self._state == "running" and now - reached <= limit,
            loop_seen=now - self._watch.seen,
            server_seen=now - reached,
            blocked_for=self._watch.blocked_for,
            blocked_in=self._watch.blocked_in,
        )

    def get_worker_metrics(self) -> WorkerMetrics:
        """The counters of this worker up to now, as a copy that does not change."""
        if self._crew is not None:
            uptime = time.monotonic() - self._started
            return replace(self._telemetry.metrics, **self._crew.measures(), uptime=uptime)
        return replace(
            self._telemetry.metrics,
            running=len(self._executor.current()),
            advances=self._fetcher.advances,
            loop_blocked=self._watch.blocked_for,
            loop_blocks=self._watch.blocks,
            uptime=time.monotonic() - self._started if self._started else 0.0,
        )

    # Listening

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener` for an event of this worker. It may be sync or async; what it raises is logged."""
        return self._telemetry.events.on(event, listener)

    def off(self, event: str, listener: Listener) -> bool:
        """Stop calling `listener`; True if it was listening."""
        return self._telemetry.events.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        """Stop calling all listeners, or those of one event."""
        self._telemetry.events.remove_all(event)

    def __repr__(self) -> str:
        return f"<Worker {self.name!r} {self._state}, {len(self.get_current_jobs())} running>"
