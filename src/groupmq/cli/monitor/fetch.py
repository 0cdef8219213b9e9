"""Reads a queue for the monitor and carries out commands of keys. A failed read is not retried: the next is soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from groupmq import ConnectionLost, Job, Queue, QueueSurvey
from groupmq.cli.options.target import Target
from groupmq.cli.output.readable_data import READABLE

CALLS = 5
"""Calls of one look; one more to inspect a job, and for each 100 that run or are parked; two more while groups are
blocked."""
GROUPS, RUNS, FAILURES = 20, 50, 50
"""The most groups, running jobs and failures that a look shows."""
PATIENCE = 5.0
"""Seconds a look or an action may take; then the server counts as out of reach."""


class QueueWatcher:
    """One queue, looked at again and again."""

    def __init__(self, target: Target, name: str) -> None:
        self.queue = Queue.attach(name, target.url, patience=0, prefix=target.prefix, serializer=READABLE)
        self.where = self.queue.address
        self._cursor = "0"
        self._again: Sequence[str] = ()

    async def look(self) -> QueueSurvey:
        async with self._in_time():
            found = await self.queue.survey(
                cursor=self._cursor, also=self._again, groups=GROUPS, runs=RUNS, failures=FAILURES
            )
        self._cursor = found.cursor
        # Groups that turned out to be large stay in view while the cursor moves on.
        self._again = list({group.id or "" for group in (*found.busiest, *found.longest_waiting)})
        return found

    async def job(self, job_id: str) -> Job | None:
        async with self._in_time():
            return await self.queue.get_job(job_id)

    async def switch(self, *, paused: bool) -> None:
        async with self._in_time():
            await (self.queue.pause() if paused else self.queue.resume())

    async def retry(self, job_id: str) -> None:
        async with self._in_time():
            await self.queue.retry(job_id)

    async def close(self) -> None:
        await self.queue.close()

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(PATIENCE):
                yield
        except TimeoutError as error:
            raise ConnectionLost(f"the server at {self.where} cannot be reached: no answer") from error
