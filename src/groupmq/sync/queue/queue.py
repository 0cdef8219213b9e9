"""The blocking queue: what it has beside the parts that both clients share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from groupmq.client.connection.endpoint import Endpoint
from groupmq.client.events import JobListeners
from groupmq.core import middleware as middlewares
from groupmq.core.drafts import Draft
from groupmq.core.durations import Duration, seconds
from groupmq.core.errors import ConfigurationError
from groupmq.core.events import Event
from groupmq.core.job_log import JobLog
from groupmq.core.options import QUEUE_DEFAULTS, QueueArguments, QueueOptions
from groupmq.core.signatures import shows_options
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.sync.connection.connections import BlockingConnection
from groupmq.sync.job import Job
from groupmq.sync.listening import Listeners, Listening
from groupmq.sync.queue.base import Chunk
from groupmq.sync.queue.methods import QueueMethods

T = TypeVar("T")


class Queue(QueueMethods):
    """A queue of jobs. Jobs of one group run strictly in order, one at a time; groups run in parallel.

    >>> with Queue("orders") as queue:
    ...     queue.add({"amount": 999}, group_id="user:42", max_attempts=5)
    """

    @shows_options(QueueArguments, QUEUE_DEFAULTS)
    def __init__(self, name: str, redis: Any = None, **options: Unpack[QueueArguments]) -> None:
        self._given = options
        checked = QueueOptions.checked(name, options)
        self.name = checked.name
        self.logger = checked.logger or logging.getLogger("groupmq.queue")
        self._job_log = JobLog(self.logger, self.name)
        self._endpoint = Endpoint.of(redis)
        self._connection = BlockingConnection(self._endpoint, checked)
        self._middleware = middlewares.checked(options.get("middleware", ()))
        self._listening = Listening(self._endpoint, self._connection.session)
        self._listeners = Listeners(self._listening, self.name)

    def _call(self, call: Call[T], /) -> T:
        return self._connection.call(call)

    # Adding

    def _submit(self, draft: Draft) -> Job:
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
        if not self._connection.session.opened:
            self._call(commands.counts())  # whether there are events is stored with the queue
        self._require_events()
        return self._listening.follow(since)

    def on(self, event: str, listener: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call `listener(event)`, in a thread of its own, for events of all workers in all processes."""
        self._require_events()
        self._listeners.on(event, listener)
        return listener

    def off(self, event: str, listener: Callable[[Event], Any]) -> bool:
        return self._listeners.off(event, listener)

    def remove_all_listeners(self, event: str | None = None) -> None:
        self._listeners.remove_all(event)

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
        self._listeners.remove_all()
        self._listening.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
