"""The part of a queue that blocks its thread: calls, adds and listening."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from groupmq.client.events import JobListeners
from groupmq.core.drafts import Draft
from groupmq.core.events import Event
from groupmq.core.snapshot import Snapshot
from groupmq.protocol import commands
from groupmq.protocol.commands import Call
from groupmq.runtime.emitter import Listener
from groupmq.sync.events.followed import followed
from groupmq.sync.job import Job
from groupmq.sync.listening import BlockingSubscription, Listeners, Listening
from groupmq.sync.partitions.methods import PartitionedMethods
from groupmq.sync.queue.adding import added_together
from groupmq.sync.queue.base import Chunk

if TYPE_CHECKING:
    from groupmq.sync.queue.queue import Queue

T = TypeVar("T")


class QueueRuntime(PartitionedMethods):
    """A queue in any number of threads, and in forked processes."""

    def _set_up_client(self) -> None:
        self._listening = Listening(self._endpoint, self._connection.session)
        self._listeners = Listeners(self._listening, self.name)

    def _call(self, call: Call[T], /) -> T:
        return self._connection.call(call)

    # Partitions

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
        [job] = added_together(self, [draft], self._call(commands.add([draft], whole=True)))
        return job

    def _submit_all(self, chunks: Iterable[Chunk]) -> list[Job]:
        jobs: list[Job] = []
        for drafts, call in chunks:
            jobs += added_together(self, drafts, self._call(call))
        return jobs

    # Listening

    def _events(self, since: str | None) -> Iterator[Event]:
        return followed(BlockingSubscription([queue._listening for queue in self._logs()], since))

    def _listen(self, event: str, listener: Listener) -> None:
        for queue in self._learn() or (self,):
            queue._listeners.on(event, listener)

    # What jobs ask of their queue

    def _result_of(self, job: Snapshot, timeout: float | None) -> Any:
        return self._listening.result_of(job, timeout)

    def _listen_to(self, job: Job, event: str, listener: Listener) -> JobListeners:
        return self._listening.listen_to(job, event, listener)

    def _stop_listening_to(self, listeners: JobListeners, event: str, listener: Listener) -> bool:
        return self._listening.stop_listening_to(listeners, event, listener)

    def _begin(self) -> None:
        """Do nothing: a blocking queue has no workers to start."""

    def _end(self) -> None:
        self._listeners.remove_all()
        self._listening.close()
