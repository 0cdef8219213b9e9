"""Three small demonstrations after the main one: priorities, the turns of an exclusive queue, and a cron tick."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from groupmq import Cron, Job, Queue, Worker

SERVER = "embedded://"
GIVE_UP = 20.0


class Shown(NamedTuple):
    """The result of a demonstration, in one line, and whether it is as promised."""

    text: str
    holds: bool


async def priorities() -> Shown:
    """Jobs of one group, the least urgent one added first."""
    order: list[str] = []

    async def handle(job: Job) -> None:
        order.append(job.data)

    async with Queue("demo-priorities", SERVER) as queue:
        for name, priority in (("newsletter", 20), ("receipt", 5), ("password reset", 0)):
            await queue.add(name, group_id="ada", priority=priority)
        await Worker(queue, handle).run(burst=True)
    return Shown(f"priorities        {', then '.join(order)}", order == ["password reset", "receipt", "newsletter"])


async def turns() -> Shown:
    """Two workers of an exclusive queue, two jobs per turn."""
    by: list[str] = []
    running: set[str] = set()
    together = False

    async def handle(job: Job) -> None:
        nonlocal together
        worker = str(job.worker)
        by.append(worker)
        running.add(worker)
        together = together or len(running) > 1
        await asyncio.sleep(0.01)
        running.discard(worker)

    async with Queue("demo-exclusive", SERVER, exclusive=True) as queue:
        await queue.add_many([{"data": n} for n in range(8)])
        workers = [Worker(queue, handle, batch_size=2, name=name) for name in ("left", "right")]
        await asyncio.gather(*(worker.run(burst=True) for worker in workers))
    return Shown(f"exclusive turns   {' '.join(by)}", len(by) == 8 and not together)


async def tick() -> Shown:
    """The next tick of a cron that is due each second."""
    ran = asyncio.Event()
    late = 0.0

    async def handle(job: Job) -> None:
        nonlocal late
        if job.started_at is not None:
            late = job.started_at.timestamp() - job.order_ms / 1000
        ran.set()

    async with Queue("demo-cron", SERVER) as queue:
        await queue.add("sweep", repeat=Cron("* * * * * *"))
        async with Worker(queue, handle):
            await ran.wait()
    return Shown(f"a tick of a cron  ran {1000 * late:.0f} ms after its second", ran.is_set())


async def show() -> bool:
    """Run and print all of them; True if each did what it promises."""
    async with asyncio.timeout(GIVE_UP):
        seen = [await one() for one in (priorities, turns, tick)]
    for one in seen:
        print(f"  {one.text}" if one.holds else f"  BROKEN: {one.text}")
    return all(one.holds for one in seen)
