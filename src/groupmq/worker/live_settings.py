"""The settings by which a worker treats its jobs. Those of the queue may change while the worker runs.

Every call names the revision of the settings it uses, and the server refuses an outdated one (`lua/lib/meta.lua`). So
the queue object learns of a change with the next call or heartbeat of the worker, and the parts of the worker ask here
each time they need a setting, instead of keeping it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from groupmq.core.backoff import BackoffPolicy
from groupmq.core.queue_options import OnFailed, OnRetry, QueueOptions
from groupmq.core.worker_options import WorkerOptions
from groupmq.protocol.commands import Policy


class HasOptions(Protocol):
    """A queue."""

    @property
    def options(self) -> QueueOptions: ...


class Effective(NamedTuple):
    """The settings in force: the worker's own where it was given any, else the queue's."""

    lease_ms: int
    heartbeat: float
    """Seconds between two renewals."""
    max_attempts: int
    """The number of attempts of a job that sets none."""
    backoff: BackoffPolicy
    on_retry: OnRetry
    on_failed: OnFailed
    keeps_completed: bool
    policy: Policy


class LiveSettings:
    """The settings of one worker. May be asked from any thread."""

    def __init__(self, queue: HasOptions, options: WorkerOptions) -> None:
        self._queue = queue
        self._options = options
        self._made_of = queue.options, effective(queue.options, options)
        self._on_change: list[Callable[[], None]] = []

    def on_change(self, notify: Callable[[], None]) -> None:
        """Call `notify` in the thread that notices a change first, before it acts on the new settings."""
        self._on_change.append(notify)

    def now(self) -> Effective:
        made_of, found = self._made_of
        options = self._queue.options
        if options is not made_of:
            found = effective(options, self._options)
            self._made_of = options, found
            for notify in self._on_change:
                notify()
        return found

    @property
    def queue(self) -> QueueOptions:
        return self._queue.options


def effective(queue: QueueOptions, worker: WorkerOptions) -> Effective:
    attempts = queue.max_attempts if worker.own_max_attempts is None else worker.own_max_attempts
    lease = queue.job_timeout_ms / 1000
    # An interval that was fit for the lease at the start may be too long for one that was made shorter since.
    beat = worker.own_heartbeat
    return Effective(
        lease_ms=queue.job_timeout_ms,
        heartbeat=lease / 3 if beat is None or beat >= lease else beat,
        max_attempts=attempts,
        backoff=queue.backoff if worker.own_backoff is None else worker.own_backoff,
        on_retry=queue.on_retry,
        on_failed=queue.on_failed,
        keeps_completed=queue.keep_completed.count != 0,
        policy=Policy(attempts, worker.max_stalled, queue.keep),
    )
