"""The duties of a worker beside its jobs. Any number of copies is safe; each is one bounded, idempotent operation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from groupmq import commands
from groupmq.errors import GroupMQError
from groupmq.job import Job
from groupmq.operations import Operations, Steps
from groupmq.options import WorkerOptions
from groupmq.repeating import Repeating
from groupmq.tasks import end_tasks
from groupmq.worker.desk import Desk
from groupmq.worker.scheduler import Scheduler

T = TypeVar("T")
Duty = Callable[[], Steps[None]]


class Carry(Protocol):
    """How an operation is carried out."""

    def __call__(self, steps: Steps[T], /) -> Awaitable[T]: ...


class Maintenance:
    """Repeats, retention by age, presence of dead workers, and the upper bound between two looks at what is due."""

    def __init__(self, options: WorkerOptions, desk: Desk, operations: Operations[Job], carry_out: Carry) -> None:
        self._duties = ((self._clean_up, options.cleanup_interval), (self._recover, options.stalled_interval))
        self._desk = desk
        self._operations = operations
        self._carry_out = carry_out
        self._tasks: list[asyncio.Task[None]] = []
        look = Repeating(operations).run_due
        self._scheduler = Scheduler(look, carry_out, options.stalled_interval, desk.trouble)

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._desk.heard_of_tick = self._scheduler.hear
        self._scheduler.start()
        self._tasks = [loop.create_task(self._every(interval, duty)) for duty, interval in self._duties]

    async def _every(self, interval: float, duty: Duty) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                await self._carry_out(duty())
            except GroupMQError as error:
                self._desk.trouble(error)

    def _clean_up(self) -> Steps[None]:
        yield from self._operations.clean_up()
        gone = yield from self._operations.gone_workers()
        if gone:
            yield commands.leave(gone, [f"{worker}:{lane}" for worker in gone for lane in range(2)])

    def _recover(self) -> Steps[None]:
        due = yield commands.due(self._desk.policy)
        for stalled in due.stalled:
            self._desk.stalled(stalled)

    async def close(self) -> None:
        await self._scheduler.close()
        await end_tasks(self._tasks)
