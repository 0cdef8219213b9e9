"""The queue as a whole and the queues of a server, blocking: the twin of `groupmq/client/oversight.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

from groupmq.client import libraries, registry, server
from groupmq.client.connection.connections import PATIENCE, BlockingConnection, Endpoint
from groupmq.client.duties import Duties, Duty
from groupmq.client.operations import Operations, Steps
from groupmq.client.oversight import AS_STORED
from groupmq.core.checks import Logger
from groupmq.core.codec import JSON, Serializer
from groupmq.core.durations import Duration, Instant, seconds
from groupmq.core.errors import QueueNotFound
from groupmq.core.options import QueueOptions, queue_name
from groupmq.core.server_views import Finding, Mark, QueueInfo, ServerInfo
from groupmq.core.settings import QueueSettings
from groupmq.core.survey_views import QueueSurvey
from groupmq.core.views import DutyReport, WorkerInfo
from groupmq.sync.job import Job

T = TypeVar("T")
# In the class below `list` is a method.
QueueInfos = list[QueueInfo]
Findings = list[Finding]
Names = list[str]
Workers = list[WorkerInfo]


class Runs(Protocol):
    """What carries out an operation."""

    _operations: Operations[Job]
    _connection: BlockingConnection

    _duties: Duties[Job]

    def _run(self, steps: Steps[T]) -> T: ...


class Directory:
    """Queues by name."""

    if TYPE_CHECKING:
        _connection: BlockingConnection

        def __init__(self, name: str, redis: Any = None, **options: Any) -> None: ...
        def get_settings(self) -> QueueSettings: ...
        def get_workers(self) -> Workers: ...
        def close(self) -> None: ...

    @classmethod
    def attach(
        cls,
        name: str,
        redis: Any = None,
        *,
        make: bool = False,
        patience: Duration = PATIENCE,
        call_timeout: Duration | None = None,
        **options: Any,
    ) -> Self:
        """A queue object for tools, which accepts the stored settings whatever they are. Nothing is sent yet.

        While the queue does not exist its methods raise QueueNotFound, or make it if `make` is set. `patience`: how
        long a call tries again while the server cannot be reached. `call_timeout`: how long one read may take.
        `redis` may also be another queue object, of either client: the server is the same, the connections are not.
        `options` are those of `Queue`; without them jobs are treated as by `open`.
        """
        other = getattr(redis, "_endpoint", None)
        endpoint = Endpoint.of(redis) if other is None else other.beside()
        if call_timeout is not None:
            endpoint = endpoint.beside(seconds(call_timeout, "call_timeout"))
        queue = cls(name, endpoint, **(AS_STORED | options))
        queue._connection.patience = seconds(patience, "patience")
        queue._connection.dialogue.accept_stored_settings(make=make)
        return queue

    @classmethod
    def open(
        cls,
        name: str,
        redis: Any = None,
        *,
        prefix: str = "groupmq",
        serializer: Serializer = JSON,
        logger: Logger | Literal[True] | None = None,
    ) -> Self:
        """A queue as it is stored, with its stored settings. It is never made: QueueNotFound if it does not exist.

        For tools that look at a queue and act on its jobs. The `max_attempts` of a job that sets none reads 65535,
        since only workers know theirs, and finished jobs that they keep stay.

        >>> queue = Queue.open("orders")
        """
        given: dict[str, Any] = {"prefix": prefix, "serializer": serializer, "logger": logger}
        probe = cls.attach(name, redis, **given)
        try:
            settings = probe.get_settings()
        finally:
            probe.close()
        return cls.attach(name, redis, **given, **settings.options())

    @classmethod
    def list(cls, redis: Any = None, *, prefix: str = "groupmq") -> QueueInfos:
        """The queues of a server, by name. Those of other prefixes are not among them.

        >>> [queue.name for queue in Queue.list()]
        """
        options = QueueOptions("-", queue_name(prefix, "prefix"))
        connection = BlockingConnection(Endpoint(redis), options)
        try:
            found = connection.drive(registry.names(options.prefix, connection.dialogue.where))
        finally:
            connection.close()
        return [QueueInfo(name, options.prefix) for name in found]

    @staticmethod
    def address_of(redis: Any = None) -> str:
        """The address that a URL or client leads to, without secrets. ConfigurationError if the URL is wrong.

        Nothing is sent, but an embedded server is started, and belongs to this process.
        """
        return Endpoint.of(redis).where

    @classmethod
    def check_server(cls, redis: Any = None) -> Findings:
        """Whether a server is fit for queues: what `check` says about the server, without a queue."""
        connection = BlockingConnection(Endpoint.of(redis), QueueOptions("-"))
        try:
            return connection.drive(server.examine(connection.dialogue.where))
        finally:
            connection.close()

    @classmethod
    def prune_libraries(cls, redis: Any = None, *, prefix: str = "groupmq") -> Names:
        """Delete the function libraries of other releases that no worker of any queue uses; their names."""
        used = set()
        for info in cls.list(redis, prefix=prefix):
            queue = cls.attach(info.name, redis, prefix=info.prefix)
            try:
                used |= {worker.library for worker in queue.get_workers()}
            except QueueNotFound:
                continue  # it was removed meanwhile
            finally:
                queue.close()
        connection = BlockingConnection(Endpoint.of(redis), QueueOptions("-"))
        try:
            return connection.drive(libraries.prune(connection.dialogue.where, used))
        finally:
            connection.close()


class Overseeing(Directory):
    """The methods of a queue that concern all of it, or its server."""

    @property
    def calls_by(self: Runs) -> Literal["function", "script"]:
        """How this process calls the server: functions of a library, or each as a script where they are refused.

        Known after the first call.
        """
        return self._connection.dialogue.calling.by

    @property
    def address(self: Runs) -> str:
        """The address of the server, without secrets."""
        return self._connection.dialogue.where

    def ensure_writable(self: Runs, timeout: Duration = PATIENCE) -> None:
        """Raise if the server cannot be reached for `timeout`, or takes no writes: a replica, or full."""
        dialogue, patience = self._connection.dialogue, seconds(timeout, "timeout")
        steps = server.ensure_writable(dialogue.where, dialogue.keys.hail("nobody"), patience)
        self._connection.drive(dialogue.plainly(steps))

    def run_duty_once(self: Runs, duty: Duty) -> DutyReport:
        """Run one duty of the workers now: what it did, and when there is more to do.

        `scheduler`: repeats, delayed jobs, groups whose wait is over. `recovery`: leases that ran out, jobs past their
        ttl. `cleanup`: retention by age, workers that stopped without saying so. Any number of copies is safe.
        """
        return self._run(self._duties.run(duty))

    def survey(
        self: Runs,
        *,
        cursor: str = "0",
        also: Sequence[str] = (),
        groups: int = 20,
        runs: int = 50,
        failures: int = 50,
    ) -> QueueSurvey:
        """Everything a monitor shows, in five calls however deep the queue is; nothing is written.

        At most `groups` of each kind of group, `runs` and `failures`. Groups are looked at a page at a time: give the
        `cursor` of the survey before, and in `also` the groups of it that are to stay in view.
        """
        return self._run(self._operations.survey(cursor, also, groups, runs, failures))

    def get_settings(self: Runs) -> QueueSettings:
        """The settings that are stored with the queue, whatever this process was given."""
        return self._run(self._operations.get_settings())

    def mark(self: Runs, label: str, *, at: Instant | None = None) -> Mark:
        """Mark a moment in the history of the queue, such as a deployment; charts show it. The newest 100 are kept."""
        return self._run(self._operations.mark(label, at))

    def get_marks(self: Runs, since: Instant | None = None) -> list[Mark]:
        """The marks from `since` on, oldest first."""
        return self._run(self._operations.get_marks(since))

    def check(self: Runs, *, oldest: Duration = 300, look: int = 500) -> list[Finding]:
        """What `groupmq check` says: is the server fit for a queue, and does the queue move?

        A job, or the first of a held group, may wait for `oldest`; `look` as in `get_metrics`.
        """
        dialogue = self._connection.dialogue
        found = self._connection.drive(dialogue.plainly(server.examine(dialogue.where)))
        return found + self._run(self._operations.check(oldest, look))

    def get_server_info(self: Runs) -> ServerInfo:
        """What the server says about itself: kind, version, memory, persistence. No address, no secret."""
        dialogue = self._connection.dialogue
        return self._connection.drive(dialogue.plainly(server.describe(dialogue.where)))
