"""The methods of a queue that both clients share."""

from __future__ import annotations

from typing import Unpack

from groupmq.client.queue.adding import Adding
from groupmq.client.queue.bulk import Bulk
from groupmq.client.queue.changes import JobChanges
from groupmq.client.queue.directory import Directory
from groupmq.client.queue.duties import Duties
from groupmq.client.queue.inspection import Inspection
from groupmq.client.queue.search import JobSearch
from groupmq.core.queue_options import QueueArguments
from groupmq.core.settings import QueueSettings, storable


class QueueMethods(Adding, Inspection, JobSearch, JobChanges, Bulk, Duties, Directory):
    """All parts of a queue. Each is a class on `QueueBase`, in its own file."""

    async def reconfigure(self, **changes: Unpack[QueueArguments]) -> QueueSettings:
        """Change settings that are stored with the queue, in one write, and return the stored settings.

        Without arguments, what this object was given is stored. A change holds for what waits already, and processes
        that run use it from their next call on.

        >>> await queue.reconfigure(max_attempts=7, on_retry="yield")

        With partitions: from their next call to a partition that has got it. If this is interrupted, the others get it
        from the next process that uses them; to sort jobs that already wait, make the same call again.
        """
        wanted = changes or storable(self._given)
        changed = await self._connection.reconfigure(wanted)
        if await self._spread_settings(wanted, changed=changed):
            await self.repair()
        return await self.get_settings()

    async def _spread_settings(self, wanted: QueueArguments, *, changed: bool) -> bool:
        """Finish a change of stored settings; returns whether waiting jobs have to be put in order again.

        `changed`: whether a setting that the scripts act on has changed.
        """
        return changed

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self.address}>"
