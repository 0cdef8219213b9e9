"""The blocking queue: what it has beside the parts that both clients share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.connection.known import KnownPart
from groupmq.client.events import JobListeners
from groupmq.core import middleware as middlewares
from groupmq.core.drafts import Draft
from groupmq.core.durations import Duration, seconds
from groupmq.core.errors import ConfigurationError
from groupmq.core.events import Event
from groupmq.core.job_log import JobLog
from groupmq.core.partitions import Part
from groupmq.core.queue_options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.signatures import shows_options
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.sync.connection.connections import BlockingConnection
from groupmq.sync.job import Job
from groupmq.sync.listening import Listeners, Listening, follow_all
from groupmq.sync.partitions.methods import PartitionedMethods
from groupmq.sync.queue.base import Chunk

T = TypeVar("T")


class Queue(PartitionedMethods):
    """A queue of jobs. Jobs of one group run strictly in order, one at a time; groups run in parallel.

    >>> with Queue("orders") as queue:
    ...     queue.add({"amount": 999}, group_id="user:42", max_attempts=5)
    """

    @shows_options(QueueArguments, QUEUE_DEFAULTS)
    def __init__(self, name: str, redis: Any = None, **options: Unpack[QueueArguments]) -> None:
        checked = QueueOptions.checked(name, options)
        self._set_up(options, checked, Endpoint.of(redis), middlewares.checked(options.get("middleware", ())))

    def _set_up(
        self,
        given: QueueArguments,
        options: QueueOptions,
        endpoint: Endpoint,
        middleware: Sequence[Any],
        known: KnownPart | None = None,
    ) -> None:
        """`known`: of a partition."""
        self._given = given
        self.name = options.name
        self.logger = options.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = endpoint
        self._connection = BlockingConnection(self._endpoint, options, known=known)
        self._middleware = middleware
        self._listening = Listening(self._endpoint, self._connection.session)
        self._listeners = Listeners(self._listening, self.name)

    def _call(self, call: Call[T], /) -> T:
        return self._connection.call(call)

    # Partitions

    def _make_parts(self, n: int) -> tuple[Queue, ...]:
        return tuple(self._make_part(Part(i, n)) for i in range(n))

    def _make_part(self, part: Part) -> Queue:
        queue, whole = Queue.__new__(Queue), self._connection
        known = KnownPart(whole.session.whole, part)
        queue._set_up(self._given, self.options, self._endpoint, self._middleware, known)
        queue._parts = ()
        queue._connection.patience = whole.patience
        queue._connection.session.confirm = whole.open
        if self._endpoint.slots is None:
            queue._connection.share_client_of(whole)
        return queue

    def _open_once(self) -> None:
        self._connection.ready()

    def _each(self, call: Callable[[Queue], T]) -> list[T]:
        found: list[T] = []
        error: Exception | None = None
        for part in self._parts or ():
            try:
                found.append(call(part))
            except Exception as raised:
                error = error or raised
        if error is not None:
            raise error
        return found

    # Adding

    def _submit(self, draft: Draft) -> Job:
        if self._learn():
            return self._spread_one(draft)
        return self._logged(self._added_together([draft], self._call(commands.add([draft], whole=True))))[0]

    def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        jobs: list[Job] = []
        for drafts, call in chunks:
            jobs += self._added_together(drafts, self._call(call))
        return self._logged(jobs)

    def _logged(self, jobs: list[Job]) -> list[Job]:
        if self._job_log.debugging():
            self._job_log.added(jobs)
        return jobs

    # Listening

    def events(self, since: str | None = None) -> Iterator[Event]:
        """What happens to the jobs of this queue, in all processes, from now on or after the event with id `since`.

        >>> for event in queue.events():
        ...     print(event.kind, event.job_id)
        """
        parts = self._learn()
        if not self._connection.session.opened:
            self._open_once()  # whether there are events is stored with the queue
        self._require_events()
        if parts:
            return follow_all([part._listening for part in parts], since)
        return self._listening.follow(since)

    def on(self, event: str, listener: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call `listener(event)`, in a thread of its own, for events of all workers in all processes."""
        self._require_events()
        for queue in self._learn() or (self,):
            queue._listeners.on(event, listener)
        return listener

    def off(self, event: str, listener: Callable[[Event], Any]) -> bool:
        found = [queue._listeners.off(event, listener) for queue in self._parts or (self,)]
        return any(found)

    def remove_all_listeners(self, event: str | None = None) -> None:
        for queue in self._parts or (self,):
            queue._listeners.remove_all(event)

    def _require_events(self) -> None:
        if not self.options.events:
            raise ConfigurationError("events: this queue is stored with events=False; there is nothing to listen to")

    def _result_of(self, job: Snapshot, timeout: Duration | None) -> Any:
        """Wait for the end of a job; see `Job.result`."""
        limit = None if timeout is None else seconds(timeout, "timeout")
        return self._listening.result_of(job, limit)

    def _listen_to(self, job: Job, event: str, listener: Callable[[Event], Any]) -> JobListeners:
        """Listen to one job; see `Job.on`."""
        self._require_events()
        return self._listening.listen_to(job, event, listener)

    def _stop_listening_to(self, listeners: JobListeners, event: str, listener: Callable[[Event], Any]) -> bool:
        """See `Job.off`."""
        return self._listening.stop_listening_to(listeners, event, listener)

    def close(self) -> None:
        """Close our connections (never the user's)."""
        for part in self._parts or ():
            part.close()
        self._listeners.remove_all()
        self._listening.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
