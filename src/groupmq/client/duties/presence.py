"""Presence: forgets workers that died without deregistering."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from groupmq.client.answers.measures import REPLIES_KEPT, gone_workers
from groupmq.client.connection.connections import Connection
from groupmq.client.connection.replies import decoded
from groupmq.client.queue.caller import Caller
from groupmq.core.views import DutyReport
from groupmq.protocol import commands


class WorkerRecords:
    """What the server keeps about workers in one queue, or in one partition of a queue."""

    def __init__(self, call: Caller, connection: Connection) -> None:
        self._call = call
        self._connection = connection

    async def requesters(self) -> list[str]:
        """The names of the workers' requesters whose last reply is kept."""
        key = self._connection.key("requesters")
        return [decoded(raw) for raw in await self._connection.command("HKEYS", key, key=key)]

    async def presences(self) -> commands.Stats:
        return await self._call(commands.stats())

    async def forget(self, workers: Sequence[str]) -> None:
        """Delete the presence of these workers, and the last reply to each of their requesters."""
        requesters = [requester for worker in workers for requester in commands.requester_names(worker)]
        await self._call(commands.leave(list(workers), requesters))


class PresenceCleanup:
    """Deregisters workers that have been silent for longer than a minute (`gone_workers`), and deletes the last replies
    that the server keeps for them.

    With partitions, a worker sends heartbeats in the first one and in those whose jobs it has run, and the server keeps
    replies for it in all of them. So a worker is gone only if all partitions say so, and it is then forgotten in each.

    A worker asks for jobs before its first heartbeat. One that has left replies and no presence is not forgotten before
    this object has known it in that state for REPLIES_KEPT seconds.
    """

    task = "clean up after dead workers"

    def __init__(
        self,
        records: Callable[[], Coroutine[Any, Any, Sequence[WorkerRecords]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`records`: those of the queue, or of each of its partitions."""
        self._records = records
        self._clock = clock
        self._absent_since: dict[str, float] = {}
        """When each worker without a presence was first noticed."""

    async def run_once(self) -> DutyReport:
        records = await self._records()
        # The replies are listed first: a worker that registers between the two calls must not look absent.
        replied = [{commands.worker_of(name) for name in await one.requesters()} for one in records]
        presences = [await one.presences() for one in records]
        present = {worker for stats in presences for worker in stats.workers}
        gone = gone_workers(presences)
        gone += self._long_absent(set[str]().union(*replied) - present)
        # The first partition last: every worker is registered there. If this is interrupted, the next run finds it.
        for one, requesters, stats in reversed(list(zip(records, replied, presences, strict=True))):
            here = [worker for worker in gone if worker in requesters or worker in stats.workers]
            if here:
                await one.forget(here)
        return DutyReport(len(gone), gone_workers=tuple(gone))

    def _long_absent(self, absent: set[str]) -> list[str]:
        """Those of these workers, which have replies and no presence, that have been absent for long enough."""
        now = self._clock()
        self._absent_since = {worker: self._absent_since.get(worker, now) for worker in absent}
        return sorted(worker for worker, since in self._absent_since.items() if now - since > REPLIES_KEPT)
