"""The public state of a worker: its runs, its health, its counters, its events."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Literal

from groupmq.core.worker_options import WorkerOptions
from groupmq.runtime.emitter import Listener
from groupmq.worker.consumer_set import ConsumerSet
from groupmq.worker.health import CurrentJob, Health
from groupmq.worker.reachability import Reachability
from groupmq.worker.telemetry import Telemetry, WorkerMetrics


class WorkerView:
    """The methods of a worker that only read its state or listen to it."""

    name: str
    _options: WorkerOptions
    _state: Literal["new", "starting", "running", "closing", "closed"]
    _made: float
    _started: float
    _telemetry: Telemetry
    _reachability: Reachability
    _consumers: ConsumerSet | None

    @property
    def concurrency(self) -> int:
        """How many jobs this worker runs at once."""
        return self._options.concurrency

    @property
    def heartbeat(self) -> float:
        """Seconds between two renewals of its leases, by the settings that it was made with."""
        return self._options.heartbeat

    def is_processing(self) -> bool:
        """Whether this worker runs a job."""
        return self._consumers is not None and self._consumers.is_processing

    def is_closed(self) -> bool:
        """Whether the worker has been closed."""
        return self._state == "closed"

    def get_current_jobs(self) -> list[CurrentJob]:
        """Running jobs, the longest-running first."""
        return [] if self._consumers is None else self._consumers.current_jobs()

    def get_current_job(self) -> CurrentJob | None:
        """The job that has run longest; None if none runs."""
        jobs = self.get_current_jobs()
        return jobs[0] if jobs else None

    def health(self) -> Health:
        """Whether the event loop advances, and whether the server answers. Both are measured."""
        if self._consumers is not None:
            health = self._consumers.health()
            return replace(health, alive=False, ready=False) if self._state == "closed" else health
        now = time.monotonic()
        return Health(
            alive=False,
            ready=False,
            loop_seen=now - self._made,
            server_seen=now - self._reachability.last_answer,
        )

    def get_worker_metrics(self) -> WorkerMetrics:
        """The counters of this worker up to now, as a copy that does not change."""
        if self._consumers is None:
            return replace(self._telemetry.metrics)
        uptime = time.monotonic() - self._started
        return replace(self._telemetry.metrics, **self._consumers.measures(), uptime=uptime)

    # Listening

    def on(self, event: str, listener: Listener) -> Listener:
        """Call `listener` for an event of this worker. It may be sync or async; an error that it raises is logged."""
        return self._telemetry.events.on(event, listener)

    def off(self, event: str, listener: Listener) -> bool:
        """Stop calling `listener`; True if it was listening."""
        return self._telemetry.events.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        """Stop calling all listeners, or those of one event."""
        self._telemetry.events.remove_all(event)

    def __repr__(self) -> str:
        return f"<Worker {self.name!r} {self._state}, {len(self.get_current_jobs())} running>"
