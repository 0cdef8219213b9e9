"""What a handler can do with its job: report progress, append to its log, and notice that the run should end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Self, cast

from groupmq.core.errors import ConfigurationError
from groupmq.core.snapshot import Snapshot
from groupmq.runtime.tasks import awaited

if TYPE_CHECKING:
    from groupmq.client.job import Job
    from groupmq.client.queue.queue import Queue

_PATIENCE = 30.0
"""Seconds a handler in a thread waits for its progress or log line to be stored."""


class _Reported:
    """The return value for a handler in a thread or a child process. Awaiting it does nothing: the report is stored, or
    on its way to the parent process."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class JobInHandler(Snapshot):
    """The values of a job, and what its handler uses in an event loop, a thread or a process."""

    _queue: Queue
    context: Any = None
    """In a handler: what `on_startup` of its worker returned."""
    _loop: asyncio.AbstractEventLoop | None = None
    _looked = False
    _stop_event: threading.Event | None = None
    _stopped = False
    _waits_for_end = False
    _send_to_parent: Callable[[str, Any], None] | None = None

    def _runs_in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        """The handler runs in a thread: what it reports is sent from this loop."""
        self._loop = loop

    def _runs_in_child(self, send_to_parent: Callable[[str, Any], None]) -> None:
        """The handler runs in a child process: its parent has the connection, and reports for this job."""
        self._send_to_parent = send_to_parent

    def _portable(self) -> Self:
        """A copy without its queue: connections cannot be sent to another process."""
        copy = type(self).__new__(type(self))
        copy._copy_from(self)
        copy.duplicate = self.duplicate
        copy._data = self.data  # decoded here: the serializer is not sent along
        copy._queue = None  # type: ignore[assignment]
        copy._serializer = None  # type: ignore[assignment]
        copy._result = None
        return copy

    def report_progress(self, value: Any) -> Awaitable[None]:
        """Store the progress of the job, which may be any JSON, and publish it. Raises LeaseLost if the run is over.

        In a `def` handler the call blocks, and need not be awaited.
        """
        return self._report({"progress": value})

    def log(self, text: str) -> Awaitable[None]:
        """Add a line to the job's log; the newest 100 are kept."""
        if not isinstance(text, str):
            raise ConfigurationError.expected("text", "a string", text)
        return self._report({"line": text})

    def _report(self, what: dict[str, Any]) -> Awaitable[None]:
        send, loop = self._send_to_parent, self._loop
        if send is not None:
            for kind, value in what.items():
                send(kind, value)
            return _Reported()
        if loop is None or _running() is not None:
            return self._queue._report_run(cast("Job", self), **what)
        self._report_through(loop, what)
        return _Reported()

    def _report_through(self, loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        """Report from a thread: have this loop send it, and wait until it is stored."""
        report = awaited(self._queue._report_run(cast("Job", self), **what))
        asyncio.run_coroutine_threadsafe(report, loop).result(_PATIENCE)

    @property
    def cancelled(self) -> bool:
        """Whether the run should end: it was cancelled or timed out, its worker closes, or its lease is lost.

        For `def` handlers.
        """
        # Only the handler's thread writes this field, and only the loop writes `_stopped`: neither undoes the other.
        self._looked = True
        return self._stopped

    @property
    def cancel_event(self) -> threading.Event:
        """Set when the run should end, so that a `def` handler can wait for it."""
        event = self._stop_event
        if event is None:
            event = self._stop_event = threading.Event()
        if self.cancelled:
            event.set()
        return event

    def _end_run(self, *, waits: bool = False) -> None:
        """Signal the end of the run. `waits`: its group waits until the handler has ended, even one in a thread."""
        self._waits_for_end = waits
        self._stopped = True
        event = self._stop_event
        if event is not None:
            event.set()

    @property
    def _looks(self) -> bool:
        """Whether the handler has read `cancelled`, so that it can be expected to end soon."""
        return self._looked


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
