"""The scheduler of a worker: wakes at the next tick of a repeating job and adds its occurrence.

Every worker with maintenance has one, and any number of them is safe: of each tick one makes a job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from groupmq.errors import GroupMQError
from groupmq.operations import Steps
from groupmq.repeating import Ran
from groupmq.tasks import end_tasks

Look = Callable[[int | None], Steps[Ran]]
Carry = Callable[[Steps[Ran]], Awaitable[Ran]]
_PAUSE = 1.0
"""Seconds before another look after one that failed."""


class Scheduler:
    """Looks at the repeats that are due, then sleeps until the next tick, or until it hears of an earlier one."""

    def __init__(
        self, look: Look, carry_out: Carry, longest_sleep: float, trouble: Callable[[Exception], None]
    ) -> None:
        self._look = look
        self._carry_out = carry_out
        self._longest_sleep = longest_sleep
        self._trouble = trouble
        self._looked: int | None = None
        self._wakes_at = 0.0
        self._failed = False
        self._sooner = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def hear(self, wait_ms: int) -> None:
        """A repeat ticks in `wait_ms`."""
        at = asyncio.get_running_loop().time() + wait_ms / 1000
        # Not after a failed look: each answer about jobs would bring the next one forward, without a pause.
        if at < self._wakes_at and not self._failed:
            self._wakes_at = at
            self._sooner.set()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            pause = await self._run()
            self._wakes_at = loop.time() + pause
            await self._sleep(loop)

    async def _sleep(self, loop: asyncio.AbstractEventLoop) -> None:
        while (left := self._wakes_at - loop.time()) > 0:
            self._sooner.clear()
            try:
                async with asyncio.timeout(left):
                    await self._sooner.wait()
            except TimeoutError:
                return

    async def _run(self) -> float:
        """One look; seconds until the next."""
        self._failed = True
        try:
            ran = await self._carry_out(self._look(self._looked))
        except GroupMQError as error:
            self._trouble(error)
            return _PAUSE
        self._looked = ran.now
        for text in ran.errors:
            self._trouble(GroupMQError(text))
        if ran.errors:
            return _PAUSE
        self._failed = False
        return self._longest_sleep if ran.wait_ms < 0 else min(ran.wait_ms / 1000, self._longest_sleep)

    async def close(self) -> None:
        await end_tasks([self._task])
