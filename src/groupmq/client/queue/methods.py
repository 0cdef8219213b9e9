"""The methods of a queue that both clients share."""

from __future__ import annotations

from groupmq.client.queue.adding import Adding
from groupmq.client.queue.bulk import Bulk
from groupmq.client.queue.changes import JobChanges
from groupmq.client.queue.directory import Directory
from groupmq.client.queue.duties import Duties
from groupmq.client.queue.inspection import Inspection
from groupmq.client.queue.search import JobSearch


class QueueMethods(Adding, Inspection, JobSearch, JobChanges, Bulk, Duties, Directory):
    """All parts of a queue. Each is a class on `QueueBase`, in a file of its own."""

    async def reconfigure(self) -> None:
        """Store the shared settings of this object (ordering, limits ...) with the queue, whatever was there before."""
        await self._connection.open(replace=True)
        await self.repair()

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"
