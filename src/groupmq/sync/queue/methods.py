# Generated from src/groupmq/client/queue/methods.py by `make sync`; do not edit.
"""The methods of a queue that both clients share."""

from __future__ import annotations

from groupmq.sync.queue.adding import Adding
from groupmq.sync.queue.bulk import Bulk
from groupmq.sync.queue.changes import JobChanges
from groupmq.sync.queue.directory import Directory
from groupmq.sync.queue.duties import Duties
from groupmq.sync.queue.inspection import Inspection
from groupmq.sync.queue.search import JobSearch


class QueueMethods(Adding, Inspection, JobSearch, JobChanges, Bulk, Duties, Directory):
    """All parts of a queue. Each is a class on `QueueBase`, in a file of its own."""

    def reconfigure(self) -> None:
        """Store the shared settings of this object (ordering, limits ...) with the queue, whatever was there before."""
        self._connection.open(replace=True)
        self.repair()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"
