"""What a worker uses of a queue object beside its public methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from groupmq.client.answers.jobs import MakeJob
from groupmq.client.duties.duty import PeriodicDuty
from groupmq.client.duties.queue_duties import QueueDuties
from groupmq.client.job import Job
from groupmq.client.queue.caller import Caller
from groupmq.client.queue.queue import Queue
from groupmq.core.job_log import Expiry, Stall
from groupmq.core.record import Stored
from groupmq.protocol.commands import Policy


class QueueAccess:
    """A queue, or one partition of a queue, as a worker uses it.

    The private names of a queue that a worker needs are read here only, so that they can change without the worker.
    """

    __slots__ = ("call", "connection", "endpoint", "keys", "known", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.connection = queue._connection
        """For the calls of the worker itself."""
        self.call: Caller = queue._call
        """For its duties: as the methods of the queue, whose listeners receive the events of the call."""
        self.endpoint = self.connection.endpoint
        self.keys = self.connection.session.keys
        self.known = self.connection.session.known
        """What is known of the settings, for other connections to the same queue or partition."""

    async def partitions(self) -> list[QueueAccess]:
        """The partitions; none if the queue is not partitioned."""
        return [QueueAccess(part) for part in await self.queue._learn()]

    def duties(self, policy: Callable[[], Policy]) -> QueueDuties:
        """The duties of a worker, under its policy."""
        return self.queue._make_duties(policy)

    @property
    def cleanup_across_partitions(self) -> PeriodicDuty:
        """The duty that concerns all partitions. Each partition has duties of its own."""
        return self.queue._cleanup

    def log_ended_by_time(self, stalled: Iterable[Stall], expired: Iterable[Expiry]) -> None:
        self.queue._log_ended_by_time(stalled, expired)

    def job_maker(self, max_attempts: int, on_progress: Callable[[Any, Any], None], context: Any) -> MakeJob[Job]:
        """Makes jobs for handlers. `on_progress` gets a job and what it has reported; `context`: of `job.context`."""
        queue, serializer = self.queue, self.queue.options.serializer

        def make(job_id: str, state: str, stored: Stored) -> Job:
            job = Job(queue, serializer, job_id, state, stored, max_attempts, on_progress)
            if context is not None:
                job.context = context
            return job

        return make
