"""A process that runs only one duty, scheduler or recovery, for every queue."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, cast

from groupmq import Duty, GroupMQError
from tests.chaos.cast import QUEUES
from tests.chaos.history import HistoryFile
from tests.chaos.working import open_queue

LONGEST = 0.5


async def run(history: HistoryFile, settings: dict[str, Any]) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    duty = cast(Duty, settings["duty"])

    async def watch(name: str) -> None:
        async with open_queue(name, settings["url"]) as queue:
            while not over.is_set():
                pause = LONGEST
                try:
                    report = await queue.run_duty_once(duty)
                    pause = min(LONGEST, report.next_in or LONGEST)
                except GroupMQError as error:
                    history.note("trouble", error=f"{type(error).__name__}: {error}")
                try:
                    await asyncio.wait_for(over.wait(), max(0.02, pause))
                except TimeoutError:
                    continue

    history.note("ready", q=None)
    await asyncio.gather(*(watch(role.name) for role in QUEUES))
