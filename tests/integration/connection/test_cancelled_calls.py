"""A cancelled task that is waiting for the server ends."""

from __future__ import annotations

import asyncio
import random

from groupmq import Queue


async def test_a_cancelled_task_ends_whatever_moment_of_a_call_it_was_in(queue: Queue) -> None:
    source = random.Random(3)

    async def talk() -> None:
        while True:
            await queue.get_job_counts()

    async with asyncio.timeout(60):
        for _ in range(1500):
            task = asyncio.create_task(talk())
            for _ in range(source.randrange(1, 60)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


async def test_what_a_cancelled_task_does_to_clean_up_is_carried_out(queue: Queue) -> None:
    async def talk() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await queue.add("cleaned up")

    task = asyncio.create_task(talk())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert await queue.get_waiting_count() == 1
