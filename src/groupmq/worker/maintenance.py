"""The periodic duties of a worker. Any number of copies is safe; each is one bounded, idempotent operation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupmq import commands
from groupmq.errors import GroupMQError
from groupmq.job import Job
from groupmq.operations import Operations, Steps

if TYPE_CHECKING:
    from groupmq.worker.worker import Worker


Duty = Callable[[], Steps[None]]


class Maintenance:
    """Retention by age, presence of dead workers, and the upper bound between two looks at expired leases."""

    def __init__(self, worker: Worker, operations: Operations[Job]) -> None:
        self._worker = worker
        self._operations = operations
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        options = self._worker.options
        for duty, interval in ((self._clean_up, options.cleanup_interval), (self._recover, options.stalled_interval)):
            self._tasks.append(asyncio.get_running_loop().create_task(self._every(interval, duty)))

    async def _every(self, interval: float, duty: Duty) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                await self._worker.queue._run(duty())
            except GroupMQError as error:
                self._worker.trouble(error)

    def _clean_up(self) -> Steps[None]:
        yield from self._operations.clean_up()
        gone = yield from self._operations.gone_workers()
        if gone:
            yield commands.leave(gone, [f"{worker}:{lane}" for worker in gone for lane in range(2)])

    def _recover(self) -> Steps[None]:
        due = yield commands.due(self._worker.policy)
        for stalled in due.stalled:
            self._worker.stalled(stalled)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
