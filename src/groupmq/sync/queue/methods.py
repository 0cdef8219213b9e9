# Generated from src/groupmq/client/queue/methods.py by `make sync`; do not edit.
"""The methods of a queue that both clients share."""

from __future__ import annotations

from typing import Unpack

from groupmq.core.options import QueueArguments
from groupmq.core.settings import QueueSettings, storable
from groupmq.sync.queue.adding import Adding
from groupmq.sync.queue.bulk import Bulk
from groupmq.sync.queue.changes import JobChanges
from groupmq.sync.queue.directory import Directory
from groupmq.sync.queue.duties import Duties
from groupmq.sync.queue.inspection import Inspection
from groupmq.sync.queue.search import JobSearch


class QueueMethods(Adding, Inspection, JobSearch, JobChanges, Bulk, Duties, Directory):
    """All parts of a queue. Each is a class on `QueueBase`, in a file of its own."""

    def reconfigure(self, **changes: Unpack[QueueArguments]) -> QueueSettings:
        """Change settings that are stored with the queue, in one write; all others stay. Returns what is stored then.

        Without arguments, what this object was given is stored. A change holds for what waits already, and processes
        that run use it from their next call on.

        >>> queue.reconfigure(max_attempts=7, on_retry="yield")
        """
        if self._connection.reconfigure(changes or storable(self._given)):
            self.repair()
        return self.get_settings()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"
