"""The blocking job: what it has beside the actions of `job_actions.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from groupmq.core.events import Event
from groupmq.sync.job_actions import JobActions

if TYPE_CHECKING:
    from groupmq.client.events import JobListeners


class Job(JobActions):
    """A job as returned by the blocking queue. Its methods act on the stored job."""

    _listeners: JobListeners | None = None

    def on(self, event: str, listener: Callable[[Event], Any]) -> Callable[[Event], Any]:
        """Call `listener(event)`, in a thread of its own, for what happens to this job, while this object lives."""
        self._listeners = self._queue._listen_to(self, event, listener)
        return listener

    def off(self, event: str, listener: Callable[[Event], Any]) -> bool:
        """Stop calling `listener`; True if it was listening."""
        return self._listeners is not None and self._queue._stop_listening_to(self._listeners, event, listener)


SavedJob = Job
"""What `JobDraft.save` returns."""
